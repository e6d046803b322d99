// Keys and values into a KV cache: rotate, cast and write each key, copy each value, in one pass.
#ifndef ROTARY_KV_CACHE_HPP
#define ROTARY_KV_CACHE_HPP

#include "cache.hpp"
#include "detail/run_append.hpp"
#include "slot_list.hpp"

namespace rotary {
inline namespace ROTARY_ABI {

/// Writes rotated keys, [batch, tokens, heads, head_dim], into the slots of their tokens, [batch * tokens]: what the
/// cache holds afterwards is, bit for bit, what rotate(k, ...) into a tensor of the cache's type gives. For float8 and
/// q8_0 it is what rotate gives in float, then divided by the scale and rounded. Tokens whose slot is -1 are left out.
/// Every row of a slot is written once, k is not changed. Allocates nothing; may be called from any thread; `part`
/// splits the (token, head) pairs.
///
/// Throws rotary::error, before anything is written, as rotate does, and for a slot beyond the cache, a slot that two
/// tokens have, heads that the cache does not have, a source that overlaps a cache, a float8 cache without scale.
template <class From, class To, class Row>
void append(const tensor_view<From>& k, const cache_view<To>& cache, const slot_list& slot_ids,
            const step_table<Row>& step, const layout& how = {}, const slice& part = {}) {
  const positions where = detail::rows_of_step("append", detail::shape_of(k), step);
  detail::run_append<false>("append", k, cache, detail::no_values(), slot_ids, step.view(), where, how, part);
}

/// With the rows of a table or table_view, and the tokens' positions.
template <class From, class To, class Rows>
void append(const tensor_view<From>& k, const cache_view<To>& cache, const slot_list& slot_ids, const Rows& rows,
            const positions& where, const layout& how = {}, const slice& part = {}) {
  detail::run_append<false>("append", k, cache, detail::no_values(), slot_ids, detail::view_of(rows), where, how, part);
}

/// The same with the values, [batch, tokens, value_heads, value_dim], copied into the slots of a second cache of as
/// many blocks and slots; bit for bit where the type is the same. The four tensors are disjoint; k and v may be slices
/// of one packed tensor, and the caches of one, too.
template <class From, class FromV, class To, class ToV, class Row>
void append(const tensor_view<From>& k, const tensor_view<FromV>& v, const cache_view<To>& k_cache,
            const cache_view<ToV>& v_cache, const slot_list& slot_ids, const step_table<Row>& step,
            const layout& how = {}, const slice& part = {}) {
  const positions where = detail::rows_of_step("append", detail::shape_of(k), step);
  const detail::values_to_put<FromV, ToV> values = {
      {"v", "the v cache", detail::shape_of(v), detail::shape_of(v_cache)}};
  detail::run_append<false>("append", k, k_cache, values, slot_ids, step.view(), where, how, part);
}
template <class From, class FromV, class To, class ToV, class Rows>
void append(const tensor_view<From>& k, const tensor_view<FromV>& v, const cache_view<To>& k_cache,
            const cache_view<ToV>& v_cache, const slot_list& slot_ids, const Rows& rows, const positions& where,
            const layout& how = {}, const slice& part = {}) {
  const detail::values_to_put<FromV, ToV> values = {
      {"v", "the v cache", detail::shape_of(v), detail::shape_of(v_cache)}};
  detail::run_append<false>("append", k, k_cache, values, slot_ids, detail::view_of(rows), where, how, part);
}

/// As append, and k itself is rotated in place, for the attention of this step: both results are those of append, then
/// rotate, at one pass over memory. Tokens whose slot is -1 are rotated, too, but left out of the cache.
/// layout::stored must be layout::pairing.
template <class From, class To, class Row>
void rotate_and_append(const tensor_view<From>& k, const cache_view<To>& cache, const slot_list& slot_ids,
                       const step_table<Row>& step, const layout& how = {}, const slice& part = {}) {
  const positions where = detail::rows_of_step("rotate_and_append", detail::shape_of(k), step);
  detail::run_append<true>("rotate_and_append", k, cache, detail::no_values(), slot_ids, step.view(), where, how, part);
}
template <class From, class To, class Rows>
void rotate_and_append(const tensor_view<From>& k, const cache_view<To>& cache, const slot_list& slot_ids,
                       const Rows& rows, const positions& where, const layout& how = {}, const slice& part = {}) {
  detail::run_append<true>("rotate_and_append", k, cache, detail::no_values(), slot_ids, detail::view_of(rows), where,
                           how, part);
}
template <class From, class FromV, class To, class ToV, class Row>
void rotate_and_append(const tensor_view<From>& k, const tensor_view<FromV>& v, const cache_view<To>& k_cache,
                       const cache_view<ToV>& v_cache, const slot_list& slot_ids, const step_table<Row>& step,
                       const layout& how = {}, const slice& part = {}) {
  const positions where = detail::rows_of_step("rotate_and_append", detail::shape_of(k), step);
  const detail::values_to_put<FromV, ToV> values = {
      {"v", "the v cache", detail::shape_of(v), detail::shape_of(v_cache)}};
  detail::run_append<true>("rotate_and_append", k, k_cache, values, slot_ids, step.view(), where, how, part);
}
template <class From, class FromV, class To, class ToV, class Rows>
void rotate_and_append(const tensor_view<From>& k, const tensor_view<FromV>& v, const cache_view<To>& k_cache,
                       const cache_view<ToV>& v_cache, const slot_list& slot_ids, const Rows& rows,
                       const positions& where, const layout& how = {}, const slice& part = {}) {
  const detail::values_to_put<FromV, ToV> values = {
      {"v", "the v cache", detail::shape_of(v), detail::shape_of(v_cache)}};
  detail::run_append<true>("rotate_and_append", k, k_cache, values, slot_ids, detail::view_of(rows), where, how, part);
}

}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
