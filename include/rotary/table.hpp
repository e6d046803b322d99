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

/// Pairs [first, first + count) of every row, for heads whose blocks rotate one by one: Gemma-4's vision tower pairs
/// the channels of each axis among themselves, so its first half rotates with pairs_of(rows, 0, d / 4) at layout offset
/// 0, its second with pairs_of(rows, d / 4, d / 4) at offset d / 2. Throws rotary::error if they reach beyond
/// rows.pairs.
template <class T>
table_view<T> pairs_of(const table_view<T>& rows, std::size_t first, std::size_t count) {
  detail::check_part("pairs_of", first, count, "pairs", rows.pairs);
  table_view<T> part = rows;
  const std::ptrdiff_t skipped = static_cast<std::ptrdiff_t>(first) * rows.pair_step;
  if (rows.cos != nullptr) part.cos = rows.cos + skipped;
  if (rows.sin != nullptr) part.sin = rows.sin + skipped;
  part.pairs = count;
  return part;
}

namespace detail {

template <class T>
inline constexpr double largest_number = 3e38;
template <>
inline constexpr double largest_number<double> = 1e308;
template <>
inline constexpr double largest_number<float16> = 65504.0;

/// All pairs read the one position of a token.
inline axis_map one_axis(std::size_t pairs) { return axis_map(list<std::uint8_t>(pairs), 1); }

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
    detail::row_source source(of, detail::one_axis(pairs_), mode, detail::farthest_position(first, rows_),
                              detail::largest_number<T>);
    source.check("table", first, 0);
    source.check("table", first + (count - 1), 0);
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
  /// Every token has one position.
  explicit step_table(const spectrum& of, angles mode = angles::exact)
      : step_table(of, detail::one_axis(of.pairs()), mode) {}

  /// Every token has a position on each axis; pair j reads that of axes[j]. Throws rotary::error unless spectrum and
  /// map have as many pairs.
  step_table(const spectrum& of, const axis_map& axes, angles mode = angles::exact)
      : source_(of, axes, mode, 0xffffffffu, detail::largest_number<T>),
        pairs_(of.pairs()),
        magnitude_(of.growth().empty() ? of.magnitude() : 0.0) {}

  /// Row t becomes that of positions[t], t in [0, tokens); tokens may count a whole batch, [batch, tokens] flattened.
  /// Allocates only when tokens exceeds every number before, and where positions exceed 2^32 for the first time (up to
  /// 16 KiB for each pair more). Throws rotary::error for a position that is not finite, or where xPos has no finite
  /// multiplier, and for a table of several axes; the rows are then as they were.
  void assign(const std::int32_t* position_ids, std::size_t tokens) { assign_one(position_ids, tokens); }
  void assign(const std::int64_t* position_ids, std::size_t tokens) { assign_one(position_ids, tokens); }
  void assign(const float* positions, std::size_t tokens) { assign_one(positions, tokens); }
  void assign(const double* positions, std::size_t tokens) { assign_one(positions, tokens); }

  /// The same with a position on each axis of the map: row t belongs to token t of the planes. Throws rotary::error,
  /// too, unless there are as many planes as axes, and where planes overlap without being one.
  void assign(const position_planes<std::int32_t>& planes) { assign_planes(planes); }
  void assign(const position_planes<std::int64_t>& planes) { assign_planes(planes); }
  void assign(const position_planes<float>& planes) { assign_planes(planes); }
  void assign(const position_planes<double>& planes) { assign_planes(planes); }

  std::size_t size() const noexcept { return rows_; }
  std::size_t pairs() const noexcept { return pairs_; }
  std::size_t axes() const noexcept { return source_.axes(); }
  double magnitude() const noexcept { return magnitude_; }

  /// The rows of the last step, valid until the next assign.
  table_view<T> view() const noexcept { return detail::planar_rows(numbers_.data(), rows_, pairs_, 0, magnitude_); }

 private:
  template <class P>
  void assign_one(const P* at, std::size_t tokens) {
    if (axes() != 1) {
      detail::fail(
          "rotary::step_table::assign: one position a token was given; the table's axis_map has %zu axes. Pass "
          "position_planes.",
          axes());
    }
    assign_planes(position_planes<P>{at, 1, tokens, 0});
  }

  template <class P>
  void assign_planes(const position_planes<P>& planes) {
    using wide = std::conditional_t<std::is_integral<P>::value, std::int64_t, double>;
    const std::size_t tokens = planes.tokens, axes = source_.axes();
    planes.check("step_table::assign", axes);
    if (!source_.ready()) {
      detail::fail("rotary::step_table::assign: this table was moved from; use the one that it became.");
    }
    const std::uint64_t bits = check_positions<wide>(planes);
    if (detail::multiply_overflows(tokens, 2 * pairs_)) {
      detail::fail("rotary::step_table::assign: tokens is %zu; that many rows of %zu numbers exceed the address space.",
                   tokens, 2 * pairs_);
    }
    source_.reach(bits);
    if (numbers_.size() < tokens * 2 * pairs_) numbers_ = detail::buffer<T>(tokens * 2 * pairs_);
    rows_ = tokens;
    wide of_token[axis_map::most_axes];
    T* row = numbers_.data();
    for (std::size_t t = 0; t < tokens; ++t, row += 2 * pairs_) {
      for (std::size_t a = 0; a < axes; ++a) of_token[a] = planes.at(a, t);
      source_.row(of_token, row, row + pairs_);
    }
  }

  // Returns what the positions ask of the digit tables.
  template <class Wide, class P>
  std::uint64_t check_positions(const position_planes<P>& planes) const {
    const bool all_are_right = std::is_integral<P>::value && source_.takes_any_integer();
    std::uint64_t bits = 0;
    for (std::size_t a = 0; a < planes.axes; ++a) {
      for (std::size_t t = 0; t < planes.tokens; ++t) {
        const Wide position = planes.at(a, t);
        if (!all_are_right) source_.check("step_table::assign", position, a);
        bits |= source_.bits_to_reach(position);
      }
    }
    return bits;
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
