// Stands in for the loop over pairs in forward() of llama2.c's run.c: q is [dim], k is [kv_dim] inside the key cache
// (key_cache + layer * seq_len * kv_dim + pos * kv_dim), both rotated in place for one position, neighbouring channels
// paired, theta 10000.
//
// What differs from run.c: it computes pow, cos and sin in float for every pair of every layer; the angles of float are
// 4.2e-05 off in cos and sin at position 2047 and 4.2e-03 at 131071 (head_size 128). Here they are exact, from a table
// that is made once. engines.llama2c prints the figures.
#ifndef ROTARY_EXAMPLES_ENGINES_LLAMA2C_HPP
#define ROTARY_EXAMPLES_ENGINES_LLAMA2C_HPP

#include <rotary/rotary.hpp>

#include "refuse.hpp"

namespace engines::llama2c {

/// Beside the RunState: made once from the Config, read by every layer and token.
inline rotary::table<float> make_table(int head_size, int seq_len) {
  return rotary::table<float>(rotary::make_spectrum(size("llama2c", "head_size", head_size), 10000.0), seq_len);
}

inline void rope(float* q, float* k, int dim, int kv_dim, int head_size, int pos, const rotary::table<float>& table) {
  if (head_size <= 0) refuse("llama2c", "head_size", head_size, "it must be dim / n_heads, above 0.");
  if (dim % head_size != 0) refuse("llama2c", "dim", dim, "it must be a multiple of head_size.");
  if (kv_dim % head_size != 0) refuse("llama2c", "kv_dim", kv_dim, "it must be a multiple of head_size.");
  const std::size_t channels = static_cast<std::size_t>(head_size);
  if (2 * table.pairs() != channels) refuse("llama2c", "head_size", head_size, "the table was made for another.");
  const auto of_q = rotary::thd(q, 1, size("llama2c", "dim", dim) / channels, channels);
  const auto of_k = rotary::thd(k, 1, size("llama2c", "kv_dim", kv_dim) / channels, channels);
  rotary::rotate(of_q, table, pos, rotary::pairing::interleaved);
  rotary::rotate(of_k, table, pos, rotary::pairing::interleaved);
}

}  // namespace engines::llama2c

#endif
