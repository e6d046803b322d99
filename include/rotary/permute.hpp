// Weights of one pairing made into weights of the other: the order of the rows of a q or k projection decides which
// channels of its result form a pair. Not included by rotary.hpp.
#ifndef ROTARY_PERMUTE_HPP
#define ROTARY_PERMUTE_HPP

#include "error.hpp"
#include "spectrum.hpp"

namespace rotary {
inline namespace ROTARY_ABI {

/// [heads * head_dim] rows of row_bytes bytes, those of a head one after the other: the weight of a projection, whose
/// row r makes channel r % head_dim of head r / head_dim. Rows are moved whole, so they may be of any type, quantised
/// in blocks along the row too; for a bias row_bytes is the size of one element. Under GQA `heads` is the number of
/// heads of THIS projection: 4 for the k of a model with 32 heads of queries and 4 of keys.
struct projection_rows {
  std::size_t heads, head_dim, row_bytes;
  std::size_t rotary_dim;  ///< channels of a head that rotate; rows of all others stay where they are
  std::size_t offset = 0;  ///< the first of them
};

namespace detail {

enum class row_order : unsigned char { half_to_interleaved, interleaved_to_half };

// The row of the old order that is row i of the new one, in a block of rotary_dim rows.
inline std::size_t source_row(row_order order, std::size_t i, std::size_t rotary_dim) {
  const std::size_t pairs = rotary_dim / 2;
  if (order == row_order::half_to_interleaved) return i / 2 + i % 2 * pairs;
  return i < pairs ? 2 * i : 2 * (i - pairs) + 1;
}

inline void swap_bytes(unsigned char* a, unsigned char* b, std::size_t count) {
  unsigned char kept[256];
  while (count != 0) {
    const std::size_t n = count < sizeof kept ? count : sizeof kept;
    std::memcpy(kept, a, n);
    std::memcpy(a, b, n);
    std::memcpy(b, kept, n);
    a += n;
    b += n;
    count -= n;
  }
}

// Each cycle of the permutation once, from its smallest row on.
inline void permute_block_in_place(row_order order, unsigned char* block, const projection_rows& shape) {
  const auto source = [&](std::size_t i) { return source_row(order, i, shape.rotary_dim); };
  for (std::size_t first = 0; first < shape.rotary_dim; ++first) {
    std::size_t i = source(first);
    while (i > first) i = source(i);
    if (i < first) continue;
    for (; source(i) != first; i = source(i)) {
      swap_bytes(block + i * shape.row_bytes, block + source(i) * shape.row_bytes, shape.row_bytes);
    }
  }
}

// Bytes of all rows; throws error for a shape that cannot be.
inline std::size_t require_rows(const char* function, const projection_rows& shape) {
  require_rotary_dim(function, shape.rotary_dim);
  if (shape.rotary_dim > shape.head_dim || shape.offset > shape.head_dim - shape.rotary_dim) {
    fail("rotary::%s: rotary_dim is %zu and offset is %zu; together they may reach head_dim = %zu.", function,
         shape.rotary_dim, shape.offset, shape.head_dim);
  }
  if (multiply_overflows(shape.heads, shape.head_dim) ||
      multiply_overflows(shape.heads * shape.head_dim, shape.row_bytes)) {
    fail(
        "rotary::%s: the sizes are %zu heads x %zu channels x %zu bytes; their product must fit into memory. Check "
        "their order.",
        function, shape.heads, shape.head_dim, shape.row_bytes);
  }
  return shape.heads * shape.head_dim * shape.row_bytes;
}

inline void permute_rows(const char* function, row_order order, const void* from, void* to,
                         const projection_rows& shape) {
  const std::size_t bytes = require_rows(function, shape);
  if (bytes == 0) return;
  const auto start = reinterpret_cast<std::uintptr_t>(from), end = reinterpret_cast<std::uintptr_t>(to);
  if (from == nullptr || to == nullptr)
    fail("rotary::%s: %s is a null pointer; pass the rows.", function, from == nullptr ? "from" : "to");
  if (start != end && (start < end ? end - start : start - end) < bytes) {
    fail(
        "rotary::%s: from and to are %zu bytes apart; the %zu bytes of each must be the same or apart. Use another "
        "buffer.",
        function, static_cast<std::size_t>(start < end ? end - start : start - end), bytes);
  }
  const std::size_t head_bytes = shape.head_dim * shape.row_bytes, skipped = shape.offset * shape.row_bytes;
  if (start != end) std::memcpy(to, from, bytes);
  for (std::size_t h = 0; h < shape.heads; ++h) {
    permute_block_in_place(order, static_cast<unsigned char*>(to) + h * head_bytes + skipped, shape);
  }
}

}  // namespace detail

/// Rows stored for split_half become rows for interleaved: within the rotated block row 2j is the former row j and row
/// 2j + 1 the former row j + rotary_dim / 2. What llama.cpp's converter does to q and k of the Llama family. Attention
/// is unchanged if both q and k are permuted and rotated by the new pairing. `from` and `to` may be the same rows.
/// Allocates nothing. Throws error, before anything is written, for a block that does not lie in the head, sizes beyond
/// the address space, a null pointer, or buffers that overlap but are not the same.
inline void permute_half_to_interleaved(const void* from, void* to, const projection_rows& shape) {
  detail::permute_rows("permute_half_to_interleaved", detail::row_order::half_to_interleaved, from, to, shape);
}

/// The inverse: gives a Llama-family GGUF file's rows the order of the checkpoint that it was made from. Throws as
/// permute_half_to_interleaved does.
inline void permute_interleaved_to_half(const void* from, void* to, const projection_rows& shape) {
  detail::permute_rows("permute_interleaved_to_half", detail::row_order::interleaved_to_half, from, to, shape);
}

}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
