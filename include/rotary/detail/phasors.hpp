// cos and sin of position * inv_freq for any position, without calling cos and sin for it.
//
// A position is a number of digits in base 256. The cosines and sines of each digit's angle lie in a table of doubles;
// a row is the complex product of its digits' rows, rounded once at the end. Each factor's angle is one product,
// rounded to half an ulp, so the angle's error is at most |position| * inv_freq * 2^-53, and each complex product adds
// about 3e-16: far below half an ulp of a float.
#ifndef ROTARY_DETAIL_PHASORS_HPP
#define ROTARY_DETAIL_PHASORS_HPP

#include "../spectrum.hpp"
#include "buffer.hpp"
#include "dispatch.hpp"

namespace rotary {
inline namespace ROTARY_ABI {
namespace detail {

/// Rows of cos and sin in double, [rows, pairs] each.
struct phasor_rows {
  buffer<double> cos, sin;

  explicit phasor_rows(std::size_t size = 0) : cos(size), sin(size) {}
};

inline std::uint64_t distance_from_zero(std::int64_t position) {
  const std::uint64_t p = static_cast<std::uint64_t>(position);
  return position < 0 ? 0 - p : p;
}

/// One row, [pairs], that lies elsewhere.
struct phasor_row {
  const double* cos;
  const double* sin;
};

class phasors {
 public:
  static constexpr std::size_t radix = 256;
  static constexpr unsigned most_digits = 4;  // in tables; what lies above 2^32 goes through cos and sin

  /// Ready for positions of up to `largest` in magnitude without a call of cos or sin; right for any.
  phasors(const spectrum& of, std::uint64_t largest)
      : inv_freq_(of.inv_freq()), pairs_(of.pairs()), one_(pairs_), high_(pairs_), product_(pairs_) {
    for (std::size_t j = 0; j < pairs_; ++j) {
      one_.cos.data()[j] = 1.0;
      one_.sin.data()[j] = 0.0;
    }
    digits_ = 1;
    while (digits_ < most_digits && (largest >> (8 * digits_)) != 0) ++digits_;
    tables_ = phasor_rows(digits_ * radix * pairs_);
    for (unsigned digit = 0; digit < digits_; ++digit) make_digit(digit, digit == 0 ? of.magnitude() : 1.0);
  }

  /// False once it was moved from.
  bool ready() const noexcept { return pairs_ == 0 || tables_.cos.size() != 0; }

  /// Positions below 256^digits() in magnitude need no call of cos or sin.
  unsigned digits() const noexcept { return digits_; }

  const list<double>& inv_freq() const noexcept { return inv_freq_; }

  /// The row that changes nothing in a product.
  phasor_row one() const noexcept { return {one_.cos.data(), one_.sin.data()}; }

  /// The row of position value * 256^digit for a value < 256, digit < digits(). Digit 0 holds the magnitude.
  phasor_row digit_row(unsigned digit, std::size_t value) const noexcept {
    const std::size_t at = (digit * radix + value) * pairs_;
    return {tables_.cos.data() + at, tables_.sin.data() + at};
  }

  /// The row of one position: cos[pairs] and sin[pairs].
  template <class Row>
  void row(std::int64_t position, Row* cos, Row* sin) {
    const std::uint64_t p = distance_from_zero(position);
    const factor high = high_part(p / radix);
    const std::size_t low = low_row(p % radix);
    multiply_rows<Row>(
        {high.cos, high.sin, tables_.cos.data() + low, tables_.sin.data() + low, pairs_, 1, position < 0, 0}, cos, sin);
  }

  /// Positions first .. first + count - 1, whose last must not exceed the largest std::int64_t.
  template <class Row>
  void rows(std::int64_t first, std::size_t count, Row* cos, Row* sin, std::ptrdiff_t row_stride) {
    const bool stream = worth_streaming(count, cos, sin, row_stride);
    std::size_t done = 0;
    while (done < count) {
      const std::int64_t position = static_cast<std::int64_t>(static_cast<std::uint64_t>(first) + done);
      const std::uint64_t p = distance_from_zero(position);
      const std::size_t digit = static_cast<std::size_t>(p % radix), left = count - done;
      // Rows of one high part: upwards to digit 255, or, below zero, where magnitudes fall, down to digit 0. Position 0
      // itself is not negative: its sine is 0, not -0.
      const std::size_t run = position >= 0 ? radix - digit : digit + (p >= radix ? 1 : 0);
      const std::size_t rows = run < left ? run : left;
      const factor high = high_part(p / radix);
      // The product job walks digits upwards; below zero that is backwards in memory, from the last row of the run.
      const std::size_t lowest = position < 0 ? digit - (rows - 1) : digit;
      const std::size_t start = position < 0 ? done + rows - 1 : done;
      const std::size_t low = low_row(lowest);
      const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(start) * row_stride;
      multiply_rows<Row>({high.cos, high.sin, tables_.cos.data() + low, tables_.sin.data() + low, pairs_, rows,
                          position < 0, position < 0 ? -row_stride : row_stride, stream},
                         cos + at, sin + at);
      done += rows;
    }
    if (stream) finish_streams();
  }

 private:
  struct factor {
    const double* cos;
    const double* sin;
  };

  // Stores past the caches need not fetch the lines first, where the rows are too many to stay in them; they need
  // aligned vectors.
  template <class Row>
  bool worth_streaming(std::size_t count, const Row* cos, const Row* sin, std::ptrdiff_t row_stride) const {
    constexpr std::size_t much = std::size_t{1} << 24, alignment = 32;
    const std::uintptr_t places = reinterpret_cast<std::uintptr_t>(cos) | reinterpret_cast<std::uintptr_t>(sin) |
                                  static_cast<std::uintptr_t>(row_stride) * sizeof(Row);
    return sizeof(Row) == sizeof(float) && count * 2 * pairs_ >= much / sizeof(Row) && places % alignment == 0;
  }

  std::size_t low_row(std::uint64_t digit) const { return static_cast<std::size_t>(digit) * pairs_; }

  void angle_row(double position, double multiplier, double* cos, double* sin) const {
    for (std::size_t j = 0; j < pairs_; ++j) {
      const double angle = position * inv_freq_[j];
      cos[j] = multiplier * detail::cos(angle);
      sin[j] = multiplier * detail::sin(angle);
    }
  }

  // 31 rows by cos and sin, 240 by one product each (every 16th by both).
  void make_digit(unsigned digit, double multiplier) {
    const double unit = static_cast<double>(std::uint64_t{1} << (8 * digit));
    double* cos = tables_.cos.data() + digit * radix * pairs_;
    double* sin = tables_.sin.data() + digit * radix * pairs_;
    const std::ptrdiff_t stride = static_cast<std::ptrdiff_t>(pairs_);
    for (std::size_t low = 0; low < 16; ++low) {
      angle_row(static_cast<double>(low) * unit, multiplier, cos + low * pairs_, sin + low * pairs_);
    }
    for (std::size_t high = 16; high < radix; high += 16) {
      angle_row(static_cast<double>(high) * unit, 1.0, high_.cos.data(), high_.sin.data());
      multiply_rows<double>({high_.cos.data(), high_.sin.data(), cos, sin, pairs_, 16, false, stride},
                            cos + high * pairs_, sin + high * pairs_);
    }
  }

  // The row of p * 256, from digit tables where p has few digits.
  factor high_part(std::uint64_t p) {
    factor result = {one_.cos.data(), one_.sin.data()};
    if (p == 0) return result;
    bool first = true;
    for (unsigned digit = 1; digit < digits_ && p != 0; ++digit, p /= radix) {
      const std::size_t d = static_cast<std::size_t>(p % radix);
      if (d == 0) continue;
      const std::size_t at = (digit * radix + d) * pairs_;
      const factor next = {tables_.cos.data() + at, tables_.sin.data() + at};
      result = first ? next : product(result, next);
      first = false;
    }
    if (p == 0) return result;
    const double unit = static_cast<double>(std::uint64_t{1} << (8 * digits_));
    angle_row(static_cast<double>(p) * unit, 1.0, high_.cos.data(), high_.sin.data());
    const factor above = {high_.cos.data(), high_.sin.data()};
    return first ? above : product(result, above);
  }

  // Into product_, which may be `a`: a lane is read before it is written.
  factor product(factor a, factor b) {
    multiply_rows<double>({a.cos, a.sin, b.cos, b.sin, pairs_, 1, false, 0}, product_.cos.data(), product_.sin.data());
    return {product_.cos.data(), product_.sin.data()};
  }

  list<double> inv_freq_;
  std::size_t pairs_;
  unsigned digits_;
  phasor_rows tables_;                // [digits, 256, pairs]; the magnitude is in those of digit 0
  phasor_rows one_, high_, product_;  // [pairs]
};

}  // namespace detail
}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
