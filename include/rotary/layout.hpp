// How channels pair up inside a head, and which part of the work a call does.
#ifndef ROTARY_LAYOUT_HPP
#define ROTARY_LAYOUT_HPP

#include "detail/config.hpp"

namespace rotary {
inline namespace ROTARY_ABI {

/// Which two channels of the rotated block [0, rotary_dim) form pair j. A checkpoint is trained with one of them, and
/// the other gives wrong results without any error: look it up for the model.
enum class pairing : unsigned char {
  split_half,  ///< (j, j + rotary_dim/2): NeoX style, `rotate_half`; Llama, Qwen, Gemma, Phi in transformers
  interleaved  ///< (2j, 2j + 1): GPT-J style, complex numbers; Command-R, GLM-4, DeepSeek, llama.cpp's Llama files
};

/// Where the rotated block lies in a head and how its channels pair. Channels outside [offset, offset + rotary_dim)
/// keep their values. Converts from a `pairing` alone.
struct layout {
  rotary::pairing pairing;  ///< of the source
  std::size_t offset;       ///< first rotated channel; 128 for the rope part at the tail of DeepSeek's 192-wide heads
  rotary::pairing stored;   ///< of the destination; differs from `pairing` only out of place

  constexpr layout(rotary::pairing both = rotary::pairing::split_half, std::size_t first_channel = 0)
      : pairing(both), offset(first_channel), stored(both) {}
  /// Reads one pairing and writes the other: DeepSeek's `rope_interleave` is {interleaved, 0, split_half}.
  constexpr layout(rotary::pairing source, std::size_t first_channel, rotary::pairing destination)
      : pairing(source), offset(first_channel), stored(destination) {}
};

/// Part `index` of `count` of a call's work, for an engine's own thread pool: the parts of one call touch disjoint
/// memory, cover everything once, and give the same bits for any count (of a NaN that two NaNs meet in, only that it is
/// one). They split (token, head) pairs evenly.
struct slice {
  std::size_t index = 0;
  std::size_t count = 1;
};

}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
