// The vector conversions of bfloat16, on every backend.
#include "vector_conversions.hpp"

namespace {

using rotary::bfloat16;

TEST(Bfloat16Vectors, ToFloat) {
  vector_conversions::check_all<bfloat16, float>(vector_conversions::every_pattern<bfloat16>());
}
TEST(Bfloat16Vectors, ToItself) {
  vector_conversions::check_rotations<bfloat16, bfloat16>(vector_conversions::every_pattern<bfloat16>());
}
TEST(Bfloat16Vectors, FromFloat) {
  vector_conversions::check_all<float, bfloat16>(vector_conversions::numbers_around<float, bfloat16>());
}
// A float on the way must not round first.
TEST(Bfloat16Vectors, FromDouble) {
  vector_conversions::check_all<double, bfloat16>(vector_conversions::numbers_around<double, bfloat16>());
}
TEST(Bfloat16Vectors, ThroughFloatAndBack) { vector_conversions::check_nans<bfloat16, float>(); }
TEST(Bfloat16Vectors, ToFloatWithSubnormalsFlushed) {
  vector_conversions::check_copies_flushed<bfloat16, float>(vector_conversions::every_pattern<bfloat16>());
}
TEST(Bfloat16Vectors, FromFloatWithSubnormalsFlushed) {
  vector_conversions::check_copies_flushed<float, bfloat16>(vector_conversions::numbers_around<float, bfloat16>());
}

}  // namespace
