// What a kernel works on: a run of heads and their rows, in the type it computes in.
#ifndef ROTARY_DETAIL_HEAD_RUN_HPP
#define ROTARY_DETAIL_HEAD_RUN_HPP

#include <type_traits>

#include "../layout.hpp"
#include "../types.hpp"

namespace rotary {
inline namespace ROTARY_ABI {
namespace detail {

/// The type to compute in: that of the table, but double where any side is double, and float for stored 16-bit numbers.
template <class From, class To, class Row>
struct compute {
  template <class T>
  static constexpr bool any = std::is_same<From, T>::value || std::is_same<To, T>::value || std::is_same<Row, T>::value;
  using type = std::conditional_t<any<double>, double, float>;
  /// Half arithmetic is asked for by data and table in float16; only some processors have it.
  static constexpr bool half =
      std::is_same<From, float16>::value && std::is_same<To, float16>::value && std::is_same<Row, float16>::value;
};

/// What scalar code computes in where vectors compute in C.
template <class C>
using scalar_of = std::conditional_t<std::is_same<C, double>::value, double, float>;

/// The channel of the rotated block that is first in a pair.
constexpr std::size_t first_member(pairing how, std::size_t pair) {
  return how == pairing::split_half ? pair : 2 * pair;
}

/// `heads` heads: pointers at the rotated block of the first, and its row in the compute type.
template <class From, class To, class C>
struct head_run {
  const From* from;
  To* to;
  std::ptrdiff_t from_stride, to_stride;
  std::size_t heads;
  const C* cos;
  const C* sin;
  std::ptrdiff_t row_step;  // from the row of a head to that of the next; 0: they share it
  std::size_t pairs;        // of this row; they may be a part of the block
  std::size_t half;         // from a channel to its partner under split_half: all pairs of the block

  /// On to the next head, and to its row if it has one of its own.
  template <bool OwnRows>
  ROTARY_INLINE void step() {
    from += from_stride;
    to += to_stride;
    if constexpr (OwnRows) {
      cos += row_step;
      sin += row_step;
    }
    --heads;
  }
};

}  // namespace detail
}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
