// The verb: rotary position embedding applied to q or k, in place or from one tensor into another.
#ifndef ROTARY_ROTATE_HPP
#define ROTARY_ROTATE_HPP

#include "detail/run_rotation.hpp"
#include "table.hpp"
#include "tensor.hpp"

namespace rotary {
inline namespace ROTARY_ABI {

/// Rotates [batch, tokens, heads, head_dim] in place: channels a, b of pair j become
///
///     a' = a * cos[j] - b * sin[j],   b' = b * cos[j] + a * sin[j]        (RoFormer, arXiv 2104.09864)
///
/// with the row that `rows` (a table, table_view) has for the token's position. Computes in the type of the table, but
/// in double where the data are double, and in float for 16-bit types, rounded once to nearest even; float16 data with
/// a float16 table use half arithmetic where the CPU has it. Channels outside the rotated block stay as they are.
/// `scale` is a further multiplier of the rotated block, finite and within the range of the compute type. Allocates
/// nothing; may be called from any thread.
///
/// Throws rotary::error, before anything is written, for a position that the table lacks, a block that does not fit
/// into head_dim, heads that overlap, sizes beyond the address space, a null pointer, or a slice that does not exist.
template <class T, class Rows>
void rotate(const tensor_view<T>& x, const Rows& rows, const positions& where, const layout& how = {},
            const slice& part = {}, double scale = 1.0) {
  detail::run_rotation<detail::verb::rotate, false>(x, x, detail::view_of(rows), where, how, part, scale);
}

/// The same from one tensor into another of equal sizes, whose type, strides and pairing (layout::stored) may differ.
/// Channels outside the rotated block are copied, bit for bit where the type is the same. The two are disjoint or
/// identical; anything between throws rotary::error.
template <class From, class To, class Rows>
void rotate(const tensor_view<From>& from, const tensor_view<To>& to, const Rows& rows, const positions& where,
            const layout& how = {}, const slice& part = {}, double scale = 1.0) {
  detail::run_rotation<detail::verb::rotate, true>(from, to, detail::view_of(rows), where, how, part, scale);
}

/// With one row per token of this step: the step_table was assigned batch * tokens positions, or tokens of them that
/// all sequences share.
template <class T, class Row>
void rotate(const tensor_view<T>& x, const step_table<Row>& step, const layout& how = {}, const slice& part = {},
            double scale = 1.0) {
  detail::run_step<detail::verb::rotate, false>(x, x, step, how, part, scale);
}
template <class From, class To, class Row>
void rotate(const tensor_view<From>& from, const tensor_view<To>& to, const step_table<Row>& step,
            const layout& how = {}, const slice& part = {}, double scale = 1.0) {
  detail::run_step<detail::verb::rotate, true>(from, to, step, how, part, scale);
}

/// The transpose of `rotate`, magnitude included: turns the gradient of its result into the gradient of its input.
/// `how.pairing` is that of this call's source: the gradient of {interleaved, 0, split_half} needs {split_half, 0,
/// interleaved}. Throws as `rotate` does.
template <class T, class Rows>
void rotate_adjoint(const tensor_view<T>& x, const Rows& rows, const positions& where, const layout& how = {},
                    const slice& part = {}, double scale = 1.0) {
  detail::run_rotation<detail::verb::adjoint, false>(x, x, detail::view_of(rows), where, how, part, scale);
}
template <class From, class To, class Rows>
void rotate_adjoint(const tensor_view<From>& from, const tensor_view<To>& to, const Rows& rows, const positions& where,
                    const layout& how = {}, const slice& part = {}, double scale = 1.0) {
  detail::run_rotation<detail::verb::adjoint, true>(from, to, detail::view_of(rows), where, how, part, scale);
}
template <class T, class Row>
void rotate_adjoint(const tensor_view<T>& x, const step_table<Row>& step, const layout& how = {},
                    const slice& part = {}, double scale = 1.0) {
  detail::run_step<detail::verb::adjoint, false>(x, x, step, how, part, scale);
}
template <class From, class To, class Row>
void rotate_adjoint(const tensor_view<From>& from, const tensor_view<To>& to, const step_table<Row>& step,
                    const layout& how = {}, const slice& part = {}, double scale = 1.0) {
  detail::run_step<detail::verb::adjoint, true>(from, to, step, how, part, scale);
}

/// Undoes `rotate`: the transpose divided by the square of the magnitude, so that rotate_inverse(rotate(x)) is x again
/// up to rounding; a `scale` s is undone by 1 / s. `how.pairing` is that of this call's source, the result of `rotate`.
/// Also throws rotary::error where the rows have no single magnitude (xPos, or magnitude 0 in a table_view); xPos is
/// undone by rotate_adjoint with the table of the other role.
template <class T, class Rows>
void rotate_inverse(const tensor_view<T>& x, const Rows& rows, const positions& where, const layout& how = {},
                    const slice& part = {}, double scale = 1.0) {
  detail::run_rotation<detail::verb::inverse, false>(x, x, detail::view_of(rows), where, how, part, scale);
}
template <class From, class To, class Rows>
void rotate_inverse(const tensor_view<From>& from, const tensor_view<To>& to, const Rows& rows, const positions& where,
                    const layout& how = {}, const slice& part = {}, double scale = 1.0) {
  detail::run_rotation<detail::verb::inverse, true>(from, to, detail::view_of(rows), where, how, part, scale);
}
template <class T, class Row>
void rotate_inverse(const tensor_view<T>& x, const step_table<Row>& step, const layout& how = {},
                    const slice& part = {}, double scale = 1.0) {
  detail::run_step<detail::verb::inverse, false>(x, x, step, how, part, scale);
}
template <class From, class To, class Row>
void rotate_inverse(const tensor_view<From>& from, const tensor_view<To>& to, const step_table<Row>& step,
                    const layout& how = {}, const slice& part = {}, double scale = 1.0) {
  detail::run_step<detail::verb::inverse, true>(from, to, step, how, part, scale);
}

}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
