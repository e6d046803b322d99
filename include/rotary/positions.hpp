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

  /// Token t of sequence b has position offsets[b] + t: decoding a batch whose sequences differ in length. Of sequences
  /// padded on the left to `tokens`, offsets[b] = length[b] - tokens: the padding has positions below 0, which a table
  /// from a negative first position, or a step_table, holds as well.
  static positions per_sequence(const std::int32_t* offsets, std::size_t batch) noexcept {
    return {kind::offsets32, offsets, batch};
  }
  static positions per_sequence(const std::int64_t* offsets, std::size_t batch) noexcept {
    return {kind::offsets64, offsets, batch};
  }

  /// Sequences that differ in length, one after the other in a view of one batch (thd): tokens [cu_seqlens[s],
  /// cu_seqlens[s + 1]) are sequence s, and the first of them has position 0, or offsets[s], [sequences], where its
  /// earlier tokens are cached. cu_seqlens, [sequences + 1], starts with 0, never falls, and ends with the number of
  /// tokens; that is checked by the call that uses it. Needs no memory, but a binary search for each token.
  template <class Integer>
  static positions ragged(const Integer* cu_seqlens, std::size_t sequences, const Integer* offsets = nullptr) noexcept {
    static_assert(std::is_same<Integer, std::int32_t>::value || std::is_same<Integer, std::int64_t>::value,
                  "cu_seqlens is of std::int32_t or std::int64_t");
    positions made(sizeof(Integer) == 4 ? kind::ragged32 : kind::ragged64, cu_seqlens, sequences);
    made.offsets_ = offsets;
    return made;
  }

  /// Row b * tokens + t for token t of sequence b: for a table_view whose rows are the tokens of this call
  /// and whose first_position is 0.
  static positions one_row_a_token() noexcept { return {kind::token, nullptr, 0}; }

  /// Throws rotary::error where what was given does not fit [batch, tokens].
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
    if (kind_ == kind::ragged32) check_ragged<std::int32_t>(function, batch, tokens);
    if (kind_ == kind::ragged64) check_ragged<std::int64_t>(function, batch, tokens);
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
      case kind::ragged32:
        return in_sequence<std::int32_t>(t);
      case kind::ragged64:
        return in_sequence<std::int64_t>(t);
      default:
        return static_cast<std::int64_t>(b * tokens + t);
    }
  }

 private:
  enum class kind : unsigned char { first, ids32, ids64, offsets32, offsets64, ragged32, ragged64, token };
  positions(kind k, const void* values, std::size_t count) noexcept : kind_(k), ids_(values), count_(count) {}
  static std::int64_t sum(std::int64_t first, std::size_t t) noexcept {
    return static_cast<std::int64_t>(static_cast<std::uint64_t>(first) + t);
  }

  template <class Integer>
  ROTARY_NOINLINE void check_ragged(const char* function, std::size_t batch, std::size_t tokens) const {
    const Integer* const starts = static_cast<const Integer*>(ids_);
    if (batch > 1) {
      detail::fail("rotary::%s: cu_seqlens was given; the view has %zu sequences, and must be flattened to 1. Use thd.",
                   function, batch);
    }
    if (starts == nullptr) {
      detail::fail("rotary::%s: cu_seqlens is a null pointer with %zu sequences; pass the array.", function, count_);
    }
    if (starts[0] != 0) {
      detail::fail("rotary::%s: cu_seqlens[0] is %lld; it must be 0. Slice the tensor, not cu_seqlens.", function,
                   static_cast<long long>(starts[0]));
    }
    for (std::size_t s = 0; s < count_; ++s) {
      if (starts[s + 1] >= starts[s]) continue;
      detail::fail("rotary::%s: cu_seqlens[%zu] is %lld after %lld; it must not fall. Give cumulative lengths.",
                   function, s + 1, static_cast<long long>(starts[s + 1]), static_cast<long long>(starts[s]));
    }
    if (static_cast<std::uint64_t>(starts[count_]) != tokens) {
      detail::fail(
          "rotary::%s: cu_seqlens ends with %lld; the view has %zu tokens, which must be equal. Check sequences.",
          function, static_cast<long long>(starts[count_]), tokens);
    }
  }

  // The last sequence that starts at or before token t, the others there being empty.
  template <class Integer>
  ROTARY_NOINLINE std::int64_t in_sequence(std::size_t t) const noexcept {
    const Integer* const starts = static_cast<const Integer*>(ids_);
    std::size_t first = 0, behind = count_;
    while (behind - first > 1) {
      const std::size_t middle = first + (behind - first) / 2;
      (static_cast<std::uint64_t>(starts[middle]) <= t ? first : behind) = middle;
    }
    const std::int64_t offset = offsets_ == nullptr ? 0 : static_cast<const Integer*>(offsets_)[first];
    return sum(offset, t - static_cast<std::size_t>(starts[first]));
  }

  kind kind_;
  const void* ids_ = nullptr;
  const void* offsets_ = nullptr;  // of ragged sequences
  std::size_t count_ = 0;
  std::int64_t first_ = 0;
};

}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
