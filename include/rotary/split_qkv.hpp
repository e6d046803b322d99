// The packed output of a fused QKV projection into q, k and v of their own: rotate, copy and cast in one pass.
#ifndef ROTARY_SPLIT_QKV_HPP
#define ROTARY_SPLIT_QKV_HPP

#include "detail/run_split.hpp"
#include "table.hpp"
#include "tensor.hpp"

namespace rotary {
inline namespace ROTARY_ABI {

/// From packed, [batch, tokens, q_heads + 2 * kv_heads, head_dim], whose heads are those of q, then of k, then of v:
/// q and k are what rotate(heads(packed, ...), q or k, ...) gives, bit for bit; v is copied, bit for bit where the type
/// is the same, else each number is rounded once. Types and strides of the three are their own. packed is read once,
/// in its order, a few tokens at a time. Allocates nothing; may be called from any thread; `part` splits the (token,
/// head) pairs of packed.
///
/// A projection whose heads lie in groups, [batch, tokens, kv_heads * (group + 2), head_dim] with each group's q, k and
/// v side by side (Falcon), is a call for each of them: kv head g takes heads(packed, g * (group + 2), group + 2) to
/// heads(q, g * group, group), heads(k, g, 1) and heads(v, g, 1).
///
/// Throws rotary::error, before anything is written, as rotate does, and for heads that do not sum to those of packed,
/// or any two of the four tensors that overlap.
template <class From, class Q, class K, class V, class Rows>
void split_qkv(const tensor_view<From>& packed, const tensor_view<Q>& q, const tensor_view<K>& k,
               const tensor_view<V>& v, const Rows& rows, const positions& where, const layout& how = {},
               const slice& part = {}) {
  detail::run_split(packed, q, k, v, detail::view_of(rows), where, how, part);
}

/// With one row per token of this step: the step_table was assigned batch * tokens positions, or tokens of them that
/// all sequences share.
template <class From, class Q, class K, class V, class Row>
void split_qkv(const tensor_view<From>& packed, const tensor_view<Q>& q, const tensor_view<K>& k,
               const tensor_view<V>& v, const step_table<Row>& step, const layout& how = {}, const slice& part = {}) {
  const positions where = detail::rows_of_step("split_qkv", detail::shape_of(packed), step);
  detail::run_split(packed, q, k, v, step.view(), where, how, part);
}

}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
