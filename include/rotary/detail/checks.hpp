// The contracts of a rotation, checked once per call and before anything is written. Free of templates: element types
// are reduced to their size.
#ifndef ROTARY_DETAIL_CHECKS_HPP
#define ROTARY_DETAIL_CHECKS_HPP

#include "job.hpp"
#include "row_source.hpp"

namespace rotary {
inline namespace ROTARY_ABI {
namespace detail {

struct tensor_shape {
  std::uintptr_t address;
  std::size_t element_size;
  std::size_t batch, tokens, heads, head_dim;
  strides by;
};

struct axis {
  std::size_t count;
  std::size_t stride;  // its magnitude, in elements
};

/// The axes with more than one entry, smallest stride first.
struct sorted_axes {
  axis axes[3];
  std::size_t size = 0;

  explicit sorted_axes(const tensor_shape& x) {
    add(x.batch, x.by.batch);
    add(x.tokens, x.by.token);
    add(x.heads, x.by.head);
  }

 private:
  void add(std::size_t count, std::ptrdiff_t stride) {
    if (count < 2) return;
    const axis added = {count, stride < 0 ? 0 - static_cast<std::size_t>(stride) : static_cast<std::size_t>(stride)};
    std::size_t at = size++;
    for (; at > 0 && axes[at - 1].stride > added.stride; --at) axes[at] = axes[at - 1];
    axes[at] = added;
  }
};

/// Bytes from the lowest to behind the highest element, and how far the lowest lies below the view's pointer.
struct extent {
  std::size_t bytes, below;
};

inline extent extent_of(const char* function, const char* argument, const tensor_shape& x) {
  const std::size_t counts[3] = {x.batch, x.tokens, x.heads};
  const std::ptrdiff_t by[3] = {x.by.batch, x.by.token, x.by.head};
  const std::size_t most = static_cast<std::size_t>(-1) / 2 / x.element_size;
  std::size_t reach = x.head_dim, below = 0;
  bool fits = reach <= most;
  for (int i = 0; fits && i < 3; ++i) {
    const std::size_t stride = by[i] < 0 ? 0 - static_cast<std::size_t>(by[i]) : static_cast<std::size_t>(by[i]);
    fits = !multiply_overflows(counts[i] - 1, stride) && (counts[i] - 1) * stride <= most - reach;
    if (!fits) break;
    reach += (counts[i] - 1) * stride;
    if (by[i] < 0) below += (counts[i] - 1) * stride;
  }
  if (!fits) {
    fail(
        "rotary::%s: %s has sizes %llu, %llu, %llu, %llu with strides %lld, %lld, %lld; that reaches beyond the "
        "address "
        "space. Check the strides: they count elements.",
        function, argument, static_cast<unsigned long long>(x.batch), static_cast<unsigned long long>(x.tokens),
        static_cast<unsigned long long>(x.heads), static_cast<unsigned long long>(x.head_dim),
        static_cast<long long>(x.by.batch), static_cast<long long>(x.by.token), static_cast<long long>(x.by.head));
  }
  return {reach * x.element_size, below * x.element_size};
}

/// A tensor that is written may not hold an element twice: it would be rotated twice.
inline void check_written_once(const char* function, const char* argument, const tensor_shape& x) {
  const sorted_axes sorted(x);
  std::size_t reach = x.head_dim;
  for (std::size_t i = 0; i < sorted.size; ++i) {
    if (sorted.axes[i].stride < reach) {
      fail(
          "rotary::%s: %s has strides %lld, %lld, %lld (batch, token, head) that let heads of %llu channels overlap; a "
          "tensor that is written needs each element once. Copy it, or pass sizes of 1 for a broadcast axis.",
          function, argument, static_cast<long long>(x.by.batch), static_cast<long long>(x.by.token),
          static_cast<long long>(x.by.head), static_cast<unsigned long long>(x.head_dim));
    }
    reach += (sorted.axes[i].count - 1) * sorted.axes[i].stride;
  }
}

inline bool same_places(const tensor_shape& a, const tensor_shape& b) {
  return a.address == b.address && a.element_size == b.element_size && (a.batch < 2 || a.by.batch == b.by.batch) &&
         (a.tokens < 2 || a.by.token == b.by.token) && (a.heads < 2 || a.by.head == b.by.head);
}

/// True where a tensor is a lattice of runs of `run` bytes at multiples of `period` bytes (0: one run) from its lowest.
struct runs {
  std::size_t run, period;

  explicit runs(const tensor_shape& x) : run(x.head_dim * x.element_size), period(0) {
    const sorted_axes sorted(x);
    for (std::size_t i = 0; i < sorted.size; ++i) {
      const std::size_t stride = sorted.axes[i].stride * x.element_size;
      if (period == 0 && stride == run) {
        run *= sorted.axes[i].count;
      } else {
        period = greatest_common_divisor(period, stride);
      }
    }
  }

  static std::size_t greatest_common_divisor(std::size_t a, std::size_t b) {
    while (b != 0) {
      const std::size_t rest = a % b;
      a = b;
      b = rest;
    }
    return a;
  }
};

/// Two tensors whose extents meet may still be disjoint, as channel slices of one buffer are. Recognises those whose
/// runs repeat with one period.
inline bool disjoint(const tensor_shape& a, const extent& a_extent, const tensor_shape& b, const extent& b_extent) {
  const std::uintptr_t a_low = a.address - a_extent.below, b_low = b.address - b_extent.below;
  if (a_low + a_extent.bytes <= b_low || b_low + b_extent.bytes <= a_low) return true;
  const runs in_a(a), in_b(b);
  const std::size_t period = runs::greatest_common_divisor(in_a.period, in_b.period);
  if (period == 0) return false;
  const std::size_t ahead = b_low >= a_low ? (b_low - a_low) % period : (period - (a_low - b_low) % period) % period;
  return ahead >= in_a.run && period - ahead >= in_b.run;
}

/// What of a table matters to a check.
struct rows_shape {
  bool null;
  std::size_t rows, pairs;
  std::ptrdiff_t pair_step;
  std::int64_t first_position;
};

inline void check_block(const char* function, const tensor_shape& x, const rows_shape& rows, const layout& how) {
  if (rows.pairs > x.head_dim / 2 || how.offset > x.head_dim - 2 * rows.pairs) {
    fail(
        "rotary::%s: the rotated block has offset %llu and %llu channels (2 for each pair of the table); it may reach "
        "head_dim = %llu. Make the spectrum with the model's rotary_dim.",
        function, static_cast<unsigned long long>(how.offset), static_cast<unsigned long long>(2 * rows.pairs),
        static_cast<unsigned long long>(x.head_dim));
  }
  if (rows.pair_step != 1 && rows.pair_step != 2) {
    fail("rotary::%s: the table's pair_step is %lld; it must be 1 (planar) or 2 (alternating).", function,
         static_cast<long long>(rows.pair_step));
  }
}

inline void check_positions(const char* function, const tensor_shape& x, const rows_shape& rows,
                            const positions& where) {
  where.check(function, x.batch, x.tokens);
  if (rows.null && rows.pairs != 0) {
    fail("rotary::%s: the table's cos or sin is a null pointer; pass rows of cos and of sin.", function);
  }
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

/// Returns whether the call works in place.
inline bool check_tensors(const char* function, const tensor_shape& from, const tensor_shape& to, bool same_format,
                          const layout& how) {
  if (from.address == 0 || to.address == 0) {
    fail("rotary::%s: the data pointer of %s is null; only a view with a size of zero may have none.", function,
         from.address == 0 ? "the source" : "the destination");
  }
  const extent from_extent = extent_of(function, "the source", from);
  const extent to_extent = extent_of(function, "the destination", to);
  check_written_once(function, "the destination", to);
  const bool in_place = same_format && same_places(from, to);
  if (!in_place && !disjoint(from, from_extent, to, to_extent)) {
    fail(
        "rotary::%s: source and destination overlap without being the same elements of the same type; they must be "
        "identical (in place) or disjoint. Rotate into other memory.",
        function);
  }
  if (in_place && how.pairing != how.stored) {
    fail(
        "rotary::%s: layout.stored differs from layout.pairing; in place they must be equal. Rotate into other memory.",
        function);
  }
  return in_place;
}

inline void check_same_sizes(const char* function, const tensor_shape& from, const tensor_shape& to) {
  if (from.batch == to.batch && from.tokens == to.tokens && from.heads == to.heads && from.head_dim == to.head_dim) {
    return;
  }
  fail(
      "rotary::%s: the source is [%llu, %llu, %llu, %llu] and the destination [%llu, %llu, %llu, %llu] (batch, tokens, "
      "heads, head_dim); they must be equal. Use channels() and heads() to take parts.",
      function, static_cast<unsigned long long>(from.batch), static_cast<unsigned long long>(from.tokens),
      static_cast<unsigned long long>(from.heads), static_cast<unsigned long long>(from.head_dim),
      static_cast<unsigned long long>(to.batch), static_cast<unsigned long long>(to.tokens),
      static_cast<unsigned long long>(to.heads), static_cast<unsigned long long>(to.head_dim));
}

inline void check_slice(const char* function, const slice& part) {
  if (part.index < part.count) return;
  fail("rotary::%s: slice index is %llu of count %llu; index must be below count.", function,
       static_cast<unsigned long long>(part.index), static_cast<unsigned long long>(part.count));
}

/// First unit of part `index` when `units` are split evenly.
inline std::size_t slice_begin(std::size_t units, std::size_t index, std::size_t count) {
  if (index == 0) return 0;
  if (index == count) return units;
  const std::size_t share = units / count, rest = units % count;
  return share * index + (index < rest ? index : rest);
}

}  // namespace detail
}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
