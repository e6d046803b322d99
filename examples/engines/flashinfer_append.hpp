// Stands in, on the CPU, for FlashInfer's rope_quantize_fp8_append_paged_kv_cache (grouped or plain heads) and the
// functions that prepare its arrays: q and k rotated by a float cache [max, cos | sin], then all of q, k and v
// multiplied by a scale and rounded to e4m3, k and v put into the pages of their requests. The parts of q and k that
// rotate and those that do not are tensors of their own; in the cache a head is the one and then the other.
//
// What differs from FlashInfer: it multiplies by the scale, where append divides by its reciprocal; no float16 value
// and none of 1000000 floats become another float8 by that. q of padding tokens is written, where FlashInfer leaves it.
// engines.flashinfer prints the figure. The caches of MLA are the same calls with two caches of one head.
#ifndef ROTARY_EXAMPLES_ENGINES_FLASHINFER_APPEND_HPP
#define ROTARY_EXAMPLES_ENGINES_FLASHINFER_APPEND_HPP

#include <rotary/kv_cache.hpp>

#include "flashinfer.hpp"

namespace engines::flashinfer {

using fp8 = rotary::float8_e4m3fn;

enum class kv_layout { nhd, hnd };  // [pages, page_size, heads, head_dim], [pages, heads, page_size, head_dim]

/// The paged cache and the pages of each request: indices[indptr[b]], ..., indices[indptr[b + 1] - 1].
struct paged_kv {
  fp8 *k, *v;
  std::size_t pages, page_size, heads, head_dim;
  kv_layout layout;
  const std::int32_t *indices, *indptr;
  std::size_t batch;

  rotary::cache_view<fp8> view(fp8* data, const float* scale) const {
    auto made = layout == kv_layout::nhd ? rotary::paged_nhd(data, pages, places(), heads, head_dim)
                                         : rotary::paged_hnd(data, pages, heads, places(), head_dim);
    made.scale = scale;
    return made;
  }

  /// page_size, which is divided by.
  std::size_t places() const {
    if (page_size == 0) refuse("flashinfer", "page_size", 0, "it must be above 0.");
    return page_size;
  }

  std::int64_t pages_of(std::size_t b) const { return std::int64_t{indptr[b + 1]} - indptr[b]; }

  /// The slot of place `position` of request `b`; -1 for a request below 0, which is padding.
  std::int64_t slot(std::int32_t b, std::int32_t position) const {
    if (b < 0) return rotary::slot_list::skip;
    if (static_cast<std::size_t>(b) >= batch) refuse("flashinfer", "batch index", b, "there is no such request.");
    const std::size_t page = size("flashinfer", "position", position) / places();
    if (page >= size("flashinfer", "pages of a request", pages_of(static_cast<std::size_t>(b)))) {
      refuse("flashinfer", "position", position, "the request's pages end before. Give it one more.");
    }
    const std::size_t block = size("flashinfer", "page index", indices[static_cast<std::size_t>(indptr[b]) + page]);
    return static_cast<std::int64_t>(block * page_size) + position % static_cast<std::int64_t>(page_size);
  }
};

/// FlashInfer's get_seq_lens and get_batch_indices_positions: rows [append_indptr[b], append_indptr[b + 1]) are the
/// last tokens of request b, whose last page has last_page_len[b]. Both arrays written have append_indptr[batch]
/// numbers. Refuses, before anything is written, rows that do not begin at 0 or fall, and positions below 0 (the pages
/// hold fewer tokens) or beyond int32.
inline void batch_indices_and_positions(const std::int32_t* append_indptr, const paged_kv& kv,
                                        const std::int32_t* last_page_len, std::int32_t* batch_indices,
                                        std::int32_t* positions) {
  if (kv.page_size > INT32_MAX) refuse("flashinfer", "page_size", kv.page_size, "it must be an int32.");
  const auto length = [&](std::size_t b) {
    const std::int64_t pages = kv.pages_of(b);
    return (pages < 1 ? 0 : pages - 1) * static_cast<std::int64_t>(kv.page_size) + last_page_len[b];
  };
  for (std::size_t b = 0; b < kv.batch; ++b) {
    const std::int32_t first = append_indptr[b], end = append_indptr[b + 1];
    if (b == 0 && first != 0) refuse("flashinfer", "append_indptr[0]", first, "it must be 0.");
    if (end < first) refuse("flashinfer", "append_indptr", end, "it must not fall.");
    const std::int64_t tokens = length(b), from = tokens - (end - first);
    if (first == end) continue;
    if (from < 0) refuse("flashinfer", "position", from, "the request's pages hold fewer tokens than are appended.");
    if (tokens - 1 > INT32_MAX) refuse("flashinfer", "position", tokens - 1, "it must be an int32.");
  }
  for (std::size_t b = 0; b < kv.batch; ++b) {
    for (std::int32_t i = append_indptr[b]; i < append_indptr[b + 1]; ++i) {
      batch_indices[i] = static_cast<std::int32_t>(b);
      positions[i] = static_cast<std::int32_t>(length(b) - (append_indptr[b + 1] - i));
    }
  }
}

/// A tensor of e4m3 as a cache whose slots are its tokens: rotate itself does not write float8.
inline rotary::cache_view<fp8> dense(const ragged<fp8>& x, const float* scale) {
  const auto of = x.view();
  return {of.data, 1, of.tokens, of.heads, of.head_dim, 0, of.token_stride, of.head_stride, scale};
}

/// What is read, and q's results; n, the tokens, is that of all. The parts that do not rotate may have no channels.
template <class T>
struct quantize_arguments {
  ragged<const T> q_rope, k_rope, q_nope, k_nope, v;
  ragged<fp8> q_rope_out, q_nope_out;
};

/// slots is room for n numbers. One scale for q, one for k and v, as there. What k and v cannot do is refused before
/// anything is written, what q cannot do after k and v were.
template <class T, class Id>
void rope_quantize_append(const quantize_arguments<T>& of, const float* cos_sin_cache, std::int64_t max_position,
                          const Id* pos_ids, const paged_kv& kv, const std::int32_t* batch_indices,
                          const std::int32_t* positions, float quant_scale_q, float quant_scale_kv, bool interleave,
                          std::int64_t* slots) {
  const float q_scale = 1.0f / quant_scale_q, kv_scale = 1.0f / quant_scale_kv;
  const std::size_t n = size("flashinfer", "n", of.q_rope.n), rows = size("flashinfer", "max_position", max_position);
  const std::size_t rope_dim = size("flashinfer", "rope_dim", of.k_rope.head_dim), pairs = rope_dim / 2;
  if (rope_dim % 2 != 0) refuse("flashinfer", "rope_dim", of.k_rope.head_dim, "it must be even.");
  if (cos_sin_cache == nullptr) refuse("flashinfer", "cos_sin_cache", 0, "it must not be null.");
  const rotary::table_view<float> turning = {cos_sin_cache, cos_sin_cache + pairs, rows, pairs, of.k_rope.head_dim};
  const rotary::table_view<float> still = rotary::pairs_of(turning, 0, 0);
  const rotary::positions where(pos_ids, n);
  const rotary::slot_list to(slots, n), in_order = rotary::slot_list::range(0, n);
  const auto how = interleave ? rotary::pairing::interleaved : rotary::pairing::split_half;

  const auto k_cache = kv.view(kv.k, &kv_scale), v_cache = kv.view(kv.v, &kv_scale);
  const auto q_rope = dense(of.q_rope_out, &q_scale), q_nope = dense(of.q_nope_out, &q_scale);
  const auto k_turning = rotary::channels(k_cache, 0, rope_dim);
  const auto k_still = rotary::channels(k_cache, rope_dim, kv.head_dim - rope_dim);
  // With every token left out, append only checks: k_nope must not be refused after k_rope and v are written.
  for (std::size_t i = 0; i < n; ++i) slots[i] = rotary::slot_list::skip;
  rotary::append(of.k_nope.view(), k_still, to, still, where);
  for (std::size_t i = 0; i < n; ++i) slots[i] = kv.slot(batch_indices[i], positions[i]);
  rotary::append(of.k_rope.view(), of.v.view(), k_turning, v_cache, to, turning, where, how);
  rotary::append(of.k_nope.view(), k_still, to, still, where);
  rotary::append(of.q_rope.view(), q_rope, in_order, turning, where, how);
  rotary::append(of.q_nope.view(), q_nope, in_order, still, where);
}

}  // namespace engines::flashinfer

#endif
