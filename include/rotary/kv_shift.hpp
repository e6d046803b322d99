// Cached keys at other positions, or of another spectrum, without computing them anew.
//
// Every call rounds each key once more. Of n calls, each with the unit roundoff u of the cache's type (2^-24 float,
// 2^-11 float16, 2^-8 bfloat16, 2^-4 e4m3fn, 2^-3 e5m2) and 2^-22 for float arithmetic, a pair ends up within
//
//     ((1 + u + 2^-22)^n - 1) * the pair's norm
//
// of the exact one, below float8's saturation and above the subnormal numbers; for q8_0, within n * (9/16) * sqrt(2) *
// d, where d is the largest magnitude that its blocks had, divided by 127. Many small shifts come near the bound in all
// types but float: slow pairs, which a shift moves by less than a rounding, stand still (tests/kv_shift_test.cpp prints
// it). Shifts add up, so a cache drifts by no more than one rounding if its keys are also kept as they were appended,
// and are shifted from there by the sum of the deltas.
#ifndef ROTARY_KV_SHIFT_HPP
#define ROTARY_KV_SHIFT_HPP

#include "cache.hpp"
#include "detail/run_shift.hpp"
#include "slot_list.hpp"

namespace rotary {
inline namespace ROTARY_ABI {

/// Moves the keys in the slots by `delta` positions ("K-shift"): each is rotated by delta * inv_freq with magnitude 1,
/// since it has the attention factor of `of` already. -64 after 64 tokens before it were removed. Channels outside the
/// rotated block stay as they are, but for q8_0, where they are rounded anew if they share a block of 32 with rotated
/// ones. float8 and q8_0 are computed in float and rounded as by append; a float8 key that turns into a larger channel
/// than the scale allows saturates. Allocates nothing; may be called from any thread; `part` splits the (slot, head)
/// pairs.
///
/// Throws rotary::error, before anything is written, for a slot beyond the cache or listed twice, a block that does not
/// fit into head_dim, a layout that changes the pairing, a float8 cache without scale, or a spectrum of xPos.
template <class T>
void shift(const cache_view<T>& cache, const slot_list& slot_ids, const spectrum& of, std::int64_t delta,
           const layout& how = {}, const slice& part = {}) {
  using row = std::conditional_t<std::is_same<cache_format_of<T>, double>::value, double, float>;
  const detail::one_row<row> turn("shift", of, delta);
  detail::run_shift("shift", cache, slot_ids, turn.view(), 1.0, true, how, part);
}

/// By a delta for each slot, which `deltas` was assigned instead of positions; of several axes, too (M-RoPE), for which
/// the step_table was made with the model's axis_map. A single row serves for all slots. The magnitude of its spectrum
/// is taken out again, at one more rounding of the rows; a step_table of unit_magnitude(spectrum) needs none.
template <class T, class Row>
void shift(const cache_view<T>& cache, const slot_list& slot_ids, const step_table<Row>& deltas, const layout& how = {},
           const slice& part = {}) {
  const table_view<Row> rows = deltas.view();
  detail::run_shift("shift", cache, slot_ids, rows, detail::without_magnitude("shift", rows.magnitude), true, how,
                    part);
}

/// The spectrum without its attention factor: that of the deltas of a shift. Throws rotary::error for xPos.
inline spectrum unit_magnitude(const spectrum& of) {
  if (!of.growth().empty()) detail::without_magnitude("unit_magnitude", 0.0);
  return spectrum(of.inv_freq(), 1.0, of.step_ratio());
}

/// What turns a key of one spectrum into that of another, at any position: the differences of inv_freq, and the ratio
/// of the magnitudes. For keys that were cached before dynamic NTK or LongRoPE changed its regime. Throws rotary::error
/// unless both have as many pairs and neither is of xPos.
inline spectrum spectrum_change(const spectrum& from, const spectrum& to) {
  if (from.pairs() != to.pairs()) {
    detail::fail("rotary::spectrum_change: from has %zu pairs and to has %zu; they must be equal.", from.pairs(),
                 to.pairs());
  }
  if (!from.growth().empty() || !to.growth().empty()) detail::without_magnitude("spectrum_change", 0.0);
  list<double> difference(from.pairs());
  for (std::size_t j = 0; j < difference.size(); ++j) difference[j] = to.inv_freq()[j] - from.inv_freq()[j];
  return spectrum(std::move(difference), to.magnitude() / from.magnitude());
}

/// Rotates the key in slot_ids[i], which was cached at the position that row i of `change` was assigned, from one
/// spectrum to another. `change` is made once, step_table<>(spectrum_change(from, to)), and serves all layers:
///
///     rotary::step_table<float> change(rotary::spectrum_change(before, now));
///     change.assign(position_ids, tokens);
///     for (auto& layer : layers) rotary::change_spectrum(layer.k, {slot_ids, tokens}, change, how);
///
/// Behaves and throws as shift does.
template <class T, class Row>
void change_spectrum(const cache_view<T>& cache, const slot_list& slot_ids, const step_table<Row>& change,
                     const layout& how = {}, const slice& part = {}) {
  detail::run_shift("change_spectrum", cache, slot_ids, change.view(), 1.0, false, how, part);
}

/// The same for a single cache, at positions position_ids[slot_ids.size()], of std::int32_t or std::int64_t. Allocates
/// the table.
template <class T, class Integer>
void change_spectrum(const cache_view<T>& cache, const slot_list& slot_ids, const Integer* position_ids,
                     const spectrum& from, const spectrum& to, const layout& how = {}, const slice& part = {}) {
  using row = std::conditional_t<std::is_same<cache_format_of<T>, double>::value, double, float>;
  step_table<row> change(spectrum_change(from, to));
  change.assign(position_ids, slot_ids.size());
  change_spectrum(cache, slot_ids, change, how, part);
}

}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
