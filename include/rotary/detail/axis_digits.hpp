// Rows whose pairs read the positions of several axes, from the digit tables of phasors.hpp.
#ifndef ROTARY_DETAIL_AXIS_DIGITS_HPP
#define ROTARY_DETAIL_AXIS_DIGITS_HPP

#include "../axes.hpp"
#include "phasors.hpp"

namespace rotary {
inline namespace ROTARY_ABI {
namespace detail {

/// As phasors::row, for a position on each axis. The digit rows of the axes are merged before they are multiplied, so
/// that there are no more products than for one axis. What a merged row got for an axis stays for the next token: along
/// the line of an image only the pairs of one axis change. A pair's entry is what its axis alone would give it.
class axis_digits {
 public:
  explicit axis_digits(const axis_map& axes)
      : axes_(axes), ends_(axes.axes()), places_(axes.axes()), masks_(several() ? axes.axes() * axes.pairs() : 0) {
    if (!several()) return;
    for (merged_row& merged : merged_) merged = merged_row(axes);
    for (std::size_t a = 0; a < axes.axes(); ++a) make_masks(a);
  }

  /// The row of a token whose position on each axis is at[axes], all within reach: cos[pairs] and sin[pairs].
  template <class Row>
  void row(const phasors& of, const std::int64_t* at, Row* cos, Row* sin) {
    if (!several() || !read(at)) return of.row(at[0], cos, sin);
    merge(of, 0);
    product_job job(merged_[0].view(), pairs(), 1);
    for (unsigned digit = 1; digit < phasors::most_digits && all_bits_ >> (8 * digit) != 0; ++digit) {
      merge(of, digit);
      job.multiply_by(merged_[digit].view());
    }
    multiply_rows<Row>(job, cos, sin);
  }

 private:
  struct range {
    std::size_t begin, end;  // of pairs
  };
  struct place {
    std::uint64_t distance;  // of the position from 0
    std::uint64_t sign;      // what a negative position changes in the sines: their highest bit
  };
  // One digit of every axis, pair by pair.
  struct merged_row {
    phasor_rows row;
    list<std::uint64_t> held;  // [axes], digit and sign

    merged_row() = default;
    explicit merged_row(const axis_map& axes) : row(axes.pairs()), held(axes.axes()) {
      for (std::uint64_t& digit : held) digit = phasors::radix;  // none
    }
    phasor_row view() const { return {row.cos.data(), row.sin.data()}; }
  };

  std::size_t pairs() const { return axes_.pairs(); }
  bool several() const { return axes_.axes() != 1; }

  void make_masks(std::size_t axis) {
    range& own = ends_.data()[axis] = {0, 0};
    for (std::size_t j = 0; j < pairs(); ++j) {
      if (axes_[j] != axis) continue;
      masks_[axis * pairs() + j] = ~std::uint64_t{0};
      // Whole cache lines, so that what is stored here is read back in the same pieces.
      if (own.end == 0) own.begin = j / 8 * 8;
      own.end = j / 8 * 8 + 8 < pairs() ? j / 8 * 8 + 8 : pairs();
    }
  }

  // False if the token has one position on all axes.
  bool read(const std::int64_t* at) {
    bool differ = false;
    all_bits_ = 0;
    for (std::size_t a = 0; a < places_.size(); ++a) {
      const place now = {distance_from_zero(at[a]), std::uint64_t{at[a] < 0} << 63};
      place& before = places_[a];
      changed_bits_ |= now.sign == before.sign ? now.distance ^ before.distance : ~std::uint64_t{0};
      all_bits_ |= now.distance;
      before = now;
      differ = differ || at[a] != at[0];
    }
    return differ;
  }

  // Brings the merged row of one digit up to date.
  void merge(const phasors& of, unsigned digit) {
    const std::uint64_t of_digit = std::uint64_t{phasors::radix - 1} << (8 * digit);
    if ((changed_bits_ & of_digit) == 0) return;
    changed_bits_ &= ~of_digit;
    merged_row& to = merged_[digit];
    for (std::size_t a = 0; a < places_.size(); ++a) {
      const place& p = places_[a];
      const std::uint64_t value = (p.distance >> (8 * digit)) % phasors::radix;
      if (to.held[a] == (value | p.sign)) continue;
      to.held[a] = value | p.sign;
      const range& own = ends_.data()[a];
      merge_row({of.digit_row(digit, value), p.sign, masks_.data() + a * pairs(), own.begin, own.end, to.row.cos.data(),
                 to.row.sin.data()});
    }
  }

  axis_map axes_;
  buffer<range> ends_;         // [axes], from the first to behind the last pair of an axis
  list<place> places_;         // [axes], of the token
  list<std::uint64_t> masks_;  // [axes, pairs], all bits set where the pair reads the axis
  merged_row merged_[phasors::most_digits];
  std::uint64_t all_bits_ = 0;               // of the distances of the token
  std::uint64_t changed_bits_ = ~all_bits_;  // of the distances since a row of their digit was merged
};

}  // namespace detail
}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
