// What rotate.hpp hands to a kernel: everything checked, nothing left to decide but the order of the work.
#ifndef ROTARY_DETAIL_JOB_HPP
#define ROTARY_DETAIL_JOB_HPP

#include "../layout.hpp"
#include "../positions.hpp"
#include "../types.hpp"

namespace rotary {
inline namespace ROTARY_ABI {
namespace detail {

/// Strides of batch, token and head, in elements.
struct strides {
  std::ptrdiff_t batch, token, head;
};

struct rotation_job {
  const void* from;  // element [0, 0, 0, 0]
  void* to;
  strides from_strides, to_strides;
  std::size_t tokens, heads, head_dim;  // per sequence, per token, per head
  std::size_t begin, end;               // (token, head) pairs of this call's slice, counted over the whole batch

  const void* cos;  // row 0
  const void* sin;
  std::ptrdiff_t row_stride, pair_step;
  std::size_t pairs;
  positions where{0};
  std::int64_t first_position;  // of row 0

  std::size_t offset;             // first rotated channel
  double cos_factor, sin_factor;  // applied to each row as it is read
  bool plain_rows;                // pair_step 1, factors 1: a row of the compute type serves as it is
  bool copies_outside;            // out of place, and channels lie outside the rotated block
  bool beyond_cache;              // the tensor is larger than a core's caches
};

/// Rows of products for the tables: row r is (high.cos + i high.sin) * (low[r].cos + i low[r].sin), rounded once.
struct product_job {
  const double* high_cos;  // [pairs]
  const double* high_sin;
  const double* low_cos;  // [rows, pairs]
  const double* low_sin;
  std::size_t pairs, rows;
  double sin_sign;            // -1 for the conjugate: the row of a negative position
  std::ptrdiff_t row_stride;  // of the results, in elements; negative where positions fall
};

}  // namespace detail
}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
