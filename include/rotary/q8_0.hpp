// ggml's q8_0: 32 numbers as 8-bit integers with one scale.
#ifndef ROTARY_Q8_0_HPP
#define ROTARY_Q8_0_HPP

#include "types.hpp"

namespace rotary {
inline namespace ROTARY_ABI {

/// A block of 32 neighbouring channels: channel i is values[i] * scale. 34 bytes, ggml's block_q8_0.
///
/// Numbers become a block as in ggml's quantize_row_q8_0_ref: d = max |x| / 127, values[i] = round(x * (1 / d)) with
/// halves away from zero, scale = d rounded to float16; so each is within 0.5003 * d + |x| / 2048 of its channel where
/// float16 holds d as a normal number. A block with an infinity or a NaN becomes NaN as a whole (scale NaN, values 0),
/// where ggml's result is undefined; one whose d is a subnormal float becomes zeros.
struct q8_0 {
  static constexpr std::size_t channels = 32;
  float16 scale;
  std::int8_t values[channels];
};
static_assert(sizeof(q8_0) == 34 && alignof(q8_0) == 2, "q8_0 has the layout of ggml's block_q8_0");

namespace detail {

/// What a block stores as its scale, and what its numbers are multiplied by.
struct q8_0_scale {
  float16 stored;
  float inverse;
};

/// From the bits of the largest magnitude in a block, which are 0x7f800000 or more if it is not finite. Each quotient
/// is rounded once, even where -ffast-math makes a product of it: double has digits to spare.
inline q8_0_scale q8_0_scale_for(std::uint32_t largest) {
  q8_0_scale result = {};
  result.stored.bits = 0x7e00u;
  if (largest >= 0x7f800000u) return result;
  const float d = static_cast<float>(static_cast<double>(bit_cast<float>(largest)) / 127.0);
  result.stored = float16(d);
  if (bit_cast<std::uint32_t>(d) >= 0x00800000u) result.inverse = static_cast<float>(1.0 / static_cast<double>(d));
  return result;
}

}  // namespace detail
}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
