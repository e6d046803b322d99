// float16 and bfloat16, one number at a time: every bit pattern, every rounding tie, every exponent.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <rotary/types.hpp>
#include <type_traits>
#include <vector>

#include "flush_subnormals.hpp"
#include "reference.hpp"
#include "type_names.hpp"

namespace {

using reference::bits_as;
using rotary::bfloat16;
using rotary::float16;

template <class T>
constexpr reference::format format_of = std::is_same<T, float16>::value ? reference::binary16 : reference::bfloat;

// Out of line, so that the compiler cannot move a conversion out of the floating-point mode it is made in.
template <class To, class From>
[[gnu::noinline]] void convert_all(const From* from, To* to, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] = static_cast<To>(from[i]);
}

template <class To, class From>
std::vector<To> converted(const std::vector<From>& from, bool flush) {
  std::vector<To> to(from.size());
  const flush_subnormals mode(flush);
  convert_all(from.data(), to.data(), from.size());
  return to;
}

std::uint16_t with_sign(unsigned magnitude, bool negative) {
  return static_cast<std::uint16_t>(magnitude | (negative ? 0x8000u : 0u));
}

// Numbers and the bits they must become.
template <class T>
struct cases {
  std::vector<T> numbers;
  std::vector<std::uint16_t> bits;

  void add(T number, std::uint16_t expected) {
    numbers.push_back(number);
    bits.push_back(expected);
  }
  void add_both_signs(T number, unsigned expected) {
    add(number, with_sign(expected, false));
    add(-number, with_sign(expected, true));
  }
};

template <class Half, class From>
void expect_bits(const cases<From>& given, bool flush) {
  const std::vector<Half> got = converted<Half>(given.numbers, flush);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (got[i].bits == given.bits[i]) continue;
    if (++wrong <= 5) {
      ADD_FAILURE() << std::hexfloat << given.numbers[i] << " became 0x" << std::hex << got[i].bits << ", not 0x"
                    << given.bits[i];
    }
  }
  EXPECT_EQ(wrong, 0u) << "of " << got.size();
}

// The number halfway between the k-th and the next, from 0 up; the last is the one from which on numbers are infinite.
template <class Half>
double tie_above(unsigned k) {
  const double low = reference::decode(format_of<Half>, static_cast<std::uint16_t>(k));
  if (k + 1 < format_of<Half>.infinity) {
    return (low + reference::decode(format_of<Half>, static_cast<std::uint16_t>(k + 1))) / 2;
  }
  const double before = reference::decode(format_of<Half>, static_cast<std::uint16_t>(k - 1));
  return low + (low - before) / 2;
}

unsigned even_of(unsigned k) { return k % 2 == 0 ? k : k + 1; }

// Every number of the format, every tie, and the neighbours of both in the source type.
template <class Half, class From>
cases<From> ties_and_neighbours() {
  cases<From> result;
  const From infinity = std::numeric_limits<From>::infinity();
  for (unsigned k = 0; k < format_of<Half>.infinity; ++k) {
    const From number = static_cast<From>(reference::decode(format_of<Half>, static_cast<std::uint16_t>(k)));
    result.add_both_signs(number, k);
    result.add_both_signs(std::nextafter(number, infinity), k);
    if (k > 0) result.add_both_signs(std::nextafter(number, From(0)), k);
    const From tie = static_cast<From>(tie_above<Half>(k));
    result.add_both_signs(tie, even_of(k));
    result.add_both_signs(std::nextafter(tie, From(0)), k);
    result.add_both_signs(std::nextafter(tie, infinity), k + 1);
  }
  result.add_both_signs(infinity, format_of<Half>.infinity);
  result.add_both_signs(std::numeric_limits<From>::max(), format_of<Half>.infinity);
  return result;
}

template <class Half>
class Conversions : public testing::Test {};
using Halves = testing::Types<float16, bfloat16>;
TYPED_TEST_SUITE(Conversions, Halves, type_names);

class Mode {
 public:
  static std::vector<bool> both() {
    return flush_subnormals::exists ? std::vector<bool>{false, true} : std::vector<bool>{false};
  }
};

TYPED_TEST(Conversions, EveryPatternToFloatAndDouble) {
  std::vector<TypeParam> all(65536);
  for (unsigned k = 0; k < all.size(); ++k) all[k].bits = static_cast<std::uint16_t>(k);
  for (const bool flush : Mode::both()) {
    SCOPED_TRACE(flush ? "subnormals flushed" : "default mode");
    const std::vector<float> floats = converted<float>(all, flush);
    const std::vector<double> doubles = converted<double>(all, flush);
    std::size_t nans = 0, wrong = 0;
    for (unsigned k = 0; k < all.size(); ++k) {
      const double expected = reference::decode(format_of<TypeParam>, static_cast<std::uint16_t>(k));
      const std::uint32_t float_bits = bits_as<std::uint32_t>(floats[k]);
      const std::uint64_t double_bits = bits_as<std::uint64_t>(doubles[k]);
      if (std::isnan(expected)) {
        // Sign, quiet bit and payload stay at the top.
        ++nans;
        const unsigned width = static_cast<unsigned>(format_of<TypeParam>.fraction_bits);
        const std::uint32_t payload = (k & ((1u << width) - 1u)) << (23u - width);
        const std::uint32_t nan = (k & 0x8000u) << 16 | 0x7fc00000u | payload;
        const std::uint64_t wide = static_cast<std::uint64_t>(nan & 0x80000000u) << 32 | 0x7ff8000000000000u |
                                   static_cast<std::uint64_t>(payload) << 29;
        // A bfloat16 is the upper half of a float: widening is a shift and need not make a NaN quiet.
        const bool quieted = std::is_same<TypeParam, float16>::value;
        const bool right = (quieted ? float_bits : float_bits | 0x400000u) == nan && double_bits == wide;
        if (!right && ++wrong <= 5) ADD_FAILURE() << "NaN 0x" << std::hex << k << " became 0x" << float_bits;
        continue;
      }
      const bool right = float_bits == bits_as<std::uint32_t>(static_cast<float>(expected)) &&
                         double_bits == bits_as<std::uint64_t>(expected);
      if (!right && ++wrong <= 5) {
        ADD_FAILURE() << "0x" << std::hex << k << " became float 0x" << float_bits << " and double 0x" << double_bits
                      << ", not " << std::hexfloat << expected;
      }
    }
    EXPECT_EQ(wrong, 0u);
    EXPECT_EQ(nans, 2u * (0x7fffu - format_of<TypeParam>.infinity));
  }
}

TYPED_TEST(Conversions, EveryPatternThereAndBack) {
  std::vector<TypeParam> all(65536);
  for (unsigned k = 0; k < all.size(); ++k) all[k].bits = static_cast<std::uint16_t>(k);
  const unsigned quiet = 1u << (format_of<TypeParam>.fraction_bits - 1);
  for (const bool flush : Mode::both()) {
    SCOPED_TRACE(flush ? "subnormals flushed" : "default mode");
    const std::vector<TypeParam> through_float = converted<TypeParam>(converted<float>(all, flush), flush);
    const std::vector<TypeParam> through_double = converted<TypeParam>(converted<double>(all, flush), flush);
    std::size_t wrong = 0;
    for (unsigned k = 0; k < all.size(); ++k) {
      const unsigned expected = (k & 0x7fffu) > format_of<TypeParam>.infinity ? k | quiet : k;
      if (through_float[k].bits == expected && through_double[k].bits == expected) continue;
      if (++wrong <= 5) {
        ADD_FAILURE() << "0x" << std::hex << k << " came back as 0x" << through_float[k].bits << " from float and 0x"
                      << through_double[k].bits << " from double";
      }
    }
    EXPECT_EQ(wrong, 0u);
  }
}

TYPED_TEST(Conversions, FloatRoundsToNearestEven) {
  const cases<float> given = ties_and_neighbours<TypeParam, float>();
  ASSERT_GE(given.numbers.size(), 10u * format_of<TypeParam>.infinity);
  expect_bits<TypeParam>(given, false);
}

TYPED_TEST(Conversions, FloatRoundsToNearestEvenWithSubnormalsFlushed) {
  if (!flush_subnormals::exists) GTEST_SKIP() << "this CPU has no such mode that is known here";
  expect_bits<TypeParam>(ties_and_neighbours<TypeParam, float>(), true);
}

TYPED_TEST(Conversions, EveryExponentOfFloat) {
  cases<float> given;
  reference::random_bits random(1);
  for (std::uint32_t exponent = 0; exponent < 255; ++exponent) {
    for (int i = 0; i < 2000; ++i) {
      const std::uint32_t fraction = i == 0 ? 0u : i == 1 ? 0x7fffffu : random.next() & 0x7fffffu;
      const float number = bits_as<float>(exponent << 23 | fraction);
      given.add_both_signs(number, reference::encode(format_of<TypeParam>, static_cast<long double>(number)));
    }
  }
  for (const bool flush : Mode::both()) expect_bits<TypeParam>(given, flush);
}

TYPED_TEST(Conversions, DoubleIsRoundedOnce) {
  // A float on the way would swallow what decides a tie: a double next to it, half a float's ulp beside it, and more.
  cases<double> given = ties_and_neighbours<TypeParam, double>();
  for (unsigned k = 0; k < format_of<TypeParam>.infinity; ++k) {
    const double tie = tie_above<TypeParam>(k);
    for (int bits = 22; bits <= 51; ++bits) {
      given.add_both_signs(tie * (1.0 + std::ldexp(1.0, -bits)), k + 1);
      given.add_both_signs(tie * (1.0 - std::ldexp(1.0, -bits)), k);
    }
  }
  expect_bits<TypeParam>(given, false);
}

TYPED_TEST(Conversions, DoubleIsRoundedOnceWithSubnormalsFlushed) {
  if (!flush_subnormals::exists) GTEST_SKIP() << "this CPU has no such mode that is known here";
  expect_bits<TypeParam>(ties_and_neighbours<TypeParam, double>(), true);
}

TYPED_TEST(Conversions, EveryExponentOfDouble) {
  cases<double> given;
  reference::random_bits random(2);
  for (std::uint64_t exponent = 0; exponent < 2047; ++exponent) {
    for (int i = 0; i < 300; ++i) {
      const std::uint64_t noise = static_cast<std::uint64_t>(random.next()) << 28 ^ random.next();
      const std::uint64_t fraction = i == 0 ? 0u : i == 1 ? 0xfffffffffffffu : noise & 0xfffffffffffffu;
      const double number = bits_as<double>(exponent << 52 | fraction);
      given.add_both_signs(number, reference::encode(format_of<TypeParam>, static_cast<long double>(number)));
    }
  }
  for (const bool flush : Mode::both()) expect_bits<TypeParam>(given, flush);
}

// A NaN whose payload lies only in the bits that are dropped must not become an infinity.
TYPED_TEST(Conversions, NansStayNansAndKeepTheirUpperPayload) {
  const unsigned width = static_cast<unsigned>(format_of<TypeParam>.fraction_bits);
  const unsigned quiet = 1u << (width - 1);
  std::vector<float> floats;
  std::vector<double> doubles;
  std::vector<std::uint16_t> expected;
  reference::random_bits random(3);
  for (unsigned i = 0; i < 20000; ++i) {
    const std::uint32_t fraction = i < 23 ? 1u << i : (random.next() & 0x7fffffu) | 1u;
    const bool negative = i % 2 != 0;
    floats.push_back(bits_as<float>((negative ? 0x80000000u : 0u) | 0x7f800000u | fraction));
    doubles.push_back(bits_as<double>((negative ? 0x8000000000000000u : 0u) | 0x7ff0000000000000u |
                                      static_cast<std::uint64_t>(fraction) << 29));
    expected.push_back(with_sign(format_of<TypeParam>.infinity | quiet | fraction >> (23u - width), negative));
  }
  for (const bool flush : Mode::both()) {
    const std::vector<TypeParam> from_float = converted<TypeParam>(floats, flush);
    const std::vector<TypeParam> from_double = converted<TypeParam>(doubles, flush);
    for (std::size_t i = 0; i < expected.size(); ++i) {
      ASSERT_EQ(from_float[i].bits, expected[i]) << std::hex << bits_as<std::uint32_t>(floats[i]);
      ASSERT_EQ(from_double[i].bits, expected[i]) << std::hex << bits_as<std::uint64_t>(doubles[i]);
    }
  }
  const TypeParam lowest(bits_as<double>(std::uint64_t{0x7ff0000000000001u}));
  EXPECT_EQ(lowest.bits, format_of<TypeParam>.infinity | quiet);
}

// All 2^32 floats, between one tie and the next.
TYPED_TEST(Conversions, EveryFloat) {
  if (std::getenv("ROTARY_EVERY_FLOAT") == nullptr) {
    GTEST_SKIP() << "takes some 20 seconds for each type; set ROTARY_EVERY_FLOAT to run it";
  }
  std::uint64_t numbers = 0;
  for (unsigned k = 0; k < format_of<TypeParam>.infinity; ++k) {
    // Floats from above the tie below k to that above k become k; a tie itself belongs to its even neighbour.
    const std::uint32_t low_tie = k == 0 ? 0u : bits_as<std::uint32_t>(static_cast<float>(tie_above<TypeParam>(k - 1)));
    const std::uint32_t high_tie = bits_as<std::uint32_t>(static_cast<float>(tie_above<TypeParam>(k)));
    const std::uint32_t begin = k == 0 || k % 2 == 0 ? low_tie : low_tie + 1;
    const std::uint32_t end = k % 2 == 0 ? high_tie : high_tie - 1;
    std::uint32_t wrong = 0;
    for (std::uint32_t u = begin; u <= end; ++u) {
      wrong += TypeParam(bits_as<float>(u)).bits != k;
      wrong += TypeParam(bits_as<float>(u | 0x80000000u)).bits != (k | 0x8000u);
    }
    ASSERT_EQ(wrong, 0u) << "floats that should become 0x" << std::hex << k;
    numbers += end - begin + 1;
  }
  const std::uint32_t overflow =
      bits_as<std::uint32_t>(static_cast<float>(tie_above<TypeParam>(format_of<TypeParam>.infinity - 1)));
  for (std::uint32_t u = overflow; u <= 0x7f800000u; ++u) {
    ASSERT_EQ(TypeParam(bits_as<float>(u)).bits, format_of<TypeParam>.infinity);
    ++numbers;
  }
  EXPECT_EQ(numbers, 0x7f800001u);
}

TEST(Float16, KnownNumbers) {
  EXPECT_EQ(float16(1.0f).bits, 0x3c00);
  EXPECT_EQ(float16(-2.0f).bits, 0xc000);
  EXPECT_EQ(float16(65504.0f).bits, 0x7bff);
  EXPECT_EQ(float16(65519.996f).bits, 0x7bff);
  EXPECT_EQ(float16(65520.0f).bits, 0x7c00);
  EXPECT_EQ(float16(0x1p-24f).bits, 0x0001);
  EXPECT_EQ(float16(0x1p-25f).bits, 0x0000);
  EXPECT_EQ(float16(0x1.000002p-25f).bits, 0x0001);
  EXPECT_EQ(float16(-0.0f).bits, 0x8000);
  EXPECT_EQ(static_cast<float>(float16(0.1f)), 0x1.998p-4f);
}

TEST(Bfloat16, KnownNumbers) {
  EXPECT_EQ(bfloat16(1.0f).bits, 0x3f80);
  EXPECT_EQ(bfloat16(257.0f).bits, 0x4380);  // 256: the tie goes to even
  EXPECT_EQ(bfloat16(259.0f).bits, 0x4382);  // 260
  EXPECT_EQ(bfloat16(3.3895313e38f).bits, 0x7f7f);
  EXPECT_EQ(bfloat16(std::numeric_limits<float>::max()).bits, 0x7f80);
  EXPECT_EQ(bfloat16(0x1p-133f).bits, 0x0001);
  EXPECT_EQ(bfloat16(0x1p-134f).bits, 0x0000);
  EXPECT_EQ(bfloat16(0x1p-134 * (1 + 0x1p-52)).bits, 0x0001);
}

TEST(Element, FormatsOfTheLibrarysTypes) {
  EXPECT_TRUE((std::is_same<rotary::format_of<const float16>, float16>::value));
  EXPECT_TRUE((std::is_same<rotary::format_of<const double>, double>::value));
  EXPECT_EQ(sizeof(float16), 2u);
  EXPECT_EQ(alignof(bfloat16), 2u);
  EXPECT_TRUE(std::is_trivially_copyable<float16>::value && std::is_trivial<bfloat16>::value);
  EXPECT_FALSE((std::is_convertible<float, float16>::value)) << "a rounding must be visible";
  EXPECT_FALSE((std::is_convertible<bfloat16, float>::value));
}

}  // namespace
