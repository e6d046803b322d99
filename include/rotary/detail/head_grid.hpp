// What a kernel works on: a grid of heads and their rows, in the type it computes in.
#ifndef ROTARY_DETAIL_HEAD_GRID_HPP
#define ROTARY_DETAIL_HEAD_GRID_HPP

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

/// True for bfloat16 that is computed in float two neighbours a lane, the twins of lanes.inl.
template <class From, class To, class C>
constexpr bool is_twin =
    std::is_same<C, float>::value&& std::is_same<From, bfloat16>::value&& std::is_base_of<bfloat16, To>::value;

/// The channel of the rotated block that is first in a pair.
constexpr std::size_t first_member(pairing how, std::size_t pair) {
  return how == pairing::split_half ? pair : 2 * pair;
}

/// One axis of a grid of heads: how many lie along it, and the elements from one to the next in source, destination and
/// rows of cos and sin (0: they share a row).
struct head_axis {
  std::size_t count;
  std::ptrdiff_t from, to, row;
};

/// Heads along two axes: pointers at the rotated block of the first, and its row in the compute type. Either the inner
/// heads are those of one token and share its row, and the outer axis is that of the tokens, or the other way round.
template <class From, class To, class C>
struct head_grid {
  const From* from;
  To* to;
  const C* cos;
  const C* sin;
  head_axis inner, outer;
  std::size_t pairs;     // of these rows; they may be a part of the block
  std::size_t half;      // from a channel to its partner under split_half: all pairs of the block
  std::ptrdiff_t ahead;  // bytes from a head to one that is worth prefetching; 0: none is
  bool in_order;         // heads that share a row: each once, its lines in the order of addresses

  // Not an aggregate: compilers clear a large one as a whole before they fill it, which costs more than a head.
  head_grid(const From* first, To* first_to, const C* first_cos, const C* first_sin, const head_axis& inside,
            const head_axis& outside, std::size_t row_pairs, std::size_t block_pairs, std::ptrdiff_t bytes_ahead,
            bool lines_in_order)
      : from(first),
        to(first_to),
        cos(first_cos),
        sin(first_sin),
        inner(inside),
        outer(outside),
        pairs(row_pairs),
        half(block_pairs),
        ahead(bytes_ahead),
        in_order(lines_in_order) {}

  /// On to the next head along `axis`.
  ROTARY_INLINE void step(const head_axis& axis) {
    from += axis.from;
    to += axis.to;
    cos += axis.row;
    sin += axis.row;
  }
};

}  // namespace detail
}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
