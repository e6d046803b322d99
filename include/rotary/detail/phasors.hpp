// cos and sin of position * inv_freq for any position, without calling cos and sin for it.
//
// A position is a number of digits in base 256, eight at most. The cosines and sines of each digit's angle lie in a
// table of doubles; a row is the complex product of its digits' rows, rounded once at the end. Each factor's angle is
// one product, rounded to half an ulp, so the angle's error is at most |position| * inv_freq * 2^-53, and each complex
// product adds about 3e-16: far below half an ulp of a float.
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

class phasors {
 public:
  static constexpr std::size_t radix = 256;
  static constexpr unsigned most_digits = 8;

  /// For positions up to `largest` in magnitude.
  phasors(const spectrum& of, std::uint64_t largest)
      : inv_freq_(of.inv_freq()), pairs_(of.pairs()), magnitude_(of.magnitude()), high_(pairs_) {
    reach(largest);
  }

  /// False once it was moved from.
  bool ready() const noexcept { return pairs_ == 0 || digits_.cos.size() != 0; }

  /// From now on also for positions up to `largest` in magnitude: more tables, if need be.
  void reach(std::uint64_t largest) {
    unsigned needed = 1;
    while (needed < most_digits && (largest >> (8 * needed)) != 0) ++needed;
    if (needed <= count_) return;
    phasor_rows longer(needed * radix * pairs_);
    const std::size_t made = count_ * radix * pairs_ * sizeof(double);
    if (made != 0) {
      std::memcpy(longer.cos.data(), digits_.cos.data(), made);
      std::memcpy(longer.sin.data(), digits_.sin.data(), made);
    }
    digits_ = std::move(longer);
    for (; count_ < needed; ++count_) make_digit(count_, count_ == 0 ? magnitude_ : 1.0);
  }

  /// The row of position value * 256^digit, value < 256. Digit 0 holds the magnitude.
  phasor_row digit_row(unsigned digit, std::uint64_t value) const noexcept {
    const std::size_t at = (digit * radix + static_cast<std::size_t>(value)) * pairs_;
    return {digits_.cos.data() + at, digits_.sin.data() + at};
  }

  /// The row of one position within reach: cos[pairs] and sin[pairs].
  template <class Row>
  void row(std::int64_t position, Row* cos, Row* sin) const {
    const std::uint64_t p = distance_from_zero(position);
    product_job job(digit_row(0, p % radix), pairs_, 1);
    job.conjugate = position < 0;
    add_high_digits(job, p);
    multiply_rows<Row>(job, cos, sin);
  }

  /// Positions first .. first + count - 1, all within reach.
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
      // The product job walks digits upwards; below zero that is backwards in memory, from the last row of the run.
      const std::size_t lowest = position < 0 ? digit - (rows - 1) : digit;
      const std::size_t start = position < 0 ? done + rows - 1 : done;
      const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(start) * row_stride;
      product_job job(digit_row(0, lowest), pairs_, rows);
      job.conjugate = position < 0;
      job.stream = stream;
      job.row_stride = position < 0 ? -row_stride : row_stride;
      if (p >= radix) job.multiply_by(high_part(p));
      multiply_rows<Row>(job, cos + at, sin + at);
      done += rows;
    }
    if (stream) finish_streams();
  }

 private:
  // Stores past the caches need not fetch the lines first, where the rows are too many to stay in them; they need whole
  // lines.
  template <class Row>
  bool worth_streaming(std::size_t count, const Row* cos, const Row* sin, std::ptrdiff_t row_stride) const {
    constexpr std::size_t much = std::size_t{1} << 24, line = 64;
    const std::uintptr_t places = reinterpret_cast<std::uintptr_t>(cos) | reinterpret_cast<std::uintptr_t>(sin) |
                                  (static_cast<std::uintptr_t>(row_stride) | pairs_) * sizeof(Row);
    return std::is_same<Row, float>::value && count * 2 * pairs_ >= much / sizeof(Row) && places % line == 0;
  }

  void angle_row(double position, double multiplier, double* cos, double* sin) const {
    for (std::size_t j = 0; j < pairs_; ++j) {
      const double angle = position * inv_freq_[j];
      cos[j] = multiplier * detail::cos(angle);
      sin[j] = multiplier * detail::sin(angle);
    }
  }

  // 16 rows by cos and sin, and 15 more that the other 240 are products with.
  void make_digit(unsigned digit, double multiplier) {
    const double unit = static_cast<double>(std::uint64_t{1} << (8 * digit));
    double* cos = digits_.cos.data() + digit * radix * pairs_;
    double* sin = digits_.sin.data() + digit * radix * pairs_;
    for (std::size_t low = 0; low < 16; ++low) {
      angle_row(static_cast<double>(low) * unit, multiplier, cos + low * pairs_, sin + low * pairs_);
    }
    for (std::size_t high = 16; high < radix; high += 16) {
      angle_row(static_cast<double>(high) * unit, 1.0, high_.cos.data(), high_.sin.data());
      product_job job({cos, sin}, pairs_, 16);
      job.row_stride = static_cast<std::ptrdiff_t>(pairs_);
      job.multiply_by({high_.cos.data(), high_.sin.data()});
      multiply_rows<double>(job, cos + high * pairs_, sin + high * pairs_);
    }
  }

  // The digits of p above the lowest.
  void add_high_digits(product_job& job, std::uint64_t p) const {
    for (unsigned digit = 1; p >= radix; ++digit) {
      p /= radix;
      if (p % radix != 0) job.multiply_by(digit_row(digit, p % radix));
    }
  }

  // The row of p without its lowest digit, as one factor.
  phasor_row high_part(std::uint64_t p) {
    product_job job({nullptr, nullptr}, pairs_, 1);
    add_high_digits(job, p);
    job.low = job.high[--job.high_count];
    if (job.high_count == 0) return job.low;
    multiply_rows<double>(job, high_.cos.data(), high_.sin.data());
    return {high_.cos.data(), high_.sin.data()};
  }

  list<double> inv_freq_;
  std::size_t pairs_;
  double magnitude_;
  unsigned count_ = 0;  // of digits
  phasor_rows digits_;  // [digits, 256, pairs]
  phasor_rows high_;    // [pairs]
};

}  // namespace detail
}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
