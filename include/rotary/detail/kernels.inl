// The body of a backend: everything that is compiled once per instruction set, written once. each_backend.inl includes
// it inside the backend's namespace and target region.
#if ROTARY_GNU
#  include "lanes.inl"
#else
#  include "lanes_portable.inl"
#endif
#include "head_kernels.inl"
#if !ROTARY_BACKEND_FP16  // rows are made in double
#  include "row_merge.inl"
#  include "row_products.inl"
#endif
