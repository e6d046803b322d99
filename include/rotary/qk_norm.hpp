// QK-norm: RMSNorm of each head of q and k, rotation, and a scale of queries, in one pass over memory. Not included by
// rotary.hpp.
//
//     const rotary::rms_norm<float> q_norm{q_weight, 128, 1e-6}, k_norm{k_weight, 128, 1e-6};    // Qwen3
//     rotary::norm_and_rotate(rotary::thd(q, tokens, 32, 128), q_norm, step);
//     rotary::norm_and_append(rotary::thd(k, tokens, 8, 128), k_norm, k_cache, {slot_mapping, tokens}, step);
#ifndef ROTARY_QK_NORM_HPP
#define ROTARY_QK_NORM_HPP

#include "detail/run_norm.hpp"

namespace rotary {
inline namespace ROTARY_ABI {

/// Normalises each head of [batch, tokens, heads, head_dim] by `norm` (the formula is there; `no_norm` for none),
/// before or after it is rotated as `rotate` does, and multiplies it by `scale`, in place. Channels outside the rotated
/// block are normalised as well, and scaled, which rotate's scale does not do.
///
/// Computes in float, or in double where the data or the table are double. Beside its own rounding to nearest even, and
/// beside half a unit of cos and sin in their rows (twice that where the norm comes after the rotation), a result is
/// within (head_dim / 32 + 12) * 2^-24 of the formula, relative to |a cos| + |b sin| of its pair; in double within
/// (head_dim / 32 + 15) * 2^-53. transformers rounds to the type of the data after every step. Squares are summed in a
/// fixed order (channel i into partial sum i % 16), so that results do not depend on slices, strides, alignment, or
/// whether the call is in place.
///
/// A sum of squares beyond the compute type (a channel of 1.9e19, or many smaller ones, in float) makes a head 0, as in
/// torch. NaN makes its head NaN; an infinity makes its pair NaN and the rest of the head 0; neither goes further.
/// Without a norm (norm_order::none) both stay in their pair. With eps 0, the bound needs squares that are normal
/// numbers: channels from 1e-18 on in float.
///
/// Allocates nothing, and takes 25 KB of the stack, 50 KB in double; may be called from any thread; `part` splits the
/// (token, head) pairs. Throws rotary::error, before anything is written, as `rotate` does, and for a norm.weight that
/// is null while norm.size is not 0 or norm.one_plus is set, a weight whose norm.size is not head_dim or whose
/// norm.order is none, an eps that is negative or above 1e300, a scale that is no multiplier of the compute type or
/// does not fit the tokens, heads of more than 1024 channels. Weights, rows and factors may not overlap what is
/// written.
template <class T, class W, class Rows>
void norm_and_rotate(const tensor_view<T>& x, const rms_norm<W>& norm, const Rows& rows, const positions& where,
                     const layout& how = {}, const slice& part = {}, const query_scale& scale = {}) {
  detail::run_norm<false>(x, x, norm, detail::view_of(rows), where, how, part, scale);
}

/// The same from one tensor into another of equal sizes, whose type, strides and pairing (layout::stored) may differ.
/// The two are disjoint or identical.
template <class From, class To, class W, class Rows>
void norm_and_rotate(const tensor_view<From>& from, const tensor_view<To>& to, const rms_norm<W>& norm,
                     const Rows& rows, const positions& where, const layout& how = {}, const slice& part = {},
                     const query_scale& scale = {}) {
  detail::run_norm<true>(from, to, norm, detail::view_of(rows), where, how, part, scale);
}

/// With one row per token of this step, as `rotate`.
template <class T, class W, class Row>
void norm_and_rotate(const tensor_view<T>& x, const rms_norm<W>& norm, const step_table<Row>& step,
                     const layout& how = {}, const slice& part = {}, const query_scale& scale = {}) {
  const positions where = detail::rows_of_step("norm_and_rotate", detail::shape_of(x), step);
  detail::run_norm<false>(x, x, norm, step.view(), where, how, part, scale);
}
template <class From, class To, class W, class Row>
void norm_and_rotate(const tensor_view<From>& from, const tensor_view<To>& to, const rms_norm<W>& norm,
                     const step_table<Row>& step, const layout& how = {}, const slice& part = {},
                     const query_scale& scale = {}) {
  const positions where = detail::rows_of_step("norm_and_rotate", detail::shape_of(from), step);
  detail::run_norm<true>(from, to, norm, step.view(), where, how, part, scale);
}

/// Writes keys that are normalised and rotated into the slots of their tokens, as `append` does: what the cache holds
/// afterwards is, bit for bit, what norm_and_rotate(k, ...) into a tensor of the cache's type gives. For float8 and
/// q8_0, which take 16 KB more of the stack, it is what that gives in float, then divided by the scale and rounded. k
/// is not changed. Throws as norm_and_rotate and append do.
template <class From, class W, class To, class Row>
void norm_and_append(const tensor_view<From>& k, const rms_norm<W>& norm, const cache_view<To>& cache,
                     const slot_list& slot_ids, const step_table<Row>& step, const layout& how = {},
                     const slice& part = {}) {
  const positions where = detail::rows_of_step("norm_and_append", detail::shape_of(k), step);
  detail::run_norm_append(k, norm, cache, detail::no_values(), slot_ids, step.view(), where, how, part);
}
template <class From, class W, class To, class Rows>
void norm_and_append(const tensor_view<From>& k, const rms_norm<W>& norm, const cache_view<To>& cache,
                     const slot_list& slot_ids, const Rows& rows, const positions& where, const layout& how = {},
                     const slice& part = {}) {
  detail::run_norm_append(k, norm, cache, detail::no_values(), slot_ids, detail::view_of(rows), where, how, part);
}

/// The same with the values, copied into the slots of a second cache: the four tensors are as those of `append`.
template <class From, class W, class FromV, class To, class ToV, class Row>
void norm_and_append(const tensor_view<From>& k, const rms_norm<W>& norm, const tensor_view<FromV>& v,
                     const cache_view<To>& k_cache, const cache_view<ToV>& v_cache, const slot_list& slot_ids,
                     const step_table<Row>& step, const layout& how = {}, const slice& part = {}) {
  const positions where = detail::rows_of_step("norm_and_append", detail::shape_of(k), step);
  const detail::values_to_put<FromV, ToV> values = {
      {"v", "the v cache", detail::shape_of(v), detail::shape_of(v_cache)}};
  detail::run_norm_append(k, norm, k_cache, values, slot_ids, step.view(), where, how, part);
}
template <class From, class W, class FromV, class To, class ToV, class Rows>
void norm_and_append(const tensor_view<From>& k, const rms_norm<W>& norm, const tensor_view<FromV>& v,
                     const cache_view<To>& k_cache, const cache_view<ToV>& v_cache, const slot_list& slot_ids,
                     const Rows& rows, const positions& where, const layout& how = {}, const slice& part = {}) {
  const detail::values_to_put<FromV, ToV> values = {
      {"v", "the v cache", detail::shape_of(v), detail::shape_of(v_cache)}};
  detail::run_norm_append(k, norm, k_cache, values, slot_ids, detail::view_of(rows), where, how, part);
}

}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
