// Stands in for rotary_embedding of vLLM's CPU backend (csrc/cpu/pos_encoding.cpp): query is [tokens, heads *
// head_size] and key, which may be null, [tokens, kv_heads * head_size], each with its own token stride, rotated in
// place; positions is int64 [tokens]; cos_sin_cache is [max_position, rot_dim], the cosines and then the sines of a
// row, in the data's type (float, bfloat16, float16).
//
// What differs from vLLM: nothing in the rotation of float and bfloat16, beyond the last bit of a float. float16 is
// computed in float, as there, but on processors with AVX512-FP16, where rows of float16 mean half arithmetic. The
// cache is the engine's, and it is what is inexact: cos and sin rounded to bfloat16 are 2.0e-03 off and to
// float16 2.4e-04; vLLM makes them from float angles, 4.2e-03 off at position 131071 before that rounding (theta 10000,
// 128 channels). A table<T> has the same rows without that second error: pass its view() to rotate. engines.vllm prints
// the figures.
#ifndef ROTARY_EXAMPLES_ENGINES_VLLM_HPP
#define ROTARY_EXAMPLES_ENGINES_VLLM_HPP

#include <rotary/rotary.hpp>

#include "refuse.hpp"

namespace engines::vllm {

/// Sizes and strides count elements. hidden sizes are heads * head_size. `part` is for an engine's own threads.
template <class T>
void rotary_embedding(const std::int64_t* positions, std::int64_t tokens, T* query, std::int64_t query_hidden,
                      std::int64_t query_stride, T* key, std::int64_t key_hidden, std::int64_t key_stride,
                      std::int64_t head_size, const T* cos_sin_cache, std::int64_t max_position, std::int64_t rot_dim,
                      bool is_neox, const rotary::slice& part = {}) {
  if (head_size <= 0) refuse("vllm", "head_size", head_size, "it must be above 0.");
  if (query_hidden % head_size != 0) refuse("vllm", "query's size", query_hidden, "it must be heads * head_size.");
  const std::int64_t key_width = key != nullptr ? key_hidden : 0;
  if (key_width % head_size != 0) refuse("vllm", "key's size", key_width, "it must be heads * head_size.");
  if (rot_dim % 2 != 0) refuse("vllm", "rot_dim", rot_dim, "it must be even. Channels rotate in pairs.");
  if (cos_sin_cache == nullptr) refuse("vllm", "cos_sin_cache", 0, "it must not be null.");
  const std::size_t pairs = size("vllm", "rot_dim", rot_dim) / 2;
  const rotary::table_view<T> rows = {
      cos_sin_cache, cos_sin_cache + pairs, size("vllm", "max_position", max_position), pairs, rot_dim, 1};
  const rotary::positions where(positions, size("vllm", "tokens", tokens));
  const auto how = is_neox ? rotary::pairing::split_half : rotary::pairing::interleaved;
  const auto view = [&](T* x, std::int64_t hidden, std::int64_t stride) {
    return rotary::tensor_view<T>{x,
                                  1,
                                  size("vllm", "tokens", tokens),
                                  size("vllm", "hidden", hidden / head_size),
                                  static_cast<std::size_t>(head_size),
                                  0,
                                  stride,
                                  head_size};
  };
  const auto of_query = view(query, query_hidden, query_stride);
  const auto of_key = view(key, key_width, key_stride);
  rotary::rotate(of_query, rows, where, how, part);
  if (key != nullptr) rotary::rotate(of_key, rows, where, how, part);
}

}  // namespace engines::vllm

#endif
