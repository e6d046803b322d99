// The float kernels whose machine code check.py looks at, of one pairing, named as the dispatch names them.
#include <rotary/rotary.hpp>

namespace kernels = rotary::detail;

#define KERNEL(backend) \
  &kernels::backend::rotate<float, float, float, rotary::pairing::PAIRING, rotary::pairing::PAIRING>

extern const kernels::rotation_kernel float_kernels[];
const kernels::rotation_kernel float_kernels[] = {KERNEL(baseline), KERNEL(avx2), KERNEL(avx512)};
