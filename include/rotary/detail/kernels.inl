// The body of a backend: everything that is compiled once per instruction set, written once. backends.hpp includes it
// inside the backend's namespace and target region.
#if ROTARY_GNU
#  include "lanes.inl"
#else
#  include "lanes_portable.inl"
#endif
#include "head_kernels.inl"
#if !ROTARY_BACKEND_FP16  // which only computes; avx512 stores for it
#  include "cache_channels.inl"
#endif
#include "row_merge.inl"
#include "row_products.inl"
