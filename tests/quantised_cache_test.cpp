// append into float8 and q8_0.
#include "append_scenes.hpp"

namespace append_scenes {
using quantised = testing::Types<types<float, caches::float8_e4m3fn>, types<caches::bfloat16, caches::float8_e5m2>,
                                 types<float, caches::q8_0>, types<caches::float16, caches::q8_0>>;
INSTANTIATE_TYPED_TEST_SUITE_P(Quantised, Append, quantised, names);
}  // namespace append_scenes
