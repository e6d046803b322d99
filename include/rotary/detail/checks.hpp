// The contracts of a rotation, checked once per call and before anything is written.
#ifndef ROTARY_DETAIL_CHECKS_HPP
#define ROTARY_DETAIL_CHECKS_HPP

#include "job.hpp"
#include "memory_habits.hpp"
#include "row_source.hpp"

namespace rotary {
inline namespace ROTARY_ABI {
namespace detail {

/// The axes with more than one entry, smallest stride first.
struct sorted_axes {
  struct axis {
    std::size_t count;
    std::size_t stride;  // without its sign, in elements
  };
  axis axes[3];
  std::size_t size = 0;

  explicit sorted_axes(const tensor_shape& x) {
    add(x.heads, x.head_stride);
    add(x.tokens, x.token_stride);
    add(x.batch, x.batch_stride);
  }

 private:
  void add(std::size_t count, std::ptrdiff_t stride) {
    if (count < 2) return;
    const axis added = {count, absolute(stride)};
    std::size_t at = size++;
    for (; at > 0 && axes[at - 1].stride > added.stride; --at) axes[at] = axes[at - 1];
    axes[at] = added;
  }
};

/// The bytes that a tensor lies in.
struct extent {
  std::uintptr_t low;
  std::size_t bytes;
};

inline extent extent_of(const char* function, const char* argument, const tensor_shape& x) {
  const sorted_axes sorted(x);
  const std::size_t most = static_cast<std::size_t>(-1) / 2 / x.element_size;
  std::size_t reach = x.head_dim;
  bool fits = reach <= most;
  for (std::size_t i = 0; fits && i < sorted.size; ++i) {
    const std::size_t steps = sorted.axes[i].count - 1, stride = sorted.axes[i].stride;
    fits = !multiply_overflows(steps, stride) && steps * stride <= most - reach;
    reach += steps * stride;
  }
  if (!fits) {
    fail(
        "rotary::%s: %s has sizes %zu, %zu, %zu, %zu with strides %lld, %lld, %lld; that reaches beyond the "
        "address space. Check the strides: they count elements.",
        function, argument, x.batch, x.tokens, x.heads, x.head_dim, static_cast<long long>(x.batch_stride),
        static_cast<long long>(x.token_stride), static_cast<long long>(x.head_stride));
  }
  std::size_t below = 0;
  if (x.batch_stride < 0) below += (x.batch - 1) * absolute(x.batch_stride);
  if (x.token_stride < 0) below += (x.tokens - 1) * absolute(x.token_stride);
  if (x.head_stride < 0) below += (x.heads - 1) * absolute(x.head_stride);
  return {x.address - below * x.element_size, reach * x.element_size};
}

/// A tensor that is written may not hold an element twice: it would be rotated twice.
inline void check_written_once(const char* function, const tensor_shape& x, const char* argument = "the destination") {
  const sorted_axes sorted(x);
  std::size_t reach = x.head_dim;
  for (std::size_t i = 0; i < sorted.size; ++i) {
    if (sorted.axes[i].stride < reach) {
      fail(
          "rotary::%s: %s has strides %lld, %lld, %lld (batch, token, head) that let heads of %zu "
          "channels overlap; a tensor that is written needs each element once. Copy it, or pass sizes of 1 for a "
          "broadcast axis.",
          function, argument, static_cast<long long>(x.batch_stride), static_cast<long long>(x.token_stride),
          static_cast<long long>(x.head_stride), x.head_dim);
    }
    reach += (sorted.axes[i].count - 1) * sorted.axes[i].stride;
  }
}

inline bool same_places(const tensor_shape& a, const tensor_shape& b) {
  return a.address == b.address && a.element_size == b.element_size &&
         (a.batch < 2 || a.batch_stride == b.batch_stride) && (a.tokens < 2 || a.token_stride == b.token_stride) &&
         (a.heads < 2 || a.head_stride == b.head_stride);
}

inline std::size_t greatest_common_divisor(std::size_t a, std::size_t b) {
  while (b != 0) {
    const std::size_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

/// A tensor as runs of `length` bytes whose starts lie multiples of `period` bytes apart (0: there is one run).
struct runs {
  std::size_t length, period;

  explicit runs(const tensor_shape& x) : length(x.head_dim * x.element_size), period(0) {
    const sorted_axes sorted(x);
    for (std::size_t i = 0; i < sorted.size; ++i) {
      const std::size_t stride = sorted.axes[i].stride * x.element_size;
      if (period == 0 && stride == length) {
        length *= sorted.axes[i].count;
      } else {
        period = greatest_common_divisor(period, stride);
      }
    }
  }
};

/// Two tensors whose extents meet may still be disjoint, as channel slices of one buffer are. Recognises those whose
/// runs repeat with one period.
inline bool disjoint(const tensor_shape& a, const extent& in_a, const tensor_shape& b, const extent& in_b) {
  if (in_a.low + in_a.bytes <= in_b.low || in_b.low + in_b.bytes <= in_a.low) return true;
  const runs of_a(a), of_b(b);
  const std::size_t period = greatest_common_divisor(of_a.period, of_b.period);
  if (period == 0) return false;
  const std::size_t apart = in_b.low >= in_a.low ? (in_b.low - in_a.low) % period  // from a run of a to one of b
                                                 : (period - (in_a.low - in_b.low) % period) % period;
  return apart >= of_a.length && period - apart >= of_b.length;
}

inline void check_disjoint(const char* function, const char* first, const tensor_shape& a, const extent& in_a,
                           const char* second, const tensor_shape& b, const extent& in_b) {
  if (disjoint(a, in_a, b, in_b)) return;
  fail("rotary::%s: %s and %s overlap; they must be disjoint. Keep them in memory of their own.", function, first,
       second);
}

inline void check_same_sizes(const char* function, const tensor_shape& from, const tensor_shape& to) {
  if (from.batch == to.batch && from.tokens == to.tokens && from.heads == to.heads && from.head_dim == to.head_dim) {
    return;
  }
  fail(
      "rotary::%s: the source is [%zu, %zu, %zu, %zu] and the destination [%zu, %zu, %zu, %zu] (batch, tokens, "
      "heads, head_dim); they must be equal. Use channels() and heads() to take parts.",
      function, from.batch, from.tokens, from.heads, from.head_dim, to.batch, to.tokens, to.heads, to.head_dim);
}

inline void check_slice(const char* function, const slice& part) {
  if (part.index < part.count) return;
  fail("rotary::%s: slice index is %zu of count %zu; index must be below count.", function, part.index, part.count);
}

/// Of a tensor that is not empty.
inline void check_address(const char* function, const char* argument, const tensor_shape& x) {
  if (x.address != 0) return;
  fail("rotary::%s: the data pointer of %s is null; only a view with a size of zero may have none.", function,
       argument);
}

inline void check_block(const char* function, const tensor_shape& x, const rows_shape& rows, const layout& how) {
  if (rows.pairs > x.head_dim / 2 || how.offset > x.head_dim - 2 * rows.pairs) {
    fail(
        "rotary::%s: the rotated block has offset %zu and %zu channels (2 for each pair of the table); it may reach "
        "head_dim = %zu. Make the spectrum with the model's rotary_dim.",
        function, how.offset, 2 * rows.pairs, x.head_dim);
  }
  if (rows.pair_step != 1 && rows.pair_step != 2) {
    fail("rotary::%s: the table's pair_step is %lld; it must be 1 (planar) or 2 (alternating).", function,
         static_cast<long long>(rows.pair_step));
  }
  if ((rows.cos == nullptr || rows.sin == nullptr) && rows.pairs != 0 && rows.rows != 0) {
    fail("rotary::%s: the table's cos or sin is a null pointer; pass rows of cos and of sin.", function);
  }
}

inline void check_positions(const char* function, const tensor_shape& x, const rows_shape& rows,
                            const positions& where) {
  where.check(function, x.batch, x.tokens);
  if (where.consecutive()) {
    check_range(function, where.at(0, 0, x.tokens), x.tokens, rows.first_position, rows.rows);
    return;
  }
  for (std::size_t b = 0; b < x.batch; ++b) {
    for (std::size_t t = 0; t < x.tokens; ++t) {
      check_range(function, where.at(b, t, x.tokens), 1, rows.first_position, rows.rows);
    }
  }
}

inline void check_in_place(const char* function, const tensor_shape& x, const layout& how) {
  if (how.pairing != how.stored) {
    fail(
        "rotary::%s: layout.stored differs from layout.pairing; in place they must be equal. Rotate into other memory.",
        function);
  }
  // Sizes that no sum of products can carry beyond the address space need no closer look.
  const std::uint64_t counts = x.batch | x.tokens | x.heads;
  const std::uint64_t strides = absolute(x.batch_stride) | absolute(x.token_stride) | absolute(x.head_stride);
  const bool certain = sizeof(std::size_t) == 8 && counts >> 16 == 0 && (strides | x.head_dim) >> 42 == 0;
  if (!certain) extent_of(function, "the tensor", x);
  check_written_once(function, x);
}

/// Whether source and destination are the same elements; throws where they are neither that nor disjoint.
inline bool check_two_tensors(const char* function, const tensor_shape& from, const tensor_shape& to, bool same_format,
                              const layout& how) {
  if (same_format && same_places(from, to)) {
    check_in_place(function, to, how);
    return true;
  }
  const extent read = extent_of(function, "the source", from), written = extent_of(function, "the destination", to);
  check_written_once(function, to);
  if (!disjoint(from, read, to, written)) {
    fail(
        "rotary::%s: source and destination overlap without being the same elements of the same type; they must be "
        "identical (in place) or disjoint. Rotate into other memory.",
        function);
  }
  return false;
}

/// First unit of part `index` when `units` are split evenly.
inline std::size_t slice_begin(std::size_t units, std::size_t index, std::size_t count) {
  if (index == 0) return 0;
  if (index == count) return units;
  const std::size_t share = units / count, rest = units % count;
  return share * index + (index < rest ? index : rest);
}

/// Checks everything and completes the job. False: there is nothing to do.
inline bool prepare(const char* function, rotation_job& job, bool two_tensors, bool same_format, const slice& part) {
  const tensor_shape& from = job.from;
  if (two_tensors) check_same_sizes(function, from, job.to);
  check_slice(function, part);
  if (from.empty()) return false;
  check_block(function, from, job.table, job.how);
  check_address(function, "the source", from);
  check_address(function, "the destination", job.to);
  bool in_place = true;
  if (two_tensors) {
    in_place = check_two_tensors(function, from, job.to, same_format, job.how);
  } else {
    check_in_place(function, from, job.how);
  }
  check_positions(function, from, job.table, job.where);

  job.plain_rows = job.table.pair_step == 1 && job.cos_factor == 1.0 && job.sin_factor == 1.0;
  job.copies_outside = !in_place && from.head_dim != 2 * job.table.pairs;
  job.whole = part.count == 1;
  if (!job.whole) {
    const std::size_t units = from.batch * from.tokens * from.heads;
    job.begin = slice_begin(units, part.index, part.count);
    job.end = slice_begin(units, part.index + 1, part.count);
  }
  if (from.tokens > 1) choose_memory_habits(job, in_place);
  return job.table.pairs != 0 || !in_place;
}

}  // namespace detail
}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
