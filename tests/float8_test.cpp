// float8 against its definition: every pattern, every float16 and bfloat16, all ties and their neighbours.
#include "rotary/float8.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "reference.hpp"

namespace {

using reference::bits_as;
using rotary::bfloat16;
using rotary::float16;
using rotary::float8_e4m3fn;
using rotary::float8_e5m2;

// A format from the tables of the OFP8 specification: the numbers in [0, largest] by their definition.
template <class T>
struct definition;
template <>
struct definition<float8_e4m3fn> {
  static constexpr int fraction_bits = 3, bias = 7;
  static constexpr unsigned largest = 0x7e, infinity = 0, first_nan = 0x7f;
};
template <>
struct definition<float8_e5m2> {
  static constexpr int fraction_bits = 2, bias = 15;
  static constexpr unsigned largest = 0x7b, infinity = 0x7c, first_nan = 0x7d;
};

template <class T>
double decode(unsigned byte) {
  using d = definition<T>;
  const unsigned magnitude = byte & 0x7fu;
  const double sign = (byte & 0x80u) != 0 ? -1.0 : 1.0;
  if (magnitude >= d::first_nan) return std::numeric_limits<double>::quiet_NaN();
  if (d::infinity != 0 && magnitude == d::infinity) return sign * std::numeric_limits<double>::infinity();
  const int exponent = static_cast<int>(magnitude >> d::fraction_bits);
  const double fraction =
      std::ldexp(static_cast<double>(magnitude & ((1u << d::fraction_bits) - 1u)), -d::fraction_bits);
  return exponent == 0 ? sign * std::ldexp(fraction, 1 - d::bias)
                       : sign * std::ldexp(1.0 + fraction, exponent - d::bias);
}

// By search among all finite numbers: the nearest, of two at equal distance the one with an even last bit. What is
// farther than the largest number saturates, whatever the distance.
template <class T>
unsigned encode(double value) {
  const unsigned sign = std::signbit(value) ? 0x80u : 0u;
  const double magnitude = std::fabs(value);
  unsigned best = definition<T>::largest;
  if (magnitude >= decode<T>(best)) return sign | best;
  double distance = std::numeric_limits<double>::infinity();
  for (unsigned k = 0; k <= definition<T>::largest; ++k) {
    const double apart = std::fabs(decode<T>(k) - magnitude);
    if (apart < distance || (apart == distance && k % 2 == 0)) {
      best = k;
      distance = apart;
    }
  }
  return sign | best;
}

template <class T, class From>
void expect_rounded(From value) {
  const double exact = static_cast<double>(value);
  const T got(value);
  if (std::isnan(exact)) {
    EXPECT_GE(got.bits & 0x7fu, definition<T>::first_nan);
    EXPECT_EQ((got.bits & 0x80u) != 0, std::signbit(exact));
  } else {
    EXPECT_EQ(unsigned{got.bits}, encode<T>(exact)) << std::hexfloat << exact;
  }
}

template <class T>
class Float8 : public testing::Test {};
struct names {
  template <class T>
  static std::string GetName(int) {
    return std::is_same<T, float8_e4m3fn>::value ? "e4m3fn" : "e5m2";
  }
};
using formats = testing::Types<float8_e4m3fn, float8_e5m2>;
TYPED_TEST_SUITE(Float8, formats, names);

TYPED_TEST(Float8, EveryPatternHasTheValueOfItsDefinition) {
  for (unsigned k = 0; k < 256; ++k) {
    TypeParam x;
    x.bits = static_cast<std::uint8_t>(k);
    const double expected = decode<TypeParam>(k);
    const float got = static_cast<float>(x);
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(got)) << k;
      EXPECT_NE(bits_as<std::uint32_t>(got) & 0x400000u, 0u) << "a signalling NaN from " << k;
      EXPECT_EQ(std::signbit(got), k >= 128) << k;
    } else {
      EXPECT_EQ(static_cast<double>(got), expected) << k;
      EXPECT_EQ(std::signbit(got), k >= 128) << k;
      EXPECT_EQ(static_cast<double>(x), expected) << k;
      const bool saturates = std::isinf(expected);
      EXPECT_EQ(unsigned{TypeParam(got).bits}, saturates ? (k & 0x80u) | definition<TypeParam>::largest : k);
    }
  }
}

TYPED_TEST(Float8, TheLargestNumbersAreThoseOfTheSpecification) {
  constexpr bool e4m3fn = std::is_same<TypeParam, float8_e4m3fn>::value;
  const double largest = e4m3fn ? 448.0 : 57344.0;
  EXPECT_EQ(decode<TypeParam>(definition<TypeParam>::largest), largest);
  EXPECT_EQ(decode<TypeParam>(1), e4m3fn ? 0x1p-9 : 0x1p-16);
  for (const double beyond : {largest * 1.0001, largest * 1.04, largest * 1.2, 1e30, 1e300, HUGE_VAL}) {
    EXPECT_EQ(static_cast<double>(TypeParam(beyond)), largest) << beyond;
    EXPECT_EQ(static_cast<double>(TypeParam(-beyond)), -largest) << beyond;
    EXPECT_EQ(static_cast<double>(TypeParam(static_cast<float>(beyond))), largest) << beyond;
  }
}

TYPED_TEST(Float8, EverySixteenBitNumberIsRoundedToNearestEven) {
  for (unsigned k = 0; k < 65536; ++k) {
    float16 half;
    half.bits = static_cast<std::uint16_t>(k);
    expect_rounded<TypeParam>(static_cast<float>(half));
    bfloat16 brain;
    brain.bits = static_cast<std::uint16_t>(k);
    expect_rounded<TypeParam>(static_cast<float>(brain));
  }
}

// A tie between two numbers goes to the even one; the floats, and the doubles, on either side of it do not.
TYPED_TEST(Float8, TiesAndTheirNeighbours) {
  for (unsigned k = 0; k < definition<TypeParam>::largest; ++k) {
    const double tie = (decode<TypeParam>(k) + decode<TypeParam>(k + 1)) / 2;
    for (const double at : {tie, decode<TypeParam>(k)}) {
      for (const double sign : {1.0, -1.0}) {
        const float value = static_cast<float>(sign * at);
        for (const float x : {value, std::nextafter(value, HUGE_VALF), std::nextafter(value, -HUGE_VALF)}) {
          expect_rounded<TypeParam>(x);
        }
        for (const double x : {sign * at, std::nextafter(sign * at, HUGE_VAL), std::nextafter(sign * at, -HUGE_VAL)}) {
          expect_rounded<TypeParam>(x);
        }
      }
    }
  }
}

TYPED_TEST(Float8, NansKeepTheirSign) {
  for (const std::uint32_t bits : {0x7f800001u, 0x7fc00000u, 0xff800001u, 0xffffffffu}) {
    expect_rounded<TypeParam>(bits_as<float>(bits));
  }
}

}  // namespace
