// The element types that the library knows, and how a project's own 16-bit types become known to it.
#ifndef ROTARY_TYPES_HPP
#define ROTARY_TYPES_HPP

#include "detail/config.hpp"

namespace rotary {
inline namespace ROTARY_ABI {
namespace detail {

// All conversions work on bits: they stay right under -ffast-math and with FTZ/DAZ set, where float arithmetic would
// drop subnormal numbers. Rounding is to nearest, ties to even; a NaN keeps its upper payload and becomes quiet.

inline float bfloat16_bits_to_float(std::uint16_t bits) {
  return bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

inline std::uint16_t float_to_bfloat16_bits(float value) {
  const std::uint32_t u = bit_cast<std::uint32_t>(value);
  if ((u & 0x7fffffffu) > 0x7f800000u) return static_cast<std::uint16_t>((u >> 16) | 0x40u);
  return static_cast<std::uint16_t>((u + 0x7fffu + ((u >> 16) & 1u)) >> 16);
}

inline float float16_bits_to_float(std::uint16_t bits) {
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t magnitude = bits & 0x7fffu;
  if (magnitude >= 0x7c00u) {  // infinity, NaN
    return bit_cast<float>(sign | 0x7f800000u | (magnitude << 13) | (magnitude > 0x7c00u ? 0x400000u : 0u));
  }
  if (magnitude >= 0x0400u) return bit_cast<float>(sign | ((magnitude << 13) + 0x38000000u));
  // Subnormal: magnitude units of 2^-24, which is a normal float.
  return bit_cast<float>(sign | bit_cast<std::uint32_t>(static_cast<float>(magnitude) * 0x1p-24f));
}

inline std::uint16_t float_to_float16_bits(float value) {
  const std::uint32_t u = bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (u >> 16) & 0x8000u;
  const std::uint32_t magnitude = u & 0x7fffffffu;
  if (magnitude > 0x7f800000u) {
    return static_cast<std::uint16_t>(sign | 0x7e00u | ((magnitude >> 13) & 0x3ffu));
  }
  if (magnitude >= 0x477ff000u) return static_cast<std::uint16_t>(sign | 0x7c00u);  // from 65520 on: infinity
  if (magnitude >= 0x38800000u) {                                                   // normal in float16
    const std::uint32_t rounded = magnitude + 0xfffu + ((magnitude >> 13) & 1u);
    return static_cast<std::uint16_t>(sign | ((rounded - 0x38000000u) >> 13));
  }
  if (magnitude <= 0x33000000u) return static_cast<std::uint16_t>(sign);  // up to 2^-25, half the least subnormal
  const std::uint32_t shift = 126u - (magnitude >> 23);                   // 14 .. 24
  const std::uint32_t significand = (magnitude & 0x7fffffu) | 0x800000u;
  const std::uint32_t half = (1u << (shift - 1)) - 1u + ((significand >> shift) & 1u);
  return static_cast<std::uint16_t>(sign | ((significand + half) >> shift));
}

// Round to odd: the nearest-even rounding of the result to float16 is the correct rounding of `value`.
inline float double_to_float_odd(double value) {
  std::uint64_t u = bit_cast<std::uint64_t>(value);
  constexpr std::uint64_t below_float = (std::uint64_t{1} << 29) - 1;
  if ((u & below_float) != 0 && is_finite(value)) u = (u & ~below_float) | (below_float + 1);
  return static_cast<float>(bit_cast<double>(u));
}

// bfloat16 has the exponents of float, so its subnormal numbers must not pass through one; as doubles they are normal.
inline double bfloat16_bits_to_double(std::uint16_t bits) {
  const std::uint32_t magnitude = bits & 0x7fffu;
  if (magnitude >= 0x80u) return static_cast<double>(bfloat16_bits_to_float(bits));
  const std::uint64_t sign = static_cast<std::uint64_t>(bits & 0x8000u) << 48;
  return bit_cast<double>(sign | bit_cast<std::uint64_t>(static_cast<double>(magnitude) * 0x1p-133));
}

inline std::uint16_t double_to_bfloat16_bits(double value) {
  const std::uint64_t u = bit_cast<std::uint64_t>(value);
  const std::uint64_t sign = (u >> 48) & 0x8000u, magnitude = u & 0x7fffffffffffffffu;
  if (magnitude > 0x7ff0000000000000u) return static_cast<std::uint16_t>(sign | 0x7fc0u | ((magnitude >> 45) & 0x7fu));
  if (magnitude >= std::uint64_t{897} << 52) {  // from 2^-126 on
    const std::uint64_t normal = ((magnitude + 0xfffffffffffu + ((magnitude >> 45) & 1u)) >> 45) - (896u << 7);
    return static_cast<std::uint16_t>(sign | (normal < 0x7f80u ? normal : 0x7f80u));
  }
  // 2^-81 has an ulp of 2^-133, bfloat16's least subnormal: the addition rounds to it, to nearest even.
  const std::uint64_t shifted = bit_cast<std::uint64_t>(bit_cast<double>(magnitude) + 0x1p-81);
  return static_cast<std::uint16_t>(sign | (shifted - bit_cast<std::uint64_t>(0x1p-81)));
}

}  // namespace detail

/// IEEE binary16: 1 sign, 5 exponent, 10 fraction bits. Holds raw bits; convert explicitly.
struct float16 {
  std::uint16_t bits;
  float16() = default;
  explicit float16(float value) : bits(detail::float_to_float16_bits(value)) {}
  explicit float16(double value) : float16(detail::double_to_float_odd(value)) {}
  explicit operator float() const { return detail::float16_bits_to_float(bits); }
  explicit operator double() const { return static_cast<double>(detail::float16_bits_to_float(bits)); }
};

/// bfloat16: the upper half of a float. Holds raw bits; convert explicitly.
struct bfloat16 {
  std::uint16_t bits;
  bfloat16() = default;
  explicit bfloat16(float value) : bits(detail::float_to_bfloat16_bits(value)) {}
  explicit bfloat16(double value) : bits(detail::double_to_bfloat16_bits(value)) {}
  explicit operator float() const { return detail::bfloat16_bits_to_float(bits); }
  explicit operator double() const { return detail::bfloat16_bits_to_double(bits); }
};

/// Tells in which format a tensor's element type T is stored: `format` is float, double, float16 or bfloat16.
/// Specialise it to use a project's own type of the same size and bits, without a conversion of its tensors:
///
///     template <> struct rotary::element<my::half> { using format = rotary::float16; };
template <class T>
struct element;

template <>
struct element<float> {
  using format = float;
};
template <>
struct element<double> {
  using format = double;
};
template <>
struct element<float16> {
  using format = float16;
};
template <>
struct element<bfloat16> {
  using format = bfloat16;
};
template <class T>
struct element<const T> : element<T> {};

template <class T>
using format_of = typename element<T>::format;

namespace detail {

// One number of a tensor, whatever its type is declared as: copied by bytes, so that no aliasing rule is broken.
template <class C, class T>
ROTARY_INLINE C load_scalar(const T* from) {
  T value;
  std::memcpy(&value, from, sizeof value);
  return static_cast<C>(value);
}

// Rounded once, to nearest even.
template <class C, class T>
ROTARY_INLINE void store_scalar(T* to, C value) {
  const T rounded = static_cast<T>(value);
  std::memcpy(to, &rounded, sizeof rounded);
}

}  // namespace detail

}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
