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
// Rows of NaNs whose payloads have all bits, as memory that was filled with 0xff has: rounding must not carry them over
// into a zero.
TEST(Bfloat16Vectors, NanRowsStayNan) {
  constexpr std::size_t pairs = 37, heads = 3;
  for (const std::uint32_t sign : {0u, 0x80000000u}) {
    const std::uint32_t bits = 0x7fffffffu | sign;
    float nan;
    std::memcpy(&nan, &bits, sizeof nan);
    const std::vector<float> row(pairs, nan);
    const rotary::table_view<float> rows{row.data(), row.data(), 1, pairs, pairs, 1};
    for (const rotary::pairing how : {rotary::pairing::split_half, rotary::pairing::interleaved}) {
      backends::on_each([&](rotary::backend) {
        std::vector<bfloat16> x(heads * 2 * pairs, bfloat16(1.5f));
        rotary::rotate(rotary::thd(x.data(), 1, heads, 2 * pairs), rows, 0, how);
        for (const bfloat16 value : x) ASSERT_GT(value.bits & 0x7fff, 0x7f80);
      });
    }
  }
}
TEST(Bfloat16Vectors, ToFloatWithSubnormalsFlushed) {
  vector_conversions::check_copies_flushed<bfloat16, float>(vector_conversions::every_pattern<bfloat16>());
}
TEST(Bfloat16Vectors, FromFloatWithSubnormalsFlushed) {
  vector_conversions::check_copies_flushed<float, bfloat16>(vector_conversions::numbers_around<float, bfloat16>());
}

}  // namespace
