// The float kernels whose machine code check.py looks at, of one pairing, named as the dispatch names them; and a whole
// call.
#include <rotary/rotary.hpp>

namespace kernels = rotary::detail;

using float_kernel = void (*)(const kernels::head_grid<float, float, float>&);

#define KERNEL(backend) \
  &kernels::backend::rotate_heads<rotary::pairing::PAIRING, rotary::pairing::PAIRING, float, float, float, float>

extern const float_kernel float_kernels[];
const float_kernel float_kernels[] = {KERNEL(baseline), KERNEL(avx2), KERNEL(avx512)};

void call(const rotary::tensor_view<float>& x, const rotary::table_view<float>& rows, std::int64_t position) {
  rotary::rotate(x, rows, position, rotary::pairing::PAIRING);
}
