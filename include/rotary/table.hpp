// Rows of cos and sin: one per position of a range, one per token of a step, or borrowed from an engine's own cache.
#ifndef ROTARY_TABLE_HPP
#define ROTARY_TABLE_HPP

#include "detail/row_source.hpp"

namespace rotary {
inline namespace ROTARY_ABI {

/// Rows that someone else owns. cos and sin of pair j in row r are cos[r * row_stride + j * pair_step] and
/// sin[r * row_stride + j * pair_step], already multiplied by the attention factor. Every layout that engines keep:
///
///     two arrays [rows, pairs]              {c, s, rows, pairs, pairs, 1}
///     [rows, cos | sin] (vLLM, XNNPACK)     {x, x + pairs, rows, pairs, 2 * pairs, 1}
///     [rows, pairs, {cos, sin}] (ggml)      {x, x + 1, rows, pairs, 2 * pairs, 2}
///     full width, halves repeated (HF)      {c, s, rows, pairs, 2 * pairs, 1}
///     full width, each value twice          {c, s, rows, pairs, 2 * pairs, 2}
template <class T>
struct table_view {
  const T* cos;
  const T* sin;
  std::size_t rows, pairs;
  std::ptrdiff_t row_stride;        ///< elements from one row to the next; any sign
  std::ptrdiff_t pair_step = 1;     ///< 1 or 2 elements from one pair to the next
  std::int64_t first_position = 0;  ///< of row 0
  double magnitude = 1.0;           ///< attention factor in the rows; 0: they have no single one, so no inverse either
};

namespace detail {

template <class T>
inline constexpr double largest_number = 3e38;
template <>
inline constexpr double largest_number<double> = 1e308;
template <>
inline constexpr double largest_number<float16> = 65504.0;

/// Rows [rows, cos | sin]; null where there are none.
template <class T>
table_view<T> planar_rows(const T* numbers, std::size_t rows, std::size_t pairs, std::int64_t first_position,
                          double magnitude) noexcept {
  const T* const sin = numbers == nullptr ? nullptr : numbers + pairs;
  return {numbers, sin, rows, pairs, static_cast<std::ptrdiff_t>(2 * pairs), 1, first_position, magnitude};
}

}  // namespace detail

/// Rows for positions [first, first + count): made once per model, then read by every layer and thread.
/// T is float, double, float16 or bfloat16.
template <class T = float>
class table {
 public:
  /// Every entry is within half an ulp of T plus |position| * 2.3e-16 of the exact value (angles::exact); the second
  /// part is multiplied by the magnitude and by |inv_freq| where they exceed 1, and xPos has its multiplier's error
  /// besides. Memory: count * spectrum.rotary_dim() numbers. Throws rotary::error for a negative count, positions
  /// beyond std::int64_t, an angle mode that the spectrum cannot serve, or memory that is not there.
  explicit table(const spectrum& of, std::int64_t count, std::int64_t first = 0, angles mode = angles::exact)
      : pairs_(of.pairs()), first_(first), magnitude_(of.growth().empty() ? of.magnitude() : 0.0) {
    rows_ = detail::checked_row_count("table", count, first);
    if (detail::multiply_overflows(rows_, 2 * pairs_)) {
      detail::fail("rotary::table: count is %lld; %lld rows of %zu numbers exceed the address space. Use a step_table.",
                   static_cast<long long>(count), static_cast<long long>(count), 2 * pairs_);
    }
    if (rows_ == 0 || pairs_ == 0) return;
    detail::row_source source(of, mode, detail::farthest_position(first, rows_), detail::largest_number<T>);
    source.check("table", first);
    source.check("table", first + (count - 1));
    numbers_ = detail::buffer<T>(rows_ * 2 * pairs_);
    source.rows(first, rows_, numbers_.data(), numbers_.data() + pairs_, static_cast<std::ptrdiff_t>(2 * pairs_));
  }

  std::size_t size() const noexcept { return rows_; }
  std::size_t pairs() const noexcept { return pairs_; }
  std::int64_t first_position() const noexcept { return first_; }
  double magnitude() const noexcept { return magnitude_; }

  /// All rows, valid as long as the table lives.
  table_view<T> view() const noexcept {
    return detail::planar_rows(numbers_.data(), rows_, pairs_, first_, magnitude_);
  }

  /// The rows of positions [first, first + count). Throws rotary::error if the table lacks one of them.
  table_view<T> rows(std::int64_t first, std::size_t count) const {
    table_view<T> part = view();
    detail::check_range("table::rows", first, count, first_, rows_);
    if (count != 0 && part.cos != nullptr) {
      const std::ptrdiff_t skipped = static_cast<std::ptrdiff_t>(first - first_) * part.row_stride;
      part.cos += skipped;
      part.sin += skipped;
    }
    part.rows = count;
    part.first_position = first;
    return part;
  }

 private:
  detail::row_count rows_;
  std::size_t pairs_;
  std::int64_t first_;
  double magnitude_;
  detail::buffer<T> numbers_;  // [rows, cos[pairs] | sin[pairs]]
};

/// One row per token of a forward pass, for any positions: no largest length, negative and fractional ones too. Made
/// once per spectrum, which fills 16 KiB of digit tables for each pair; assigned once per step; shared by all layers. T
/// as for `table`, with the same bound.
template <class T = float>
class step_table {
 public:
  explicit step_table(const spectrum& of, angles mode = angles::exact)
      : source_(of, mode, 0xffffffffu, detail::largest_number<T>),
        pairs_(of.pairs()),
        magnitude_(of.growth().empty() ? of.magnitude() : 0.0) {}

  /// Row t becomes that of positions[t], t in [0, tokens); tokens may count a whole batch, [batch, tokens] flattened.
  /// Allocates only when tokens exceeds every number before, and where positions exceed 2^32 for the first time (up to
  /// 16 KiB for each pair more). Throws rotary::error for a position that is not finite, or
  /// where xPos has no finite multiplier; the rows are then as they were.
  void assign(const std::int32_t* position_ids, std::size_t tokens) { assign_any(position_ids, tokens); }
  void assign(const std::int64_t* position_ids, std::size_t tokens) { assign_any(position_ids, tokens); }
  void assign(const float* positions, std::size_t tokens) { assign_any(positions, tokens); }
  void assign(const double* positions, std::size_t tokens) { assign_any(positions, tokens); }

  std::size_t size() const noexcept { return rows_; }
  std::size_t pairs() const noexcept { return pairs_; }
  double magnitude() const noexcept { return magnitude_; }

  /// The rows of the last step, valid until the next assign.
  table_view<T> view() const noexcept { return detail::planar_rows(numbers_.data(), rows_, pairs_, 0, magnitude_); }

 private:
  template <class Position>
  void assign_any(const Position* at, std::size_t tokens) {
    using wide = std::conditional_t<std::is_integral<Position>::value, std::int64_t, double>;
    if (at == nullptr && tokens != 0) {
      detail::fail("rotary::step_table::assign: positions is a null pointer with %zu tokens; pass the array.", tokens);
    }
    if (!source_.ready()) {
      detail::fail("rotary::step_table::assign: this table was moved from; use the one that it became.");
    }
    std::uint64_t bits = 0;
    for (std::size_t t = 0; t < tokens; ++t) {
      source_.check("step_table::assign", wide{at[t]});
      bits |= source_.bits_to_reach(wide{at[t]});
    }
    if (detail::multiply_overflows(tokens, 2 * pairs_)) {
      detail::fail("rotary::step_table::assign: tokens is %zu; that many rows of %zu numbers exceed the address space.",
                   tokens, 2 * pairs_);
    }
    source_.reach(bits);
    if (numbers_.size() < tokens * 2 * pairs_) numbers_ = detail::buffer<T>(tokens * 2 * pairs_);
    rows_ = tokens;
    for (std::size_t t = 0; t < tokens; ++t) {
      T* row = numbers_.data() + t * 2 * pairs_;
      source_.row(wide{at[t]}, row, row + pairs_);
    }
  }

  detail::row_source source_;
  detail::row_count rows_;
  std::size_t pairs_;
  double magnitude_;
  detail::buffer<T> numbers_;  // [rows, cos[pairs] | sin[pairs]]
};

}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
