// Which position each token of a call has.
#ifndef ROTARY_POSITIONS_HPP
#define ROTARY_POSITIONS_HPP

#include <type_traits>

#include "error.hpp"

namespace rotary {
inline namespace ROTARY_ABI {

/// The positions of [batch, tokens]. Converts from one integer (the position of each sequence's first token); arrays
/// are borrowed and must live until the call returns. Any value is legal here, negative ones too; a table that lacks
/// one refuses it before anything is written.
class positions {
 public:
  /// Token t of every sequence has position first + t.
  /// Throws rotary::error for an unsigned one beyond std::int64_t.
  template <class Integer,
            class = std::enable_if_t<std::is_integral<Integer>::value && !std::is_same<Integer, bool>::value>>
  positions(Integer first) : kind_(kind::first), first_(static_cast<std::int64_t>(first)) {
    if (std::is_unsigned<Integer>::value && first_ < 0) {
      detail::fail("rotary::positions: first is %zu; it must be at most 2^63 - 1.", static_cast<std::size_t>(first));
    }
  }

  /// `position_ids`: count is tokens (all sequences share them) or batch * tokens (row-major [batch, tokens]).
  positions(const std::int32_t* ids, std::size_t count) noexcept : kind_(kind::ids32), ids_(ids), count_(count) {}
  positions(const std::int64_t* ids, std::size_t count) noexcept : kind_(kind::ids64), ids_(ids), count_(count) {}

  /// Token t of sequence b has position offsets[b] + t: decoding a batch whose sequences differ in length.
  static positions per_sequence(const std::int32_t* offsets, std::size_t batch) noexcept {
    return {kind::offsets32, offsets, batch};
  }
  static positions per_sequence(const std::int64_t* offsets, std::size_t batch) noexcept {
    return {kind::offsets64, offsets, batch};
  }

  /// Row b * tokens + t for token t of sequence b: for a table_view whose rows are the tokens of this call
  /// and whose first_position is 0.
  static positions one_row_a_token() noexcept { return {kind::token, nullptr, 0}; }

  /// Throws rotary::error where the number of positions given does not fit [batch, tokens].
  void check(const char* function, std::size_t batch, std::size_t tokens) const {
    const bool offsets = kind_ == kind::offsets32 || kind_ == kind::offsets64;
    const bool ids = kind_ == kind::ids32 || kind_ == kind::ids64;
    if (offsets && count_ != batch) {
      detail::fail("rotary::%s: %zu positions per sequence were given; the view has %zu sequences.", function, count_,
                   batch);
    }
    if (ids && count_ != tokens && (tokens == 0 || count_ % tokens != 0 || count_ / tokens != batch)) {
      detail::fail(
          "rotary::%s: %zu positions were given; the view has %zu sequences of %zu tokens, so give tokens or "
          "batch * tokens of them.",
          function, count_, batch, tokens);
    }
    if ((ids || offsets) && ids_ == nullptr && count_ != 0) {
      detail::fail("rotary::%s: positions is a null pointer with %zu values; pass the array.", function, count_);
    }
  }

  /// True if token t of every sequence has position first + t, for one first; then only two values need a look.
  bool consecutive() const noexcept { return kind_ == kind::first; }

  /// That first position; meaningless unless consecutive().
  std::int64_t first() const noexcept { return first_; }

  /// The position of token t in sequence b, modulo 2^64 (a table finds a wrapped one outside its range).
  std::int64_t at(std::size_t b, std::size_t t, std::size_t tokens) const noexcept {
    switch (kind_) {
      case kind::first:
        return sum(first_, t);
      case kind::ids32:
        return static_cast<const std::int32_t*>(ids_)[count_ == tokens ? t : b * tokens + t];
      case kind::ids64:
        return static_cast<const std::int64_t*>(ids_)[count_ == tokens ? t : b * tokens + t];
      case kind::offsets32:
        return sum(static_cast<const std::int32_t*>(ids_)[b], t);
      case kind::offsets64:
        return sum(static_cast<const std::int64_t*>(ids_)[b], t);
      default:
        return static_cast<std::int64_t>(b * tokens + t);
    }
  }

 private:
  enum class kind : unsigned char { first, ids32, ids64, offsets32, offsets64, token };
  positions(kind k, const void* values, std::size_t count) noexcept : kind_(k), ids_(values), count_(count) {}
  static std::int64_t sum(std::int64_t first, std::size_t t) noexcept {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(first) + t);
  }

  kind kind_;
  const void* ids_ = nullptr;
  std::size_t count_ = 0;
  std::int64_t first_ = 0;
};

}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
