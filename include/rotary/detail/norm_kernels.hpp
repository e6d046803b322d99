// The kernels of the best backend for heads that are normalised and rotated.
#ifndef ROTARY_DETAIL_NORM_KERNELS_HPP
#define ROTARY_DETAIL_NORM_KERNELS_HPP

#include "../rms_norm.hpp"
#include "dispatch.hpp"

namespace rotary {
inline namespace ROTARY_ABI {
namespace detail {

/// Rows of factors have room for whole vectors.
constexpr std::size_t in_whole_vectors(std::size_t count) { return (count + 15) / 16 * 16; }

/// Of a head.
struct norm_sizes {
  std::size_t channels, pairs, offset;

  /// Numbers in a row of factors.
  constexpr std::size_t row() const {
    return in_whole_vectors(channels) + 4 * in_whole_vectors(pairs) + in_whole_vectors(channels - 2 * pairs);
  }
};

/// Channels a, b of a pair become a * first + b * first_other and b * second + a * second_other. [pairs] each.
template <class C>
struct pair_factors {
  C *first, *second, *first_other, *second_other;
};

/// What the heads of a token are multiplied by: weight, cos and sin, and scale in one.
template <class C>
struct norm_row {
  C* squares;  // [channels]: squares, before they are summed, for a norm after the rotation
  pair_factors<C> turn;
  C* outside;  // [channels - 2 * pairs]

  norm_row(C* row, const norm_sizes& sizes) : squares(row) {
    const std::size_t pairs = in_whole_vectors(sizes.pairs);
    turn.first = row + in_whole_vectors(sizes.channels);
    turn.second = turn.first + pairs;
    turn.first_other = turn.second + pairs;
    turn.second_other = turn.first_other + pairs;
    outside = turn.second_other + pairs;
  }
};

/// What a token's factors are made of.
template <class C>
struct norm_fold {
  const C* cos;
  const C* sin;
  C scale;
  const C *first, *second, *first_other, *second_other;  // weights: pair_factors without cos and sin
  const C* outside;
};

/// Heads along two axes; `row` is that of the factors of a head's token.
template <class From, class To, class C>
struct norm_grid {
  static constexpr std::size_t together = 32;

  const From* from;
  To* to;
  const C* row;
  head_axis inner, outer;
  norm_sizes sizes;
  double eps;
  norm_order order;
  std::size_t place = 0;  // along the inner axis

  /// On to the next head.
  ROTARY_INLINE void step() {
    if (++place < inner.count) return move(inner, 1);
    place = 0;
    move(inner, 1 - static_cast<std::ptrdiff_t>(inner.count));
    move(outer, 1);
  }

 private:
  ROTARY_INLINE void move(const head_axis& axis, std::ptrdiff_t places) {
    from += places * axis.from;
    to += places * axis.to;
    row += places * axis.row;
  }
};

#define ROTARY_BODY "norm_kernels.inl"
#define ROTARY_BODY_WITHOUT_HALF
#include "each_backend.inl"

template <class From, class To, class Row, class W, class C>
struct norm_kernels {
  void (*normalise)(const norm_grid<From, To, C>&);
  void (*fold)(const norm_fold<C>&, const norm_sizes&, C* row);
  void (*read_row)(const Row* from, std::ptrdiff_t step, std::size_t count, double factor, C* to);
  void (*read_weights)(const W* from, C* to, std::size_t count);
};

template <pairing Read, pairing Write, class From, class To, class Row, class W, class C>
norm_kernels<From, To, Row, W, C> select_norm() noexcept {
#if ROTARY_X86
  const unsigned enabled = enabled_backends();
  if constexpr (std::is_same<To, bfloat16>::value) {
    if (contains(enabled, backend::avx512_bf16)) {
      return {&avx512::normalise_heads<Read, Write, native_bfloat16, From, To, C>, &avx512::fold_factors<C>,
              &avx512::read_row<Row, C>, &avx512::convert_channels<W, C>};
    }
  }
  if (contains(enabled, backend::avx512)) {
    return {&avx512::normalise_heads<Read, Write, To, From, To, C>, &avx512::fold_factors<C>, &avx512::read_row<Row, C>,
            &avx512::convert_channels<W, C>};
  }
  if (contains(enabled, backend::avx2)) {
    return {&avx2::normalise_heads<Read, Write, To, From, To, C>, &avx2::fold_factors<C>, &avx2::read_row<Row, C>,
            &avx2::convert_channels<W, C>};
  }
#endif
  return {&baseline::normalise_heads<Read, Write, To, From, To, C>, &baseline::fold_factors<C>,
          &baseline::read_row<Row, C>, &baseline::convert_channels<W, C>};
}

/// Only a call from one tensor to another can change the pairing.
template <bool TwoTensors, class From, class To, class Row, class W, class C>
norm_kernels<From, To, Row, W, C> norm_kernels_for(const layout& how) noexcept {
  constexpr pairing half = pairing::split_half, alternating = pairing::interleaved;
  if constexpr (TwoTensors) {
    if (how.pairing != how.stored) {
      return how.pairing == half ? select_norm<half, alternating, From, To, Row, W, C>()
                                 : select_norm<alternating, half, From, To, Row, W, C>();
    }
  }
  return how.pairing == half ? select_norm<half, half, From, To, Row, W, C>()
                             : select_norm<alternating, alternating, From, To, Row, W, C>();
}

}  // namespace detail
}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
