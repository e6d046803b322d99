// One call of a rotation as plain data, free of templates: filled by run_rotation.hpp, checked by checks.hpp, done by a
// kernel.
#ifndef ROTARY_DETAIL_JOB_HPP
#define ROTARY_DETAIL_JOB_HPP

#include "../layout.hpp"
#include "../positions.hpp"
#include "../types.hpp"

namespace rotary {
inline namespace ROTARY_ABI {
namespace detail {

ROTARY_INLINE std::size_t absolute(std::ptrdiff_t stride) {
  return stride < 0 ? 0 - static_cast<std::size_t>(stride) : static_cast<std::size_t>(stride);
}

/// A tensor_view without its element type. Strides in elements.
struct tensor_shape {
  std::uintptr_t address;  // of element [0, 0, 0, 0]
  std::size_t element_size;
  std::size_t batch, tokens, heads, head_dim;
  std::ptrdiff_t batch_stride, token_stride, head_stride;

  ROTARY_INLINE bool empty() const { return batch == 0 || tokens == 0 || heads == 0 || head_dim == 0; }
  /// True if each token begins a head's stride after the last head of the one before it; false for tokens of one head,
  /// which have no head stride.
  ROTARY_INLINE bool tokens_adjoin() const { return token_stride == static_cast<std::ptrdiff_t>(heads) * head_stride; }
  ROTARY_INLINE std::ptrdiff_t at(std::size_t b, std::size_t t, std::size_t h) const {
    return static_cast<std::ptrdiff_t>(b) * batch_stride + static_cast<std::ptrdiff_t>(t) * token_stride +
           static_cast<std::ptrdiff_t>(h) * head_stride;
  }
};

/// A table_view without its element type.
struct rows_shape {
  const void* cos;
  const void* sin;
  std::size_t rows, pairs;
  std::ptrdiff_t row_stride, pair_step;
  std::int64_t first_position;
};

struct rotation_job {
  tensor_shape from, to;
  rows_shape table;
  positions where;
  layout how;
  double cos_factor, sin_factor;  // multiply each row as it is read

  // What the checks find out.
  bool whole = true;               // one slice: begin and end need not be looked at
  std::size_t begin = 0, end = 0;  // (token, head) pairs of this call's slice, counted over the whole batch
  bool plain_rows = false;         // pair_step 1, factors 1: a row of the compute type serves as it is
  bool copies_outside = false;     // out of place, and channels lie outside the rotated block
  bool prefetch = false;
  bool prefetch_jumps = false;           // where heads are the inner axis although tokens lie closer together
  std::ptrdiff_t prefetch_distance = 0;  // in bytes, where tokens adjoin; 0, or where they do not: the next token
  bool in_order = false;                 // heads that share a row: each once, its lines in the order of addresses
  bool by_address = false;  // q, k and v token by token; where tokens come before heads, all of them at once
  bool streams = false;     // write past the caches

  // Not an aggregate: compilers clear a large one as a whole before they fill it, which costs more than a head.
  rotation_job(const tensor_shape& source, const tensor_shape& destination, const rows_shape& rows,
               const positions& positions_of_tokens, const layout& arrangement, double cos_multiplier,
               double sin_multiplier)
      : from(source),
        to(destination),
        table(rows),
        where(positions_of_tokens),
        how(arrangement),
        cos_factor(cos_multiplier),
        sin_factor(sin_multiplier) {}
};

/// A row of cos and sin in double, [pairs] each, that lies elsewhere.
struct phasor_row {
  const double* cos;
  const double* sin;
};

/// Rows for the tables: high[0] * high[1] * ... * low, complex numbers, rounded once.
struct product_job {
  static constexpr unsigned most_high = 7;
  phasor_row low;              // [rows, pairs]
  phasor_row high[most_high];  // [pairs], the same for all rows
  unsigned high_count = 0;
  std::size_t pairs, rows;
  bool conjugate = false;         // negate the sines: rows of negative positions
  bool stream = false;            // write past the caches
  std::ptrdiff_t row_stride = 0;  // of the results, in elements; negative where positions fall

  product_job(phasor_row lowest, std::size_t of_pairs, std::size_t row_count)
      : low(lowest), pairs(of_pairs), rows(row_count) {}

  void multiply_by(phasor_row factor) { high[high_count++] = factor; }
};

/// Pairs [begin, end) of a row of cos and sin, as far as the mask has all bits set, put into another row.
struct merge_job {
  phasor_row from;     // [pairs], as all below
  std::uint64_t sign;  // bits to change in the sines
  const std::uint64_t* mask;
  std::size_t begin, end;
  double* cos;
  double* sin;
};

}  // namespace detail
}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
