// One call of a rotation: check it, describe it as a job, hand it to a kernel.
#ifndef ROTARY_DETAIL_RUN_ROTATION_HPP
#define ROTARY_DETAIL_RUN_ROTATION_HPP

#include "../table.hpp"
#include "../tensor.hpp"
#include "checks.hpp"
#include "tensor_walk.hpp"

namespace rotary {
inline namespace ROTARY_ABI {
namespace detail {

enum class verb { rotate, adjoint, inverse };

inline const char* name_of(verb which) {
  return which == verb::rotate ? "rotate" : which == verb::adjoint ? "rotate_adjoint" : "rotate_inverse";
}

template <class T>
const table_view<T>& view_of(const table_view<T>& rows) {
  return rows;
}
template <class T>
table_view<T> view_of(const table<T>& rows) {
  return rows.view();
}
/// The rows of a step belong to its tokens, not to positions: call without positions.
template <class T>
table_view<T> view_of(const step_table<T>& rows) = delete;

// The stride of an axis with one entry means nothing; 0 keeps address arithmetic inside the tensor.
template <class T>
ROTARY_INLINE tensor_shape shape_of(const tensor_view<T>& x) {
  static_assert(sizeof(T) == sizeof(format_of<T>), "rotary::element<T>::format must have the size of T");
  return {reinterpret_cast<std::uintptr_t>(x.data),
          sizeof(T),
          x.batch,
          x.tokens,
          x.heads,
          x.head_dim,
          x.batch < 2 ? 0 : x.batch_stride,
          x.tokens < 2 ? 0 : x.token_stride,
          x.heads < 2 ? 0 : x.head_stride};
}

template <class T>
ROTARY_INLINE rows_shape shape_of(const table_view<T>& rows) {
  static_assert(sizeof(T) == sizeof(format_of<T>), "rotary::element<T>::format must have the size of T");
  return {rows.cos, rows.sin, rows.rows, rows.pairs, rows.row_stride, rows.pair_step, rows.first_position};
}

/// Only a call from one tensor to another can change the pairing, or write past the caches.
template <bool TwoTensors, class From, class To, class Row, class C>
ROTARY_INLINE kernel_set<From, To, Row, C> kernels_for(const layout& how, bool streams = false) {
  constexpr pairing half = pairing::split_half, alternating = pairing::interleaved;
  if constexpr (TwoTensors) {
    if (how.pairing != how.stored) {
      return how.pairing == half ? select_kernels<From, To, Row, C, half, alternating>()
                                 : select_kernels<From, To, Row, C, alternating, half>();
    }
    if (streams) {
      return how.pairing == half ? select_kernels<From, To, Row, C, half, half, true>()
                                 : select_kernels<From, To, Row, C, alternating, alternating, true>();
    }
  }
  return how.pairing == half ? select_kernels<From, To, Row, C, half, half>()
                             : select_kernels<From, To, Row, C, alternating, alternating>();
}

template <bool TwoTensors, class From, class To, class Row, class C>
void walk(const rotation_job& job) {
  tensor_walk<From, To, Row, C>(job, kernels_for<TwoTensors, From, To, Row, C>(job.how, job.streams)).run();
}

/// A job whose factors are 1, in the compute type.
template <bool TwoTensors, class From, class To, class Row>
void walk_unscaled(const rotation_job& job) {
  using formats = compute<From, To, Row>;
#if ROTARY_X86
  if constexpr (formats::half) {
    if (half_arithmetic()) return walk<TwoTensors, From, To, Row, float16>(job);
  }
#endif
  walk<TwoTensors, From, To, Row, typename formats::type>(job);
}

/// The multiplier of the rows that makes the verb: R has magnitude m, its transpose too, and its inverse is R^T / m^2.
/// It is applied in the compute type, whose normal numbers lie between `least` and `most`.
inline double row_factor(verb which, double magnitude, double scale, double least, double most) {
  if (which == verb::inverse && (!is_finite(magnitude) || magnitude == 0.0)) {
    fail(
        "rotary::rotate_inverse: the table's magnitude is %g; the inverse needs rows with one magnitude that is not 0.",
        magnitude);
  }
  const double factor = which == verb::inverse ? scale / magnitude / magnitude : scale;
  const double size = factor < 0 ? -factor : factor;
  if (!is_finite(factor) || size > most || (size < least && scale != 0.0)) {
    fail(
        "rotary::%s: scale is %g, which multiplies the rows by %g; that must be a number, 0 or between %g and %g. Use "
        "1 for none.",
        name_of(which), scale, factor, least, most);
  }
  return factor;
}

// One token's heads, in order and within 2^52 elements.
template <class T>
ROTARY_INLINE bool plain_heads(const tensor_view<T>& x) {
  const std::size_t stride = static_cast<std::size_t>(x.head_stride);
  return x.data != nullptr && x.batch == 1 && x.tokens == 1 && x.heads - 1 < (std::size_t{1} << 20) &&
         (x.heads == 1 || (stride >= x.head_dim && static_cast<std::uint64_t>(stride) >> 32 == 0)) &&
         static_cast<std::uint64_t>(x.head_dim) >> 32 == 0;
}

/// True for what a decoding step asks for, layer after layer: the heads of one token, all in one slice, by a row that
/// serves as it is, in place or into other memory. A call that is not plainly in order goes the long way, which says
/// what is wrong.
template <bool TwoTensors, class From, class To, class Row>
ROTARY_INLINE bool plain_token(const tensor_view<From>& from, const tensor_view<To>& to, const table_view<Row>& rows,
                               const positions& where, const layout& how, const slice& part) {
  const bool row =
      rows.cos != nullptr && rows.sin != nullptr && rows.pair_step == 1 && where.consecutive() &&
      where.first() >= rows.first_position &&
      static_cast<std::uint64_t>(where.first()) - static_cast<std::uint64_t>(rows.first_position) < rows.rows;
  if (!row || !plain_heads(to) || how.pairing != how.stored || part.index != 0 || part.count != 1) return false;
  if (rows.pairs - 1 >= to.head_dim / 2 || how.offset > to.head_dim - 2 * rows.pairs) return false;
  if constexpr (TwoTensors) {
    const std::size_t more = to.heads - 1;
    const auto read = reinterpret_cast<std::uintptr_t>(from.data), written = reinterpret_cast<std::uintptr_t>(to.data);
    return plain_heads(from) && from.heads == to.heads && from.head_dim == to.head_dim &&
           to.head_dim == 2 * rows.pairs &&
           (read + (more * static_cast<std::size_t>(from.head_stride) + from.head_dim) * sizeof(From) <= written ||
            written + (more * static_cast<std::size_t>(to.head_stride) + to.head_dim) * sizeof(To) <= read);
  }
  return true;
}

/// Rotates what plain_token found in order.
template <bool TwoTensors, class From, class To, class Row>
ROTARY_INLINE void rotate_plain_token(const tensor_view<From>& from, const tensor_view<To>& to,
                                      const table_view<Row>& rows, const positions& where, const layout& how) {
  using read = format_of<From>;
  using written = format_of<To>;
  const std::ptrdiff_t row = static_cast<std::ptrdiff_t>(where.first() - rows.first_position) * rows.row_stride;
  const head_grid<read, written, Row> heads = {
      reinterpret_cast<const read*>(from.data) + how.offset,
      reinterpret_cast<written*>(to.data) + how.offset,
      rows.cos + row,
      rows.sin + row,
      {to.heads, to.heads == 1 ? 0 : from.head_stride, to.heads == 1 ? 0 : to.head_stride, 0},
      {1, 0, 0, 0},
      rows.pairs,
      rows.pairs,
      0,
      false};
  kernels_for<TwoTensors, read, written, Row, Row>(how).rotate(heads);
}

template <verb Verb, bool TwoTensors, class From, class To, class Row>
ROTARY_NOINLINE void run_any_rotation(const tensor_view<From>& from, const tensor_view<To>& to,
                                      const table_view<Row>& rows, const positions& where, const layout& how,
                                      const slice& part, double scale) {
  static_assert(!std::is_const<To>::value, "rotary: the destination must not be const");
  using formats = compute<format_of<From>, format_of<To>, format_of<Row>>;
  constexpr bool in_double = std::is_same<typename formats::type, double>::value;
  const double factor =
      row_factor(Verb, rows.magnitude, scale, in_double ? 2.3e-308 : 1.2e-38, in_double ? 1e308 : 3e38);
  rotation_job job = {
      shape_of(from), shape_of(to), shape_of(rows), where, how, factor, Verb == verb::rotate ? factor : -factor};
  constexpr bool same_format = std::is_same<format_of<From>, format_of<To>>::value;
  if (!prepare(name_of(Verb), job, TwoTensors, same_format, part)) return;
#if ROTARY_X86
  if constexpr (formats::half) {
    const bool keeps_digits = factor * factor >= 0x1p-8 && factor * factor <= 0x1p8;  // else rows leave half's range
    if (half_arithmetic() && keeps_digits) return walk<TwoTensors, float16, float16, float16, float16>(job);
  }
#endif
  walk<TwoTensors, format_of<From>, format_of<To>, format_of<Row>, typename formats::type>(job);
}

template <verb Verb, bool TwoTensors, class From, class To, class Row>
ROTARY_INLINE void run_rotation(const tensor_view<From>& from, const tensor_view<To>& to, const table_view<Row>& rows,
                                const positions& where, const layout& how, const slice& part, double scale) {
  using formats = compute<format_of<From>, format_of<To>, format_of<Row>>;
  if constexpr (Verb == verb::rotate && std::is_same<Row, typename formats::type>::value) {
    if (scale == 1.0 && plain_token<TwoTensors>(from, to, rows, where, how, part)) {
      return rotate_plain_token<TwoTensors>(from, to, rows, where, how);
    }
  }
  run_any_rotation<Verb, TwoTensors>(from, to, rows, where, how, part, scale);
}

/// Row t for token t of every sequence if the step has just that many rows, else one row for each token of the batch.
template <class Row>
ROTARY_INLINE positions rows_of_step(const char* function, const tensor_shape& x, const step_table<Row>& step) {
  const bool shared = step.size() == x.tokens;
  if (!shared && !x.empty() && (multiply_overflows(x.batch, x.tokens) || step.size() != x.batch * x.tokens)) {
    fail(
        "rotary::%s: the step_table has %zu rows; the view has %zu sequences of %zu tokens. Assign tokens or batch "
        "* tokens positions.",
        function, step.size(), x.batch, x.tokens);
  }
  return shared ? positions(0) : positions::one_row_a_token();
}

template <verb Verb, bool TwoTensors, class From, class To, class Row>
void run_step(const tensor_view<From>& from, const tensor_view<To>& to, const step_table<Row>& step, const layout& how,
              const slice& part, double scale) {
  const positions where = rows_of_step(name_of(Verb), shape_of(from), step);
  run_rotation<Verb, TwoTensors>(from, to, step.view(), where, how, part, scale);
}

}  // namespace detail
}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
