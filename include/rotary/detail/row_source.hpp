// From a spectrum and a position to a row of cos and sin, in each of the angle modes.
#ifndef ROTARY_DETAIL_ROW_SOURCE_HPP
#define ROTARY_DETAIL_ROW_SOURCE_HPP

#include "../angles.hpp"
#include "../axes.hpp"
#include "axis_digits.hpp"

namespace rotary {
inline namespace ROTARY_ABI {

namespace detail {

/// count as a number of rows; [first, first + count) must be positions.
inline std::size_t checked_row_count(const char* function, std::int64_t count, std::int64_t first) {
  constexpr std::int64_t last = 0x7fffffffffffffff;
  if (count < 0) {
    fail("rotary::%s: count is %lld; it must be 0 or more positions.", function, static_cast<long long>(count));
  }
  if (first > 0 && count > 0 && count - 1 > last - first) {
    fail("rotary::%s: first is %lld and count is %lld; the last position may be at most 2^63 - 1.", function,
         static_cast<long long>(first), static_cast<long long>(count));
  }
  if (static_cast<std::uint64_t>(count) > static_cast<std::size_t>(-1)) {
    fail("rotary::%s: count is %lld; at most %zu rows fit into the address space.", function,
         static_cast<long long>(count), static_cast<std::size_t>(-1));
  }
  return static_cast<std::size_t>(count);
}

/// Throws unless [first, first + count) lies in the `rows` positions from `table_first` on.
inline void check_range(const char* function, std::int64_t first, std::size_t count, std::int64_t table_first,
                        std::size_t rows) {
  if (count == 0) return;
  const std::uint64_t start = static_cast<std::uint64_t>(first), last = 0x7fffffffffffffff;
  const std::uint64_t skipped = start - static_cast<std::uint64_t>(table_first);
  if (count - 1 > last - start) {
    fail("rotary::%s: first is %lld with %zu positions; the last may be at most 2^63 - 1.", function,
         static_cast<long long>(first), count);
  }
  if (first < table_first || skipped >= rows || count > rows - skipped) {
    fail(
        "rotary::%s: positions %lld to %lld are asked for; the table holds %zu positions from %lld on. Make a longer "
        "table, or a step_table, which takes any position.",
        function, static_cast<long long>(first), static_cast<long long>(start + (count - 1)), rows,
        static_cast<long long>(table_first));
  }
}

inline std::uint64_t farthest_position(std::int64_t first, std::size_t rows) {
  const std::uint64_t start = static_cast<std::uint64_t>(first), end = start + (rows - 1);
  const std::uint64_t below = first < 0 ? 0 - start : start;
  const std::uint64_t above = static_cast<std::int64_t>(end) < 0 ? 0 - end : end;
  return below > above ? below : above;
}

/// Writes rows of one spectrum, whose pairs read the positions of one axis or more. Not for two threads at once: it
/// keeps scratch rows.
class row_source {
 public:
  /// For positions up to `farthest` from 0, and for rows whose type holds numbers up to `most`.
  row_source(const spectrum& of, const axis_map& axes, angles mode, std::uint64_t farthest, double most)
      : spectrum_(of),
        axes_(axes),
        mode_(mode),
        most_(most),
        by_digits_(mode == angles::exact && of.growth().empty()),
        phasors_(of, by_digits_ ? farthest : 0),
        digits_(axes) {
    if (axes.pairs() != of.pairs()) {
      fail(
          "rotary::step_table: the axis_map has %zu pairs; the spectrum has %zu. Sections count pairs, so they sum to "
          "rotary_dim / 2.",
          axes.pairs(), of.pairs());
    }
    for (const double inv_freq : of.inv_freq()) {
      const double size = inv_freq < 0 ? -inv_freq : inv_freq;
      if (size > largest_inv_freq_) largest_inv_freq_ = size;
    }
    if (of.magnitude() > most) {
      fail("rotary::table: the spectrum's magnitude is %g; the rows' type holds numbers up to %g.", of.magnitude(),
           most);
    }
    if (mode != angles::exact && largest_inv_freq_ > float_most) {
      fail(
          "rotary::table: the spectrum has an inv_freq of %g; the float modes hold numbers up to %g. Use "
          "angles::exact.",
          largest_inv_freq_, float_most);
    }
    if (mode == angles::float32_recurrence) check_recurrence();
    any_integer_ = by_digits_ && largest_inv_freq_ < 1e280;
  }

  /// From now on also for positions up to `farthest` from 0.
  void reach(std::uint64_t farthest) {
    if (by_digits_) phasors_.reach(farthest);
  }

  /// False once it was moved from.
  bool ready() const noexcept { return phasors_.ready(); }

  std::size_t axes() const noexcept { return axes_.axes(); }

  /// True if check() refuses no integer.
  bool takes_any_integer() const noexcept { return any_integer_; }

  /// Throws where the pairs of an axis have no row for this position.
  void check(const char* function, std::int64_t position, std::size_t axis) const {
    check(function, static_cast<double>(position), axis);
  }
  void check(const char* function, double position, std::size_t axis) const {
    if (!is_finite(position)) {
      fail("rotary::%s: a position is not finite; it must be a number.", function);
    }
    const double most_angle = mode_ == angles::exact ? 1e300 : float_most;
    const double distance = position < 0 ? -position : position;
    if (distance > most_angle || distance * largest_inv_freq_ > most_angle) {
      fail("rotary::%s: position is %.17g; its angle, up to %g radians, must be below %g in this angle mode.", function,
           position, distance * largest_inv_freq_, most_angle);
    }
    const list<double>& growth = spectrum_.growth();
    for (std::size_t j = 0; j < growth.size(); ++j) {
      if (axes_[j] != axis) continue;
      const double exponent = growth[j] * (position - spectrum_.growth_center());
      constexpr double safe = 80.0;  // e^80 = 5.5e34: products with ordinary numbers stay within float
      if (exponent > safe || exponent < -safe || spectrum_.magnitude() * exp(exponent) > most_) {
        fail(
            "rotary::%s: position is %.17g; xPos with center %.17g multiplies pair %zu by e^%.3g there; from e^-80 to "
            "e^80, and up to %g in the rows' type, is safe. Move xpos::center near the positions.",
            function, position, spectrum_.growth_center(), j, exponent, most_);
      }
    }
  }

  /// The row of one token, whose position on each axis is at[axes()].
  template <class Row>
  void row(const std::int64_t* at, Row* cos, Row* sin) {
    if (by_digits_) return digits_.row(phasors_, at, cos, sin);
    for (std::size_t a = 0; a < axes(); ++a) angle_pairs(a, static_cast<double>(at[a]), cos, sin);
  }

  /// What an axis with a fraction contributes does not depend on the others: whole positions still go by digits.
  template <class Row>
  void row(const double* at, Row* cos, Row* sin) {
    std::int64_t whole[axis_map::most_axes];
    std::size_t fractions = 0;
    for (std::size_t a = 0; a < axes(); ++a) {
      const bool by_digits = by_digits_ && is_whole(at[a]);
      whole[a] = by_digits ? static_cast<std::int64_t>(at[a]) : 0;
      fractions += by_digits ? 0 : 1;
    }
    if (fractions != axes()) digits_.row(phasors_, whole, cos, sin);
    for (std::size_t a = 0; fractions != 0 && a < axes(); ++a) {
      if (!by_digits_ || !is_whole(at[a])) angle_pairs(a, at[a], cos, sin);
    }
  }

  /// The rows of positions [first, first + count).
  template <class Row>
  void rows(std::int64_t first, std::size_t count, Row* cos, Row* sin, std::ptrdiff_t row_stride) {
    if (by_digits_) return phasors_.rows(first, count, cos, sin, row_stride);
    for (std::size_t r = 0; r < count; ++r) {
      const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(r) * row_stride;
      const std::int64_t position = static_cast<std::int64_t>(static_cast<std::uint64_t>(first) + r);
      row(&position, cos + at, sin + at);
    }
  }

  /// What a position adds to those to reach, or'ed with the others'. One with a fraction is not made of digits.
  static std::uint64_t bits_to_reach(std::int64_t position) { return distance_from_zero(position); }
  static std::uint64_t bits_to_reach(double position) {
    return is_whole(position) ? distance_from_zero(static_cast<std::int64_t>(position)) : 0;
  }

 private:
  static bool is_whole(double position) {
    constexpr double integers_end = 9007199254740992.0;  // 2^53
    return position > -integers_end && position < integers_end && floor(position) == position;
  }

  static constexpr double float_most = 3e38;

  void check_recurrence() const {
    if (!(spectrum_.step_ratio() > 0.0) && spectrum_.pairs() > 1) {
      fail(
          "rotary::table: mode is angles::float32_recurrence; the spectrum must come from one rope_theta, but its "
          "inv_freq was given as a list. Use angles::exact or angles::float32.");
    }
    const double last = pow(spectrum_.step_ratio(), static_cast<double>(spectrum_.pairs()));
    if (spectrum_.pairs() > 1 && !(last > 1e-300 && last < 1e300)) {
      fail(
          "rotary::table: the spectrum's step_ratio is %g; angles::float32_recurrence needs powers of it up to the "
          "%zuth between 1e-300 and 1e300. Use angles::exact.",
          spectrum_.step_ratio(), spectrum_.pairs());
    }
  }

  // What ggml multiplies theta by: powf(rope_theta, -2.0f / rotary_dim), whose exponent is a rounded one.
  float recurrence_ratio() const {
    const float pairs = static_cast<float>(spectrum_.pairs());
    const double rope_theta = pow(spectrum_.step_ratio(), -static_cast<double>(spectrum_.pairs()));
    return powf(static_cast<float>(rope_theta), -1.0f / pairs);
  }

  // What a policy made of an angle. ggml divides by frequency factors but multiplies by its frequency scale; of a value
  // and its reciprocal the given one is a short number.
  static float changed_angle(float theta, double by) {
    const double reciprocal = 1.0 / by;
    const double error = by - static_cast<double>(static_cast<float>(by));
    const double reciprocal_error = reciprocal - static_cast<double>(static_cast<float>(reciprocal));
    const bool divisor =
        error * error > 1e-26 * by * by && reciprocal_error * reciprocal_error < 1e-26 * reciprocal * reciprocal;
    return divisor ? theta / static_cast<float>(reciprocal) : theta * static_cast<float>(by);
  }

  // The pairs that read an axis, by cos and sin of each angle.
  template <class Row>
  void angle_pairs(std::size_t axis, double position, Row* to_cos, Row* to_sin) const {
    const list<double>& inv_freq = spectrum_.inv_freq();
    const float ratio = mode_ == angles::float32_recurrence ? recurrence_ratio() : 1.0f;
    float theta = static_cast<float>(position);
    for (std::size_t j = 0; j < inv_freq.size(); ++j, theta *= ratio) {
      if (axes_[j] != axis) continue;
      double angle = position * inv_freq[j];
      if (mode_ == angles::float32) angle = static_cast<float>(position) * static_cast<float>(inv_freq[j]);
      if (mode_ == angles::float32_recurrence) {
        angle = changed_angle(theta, inv_freq[j] / pow(spectrum_.step_ratio(), static_cast<double>(j)));
      }
      const double multiplier = multiplier_at(position, j);
      to_cos[j] = static_cast<Row>(scaled(detail::cos(angle), multiplier));
      to_sin[j] = static_cast<Row>(scaled(detail::sin(angle), multiplier));
    }
  }

  double multiplier_at(double position, std::size_t j) const {
    const list<double>& growth = spectrum_.growth();
    if (growth.empty()) return spectrum_.magnitude();
    return spectrum_.magnitude() * exp(growth[j] * (position - spectrum_.growth_center()));
  }

  // The programs that the float modes follow round cos and the attention factor before they multiply them.
  double scaled(double value, double multiplier) const {
    if (mode_ == angles::exact) return value * multiplier;
    return static_cast<float>(value) * static_cast<float>(multiplier);
  }

  spectrum spectrum_;
  axis_map axes_;
  angles mode_;
  double most_;
  bool by_digits_;  // else by cos and sin of each angle
  double largest_inv_freq_ = 0.0;
  bool any_integer_ = false;
  phasors phasors_;
  axis_digits digits_;
};

}  // namespace detail
}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
