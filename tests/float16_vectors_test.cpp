// The vector conversions of float16, on every backend.
#include "vector_conversions.hpp"

namespace {

using rotary::float16;

TEST(Float16Vectors, ToFloat) {
  vector_conversions::check_all<float16, float>(vector_conversions::every_pattern<float16>());
}
TEST(Float16Vectors, ToItself) {
  vector_conversions::check_rotations<float16, float16>(vector_conversions::every_pattern<float16>());
}
TEST(Float16Vectors, FromFloat) {
  vector_conversions::check_all<float, float16>(vector_conversions::numbers_around<float, float16>());
}
// A float on the way must not round first.
TEST(Float16Vectors, FromDouble) {
  vector_conversions::check_all<double, float16>(vector_conversions::numbers_around<double, float16>());
}
TEST(Float16Vectors, ThroughFloatAndBack) { vector_conversions::check_nans<float16, float>(); }
TEST(Float16Vectors, ToFloatWithSubnormalsFlushed) {
  vector_conversions::check_copies_flushed<float16, float>(vector_conversions::every_pattern<float16>());
}
TEST(Float16Vectors, FromFloatWithSubnormalsFlushed) {
  vector_conversions::check_copies_flushed<float, float16>(vector_conversions::numbers_around<float, float16>());
}

}  // namespace
