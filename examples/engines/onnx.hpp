// Stands in for RotaryEmbedding of ONNX Runtime's com.microsoft domain and of ONNX's opset 23: x is [batch, tokens,
// hidden], or [batch, heads, tokens, head_size], dense; cos and sin are caches [max, rotary_dim / 2] of x's type, and
// position_ids int64, [1] (the first token's; com.microsoft only) or [batch, tokens]. Without position_ids, opset 23
// has caches [batch, tokens, rotary_dim / 2]. Out of place or in place; channels that do not rotate are copied.
//
// What differs from ONNX Runtime: nothing but the last bit of a float; float16 is rounded once, but not on processors
// with AVX512-FP16, where rows of float16 mean half arithmetic. The caches are the model's, and they are what is
// inexact: exporters make them from float angles, 4.2e-03 off at position 131071 (theta 10000, 128 channels). Of caches
// as wide as half a head, a smaller rotary_embedding_dim reads the first columns, as the tests of onnx 1.18 have it;
// ONNX Runtime refuses them in opset 23. `scale` must be 1, which ONNX Runtime does not look at. engines.onnx prints
// the figures.
#ifndef ROTARY_EXAMPLES_ENGINES_ONNX_HPP
#define ROTARY_EXAMPLES_ENGINES_ONNX_HPP

#include <cstring>
#include <rotary/rotary.hpp>

#include "refuse.hpp"

namespace engines::onnx {

struct shape {
  std::size_t rank;
  std::int64_t dims[4];
};

/// The node's attributes; 0 is "not given". is_packed_batching lets a sequence be longer than the caches, whose rows
/// its positions still have to be.
struct attributes {
  std::int64_t interleaved = 0, num_heads = 0, rotary_embedding_dim = 0, is_packed_batching = 0;
  float scale = 1.0f;
};

template <class T>
struct caches {
  const T *cos, *sin;
  shape of;  // of each
};

namespace detail {

/// batch * tokens.
inline std::size_t rows_of(const shape& of) {
  if (of.rank != 3 && of.rank != 4) {
    refuse("onnx", "rank of x", static_cast<std::int64_t>(of.rank), "it must be 3 or 4.");
  }
  return size("onnx", "batch", of.dims[0]) * size("onnx", "sequence length", of.dims[of.rank - 2]);
}

template <class T>
rotary::tensor_view<T> view(T* x, const shape& of, const attributes& node, std::int64_t rotary_dim) {
  std::size_t d[4] = {};
  for (std::size_t i = 0; i < of.rank; ++i) d[i] = size("onnx", "dimension of x", of.dims[i]);
  const auto of_node = size("onnx", "num_heads", node.num_heads);
  if (of.rank == 4) {
    if (of_node != 0 && of_node != d[1]) refuse("onnx", "num_heads", node.num_heads, "x has another axis of heads.");
    return rotary::bhsd(x, d[0], d[1], d[2], d[3]);
  }
  if (of_node == 0 && node.rotary_embedding_dim != 0) {
    refuse("onnx", "num_heads", 0, "x of 3 axes needs it beside rotary_embedding_dim.");
  }
  const std::size_t width = static_cast<std::size_t>(rotary_dim), heads = of_node != 0 ? of_node : d[2] / width;
  if (heads == 0 || d[2] % heads != 0 || (of_node == 0 && heads * width != d[2])) {
    refuse("onnx", "hidden size", of.dims[2], "it must be a multiple of num_heads, or of twice the caches' width.");
  }
  return rotary::bshd(x, d[0], d[1], heads, d[2] / heads);
}

/// Rotates by caches of `rows` rows, of which `where` tells each token's.
template <class T>
void run(const T* x, const shape& of, const caches<T>& by, const attributes& node, std::int64_t rows,
         const rotary::positions& where, T* output, const rotary::slice& part) {
  const std::int64_t width = by.of.dims[by.of.rank - 1];
  if (width <= 0 || width > INT64_MAX / 2) {
    refuse("onnx", "the caches' width", width, "it must be above 0, and a head twice as wide.");
  }
  const auto from = view(x, of, node, 2 * width);
  const std::size_t asked = size("onnx", "rotary_embedding_dim", node.rotary_embedding_dim);
  const std::size_t rotary_dim = asked != 0 ? asked : from.head_dim, twice = 2 * static_cast<std::size_t>(width);
  if (rotary_dim % 2 != 0 || (twice != rotary_dim && twice != from.head_dim)) {
    refuse("onnx", "rotary dim", static_cast<std::int64_t>(rotary_dim),
           "it must be even, and the caches half as wide, or half as wide as a head.");
  }
  const float one = 1.0f;  // compared by its bits: under -ffast-math a NaN may equal any number
  if (std::memcmp(&node.scale, &one, sizeof one) != 0) refuse("onnx", "scale", node.scale, "it must be 1.");
  const rotary::table_view<T> table = {by.cos, by.sin, size("onnx", "rows", rows), twice / 2, width, 1};
  rotary::rotate(from, view(output, of, node, 2 * width), rotary::pairs_of(table, 0, rotary_dim / 2), where,
                 node.interleaved != 0 ? rotary::pairing::interleaved : rotary::pairing::split_half, part);
}

}  // namespace detail

/// com.microsoft.RotaryEmbedding; `part` is for a pool of threads.
template <class T>
void microsoft_rotary_embedding(const T* x, const shape& of, const std::int64_t* position_ids, std::size_t ids,
                                const caches<T>& by, const attributes& node, T* output,
                                const rotary::slice& part = {}) {
  const std::size_t all = detail::rows_of(of);
  if (position_ids == nullptr) refuse("onnx", "position_ids", 0, "this operator needs them.");
  const std::int64_t tokens = of.dims[of.rank - 2], rows = by.of.dims[0];
  if (by.of.rank != 2) refuse("onnx", "rank of the caches", static_cast<std::int64_t>(by.of.rank), "it must be 2.");
  if (node.is_packed_batching == 0 && tokens > rows)
    refuse("onnx", "sequence length", tokens, "the caches end before.");
  if (ids != 1 && ids != all) {
    refuse("onnx", "size of position_ids", static_cast<std::int64_t>(ids), "it must be 1 or batch * tokens.");
  }
  const rotary::positions where = ids == 1 ? rotary::positions(*position_ids) : rotary::positions(position_ids, ids);
  detail::run(x, of, by, node, rows, where, output, part);
}

/// ai.onnx RotaryEmbedding-23; position_ids, [batch, tokens], may be null.
template <class T>
void rotary_embedding(const T* x, const shape& of, const caches<T>& by, const std::int64_t* position_ids,
                      const attributes& node, T* output, const rotary::slice& part = {}) {
  const std::size_t tokens = detail::rows_of(of);
  const std::size_t rank = position_ids != nullptr ? 2 : 3;
  if (by.of.rank != rank) {
    refuse("onnx", "rank of the caches", static_cast<std::int64_t>(by.of.rank),
           "it must be 2 with position_ids, else 3.");
  }
  if (position_ids != nullptr) {
    return detail::run(x, of, by, node, by.of.dims[0], {position_ids, tokens}, output, part);
  }
  if (by.of.dims[0] != of.dims[0] || by.of.dims[1] != of.dims[of.rank - 2]) {
    refuse("onnx", "the caches' axis 0", by.of.dims[0], "their axes 0 and 1 must be batch and tokens.");
  }
  detail::run(x, of, by, node, static_cast<std::int64_t>(tokens), rotary::positions::one_row_a_token(), output, part);
}

}  // namespace engines::onnx

#endif
