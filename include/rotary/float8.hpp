// The two 8-bit floating-point formats of KV caches, as the OCP 8-bit Floating Point Specification (OFP8) defines them.
#ifndef ROTARY_FLOAT8_HPP
#define ROTARY_FLOAT8_HPP

#include "types.hpp"

namespace rotary {
inline namespace ROTARY_ABI {
namespace detail {

/// A sign, exponent and fraction in 8 bits, in terms of the bits of float.
template <unsigned FractionBits, unsigned Bias, std::uint32_t Largest, std::uint32_t Nan>
struct float8_format {
  static constexpr unsigned shift = 23 - FractionBits;                      // from its fraction to that of float
  static constexpr std::uint32_t rebias = (127 - Bias) << 23;               // from its exponent to that of float
  static constexpr std::uint32_t least_normal = rebias + (1u << 23);        // as a float
  static constexpr std::uint32_t unit = (128 - Bias - FractionBits) << 23;  // the least subnormal, as a float
  static constexpr std::uint32_t round_to_unit = unit + (23u << 23);        // a float whose ulp is that
  static constexpr std::uint32_t largest = Largest;                         // the greatest finite number
  static constexpr std::uint32_t largest_float = (Largest << shift) + rebias;
  static constexpr std::uint32_t nan = Nan;  // a quiet one
};

using e4m3fn = float8_format<3, 7, 0x7e, 0x7f>;
using e5m2 = float8_format<2, 15, 0x7b, 0x7e>;

template <class F>
std::uint8_t float_to_float8_bits(float value) {
  const std::uint32_t u = bit_cast<std::uint32_t>(value), sign = (u >> 24) & 0x80u, magnitude = u & 0x7fffffffu;
  std::uint32_t bits = F::largest;
  if (magnitude > 0x7f800000u) {
    bits = F::nan;
  } else if (magnitude < F::least_normal) {
    // The addition rounds to a multiple of the least subnormal, to nearest even.
    bits = bit_cast<std::uint32_t>(bit_cast<float>(magnitude) + bit_cast<float>(std::uint32_t{F::round_to_unit})) -
           F::round_to_unit;
  } else if (magnitude < F::largest_float) {
    const std::uint32_t half = (1u << (F::shift - 1)) - 1u + ((magnitude >> F::shift) & 1u);
    bits = (magnitude + half - F::rebias) >> F::shift;
  }
  return static_cast<std::uint8_t>(sign | bits);
}

template <class F>
float float8_bits_to_float(std::uint8_t byte) {
  const std::uint32_t sign = static_cast<std::uint32_t>(byte & 0x80u) << 24, magnitude = byte & 0x7fu;
  if (magnitude > F::largest) {  // NaN, and infinity where there is one
    const std::uint32_t quiet = magnitude > 0x7cu ? 0x400000u : 0u;
    return bit_cast<float>(sign | 0x7f800000u | (magnitude << F::shift) | quiet);
  }
  if ((magnitude << F::shift) >= (1u << 23)) return bit_cast<float>(sign | ((magnitude << F::shift) + F::rebias));
  const float subnormal = static_cast<float>(magnitude) * bit_cast<float>(std::uint32_t{F::unit});
  return bit_cast<float>(sign | bit_cast<std::uint32_t>(subnormal));
}

}  // namespace detail

/// OFP8 E4M3 (torch.float8_e4m3fn): 1 sign, 4 exponent, 3 fraction bits; up to 448, no infinity. Holds raw bits;
/// convert explicitly. Numbers are rounded to nearest, ties to even, and saturate: what lies beyond the greatest finite
/// number, infinity too, becomes that number with its sign, as the specification's saturating mode and vLLM's caches
/// have it. A NaN stays one and keeps its sign.
struct float8_e4m3fn {
  std::uint8_t bits;
  float8_e4m3fn() = default;
  explicit float8_e4m3fn(float value) : bits(detail::float_to_float8_bits<detail::e4m3fn>(value)) {}
  explicit float8_e4m3fn(double value) : float8_e4m3fn(detail::double_to_float_odd(value)) {}
  explicit operator float() const { return detail::float8_bits_to_float<detail::e4m3fn>(bits); }
  explicit operator double() const { return static_cast<double>(static_cast<float>(*this)); }
};

/// OFP8 E5M2 (torch.float8_e5m2), the upper byte of a float16: 1 sign, 5 exponent, 2 fraction bits; up to 57344. It has
/// an infinity, which converts to float's; conversion to it rounds and saturates as float8_e4m3fn does.
struct float8_e5m2 {
  std::uint8_t bits;
  float8_e5m2() = default;
  explicit float8_e5m2(float value) : bits(detail::float_to_float8_bits<detail::e5m2>(value)) {}
  explicit float8_e5m2(double value) : float8_e5m2(detail::double_to_float_odd(value)) {}
  explicit operator float() const { return detail::float8_bits_to_float<detail::e5m2>(bits); }
  explicit operator double() const { return static_cast<double>(static_cast<float>(*this)); }
};

}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
