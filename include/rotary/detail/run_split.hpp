// One call of split_qkv: check it, then walk over the packed tensor once, a few tokens at a time.
#ifndef ROTARY_DETAIL_RUN_SPLIT_HPP
#define ROTARY_DETAIL_RUN_SPLIT_HPP

#include "channel_copy.hpp"
#include "run_rotation.hpp"
#include "token_runs.hpp"

namespace rotary {
inline namespace ROTARY_ABI {
namespace detail {

/// Where heads [first, first + job.to.heads) of the packed tensor go. The job is that of all tokens.
struct split_output {
  const char* argument;  // "q", "k", "v"
  std::size_t first;
  rotation_job job;
  extent bytes = {};

  bool empty() const { return job.to.heads == 0; }

  /// Of a part of the packed tensor, the part that goes here; false: none.
  bool take(const token_run& packed, rotation_job& piece) const {
    const std::size_t begin = packed.head < first ? first : packed.head;
    const std::size_t here = first + job.to.heads, there = packed.head + packed.heads;
    const std::size_t end = here < there ? here : there;
    if (begin >= end) return false;
    token_run run = packed;
    run.head = begin - first;
    run.heads = end - begin;
    piece = job;
    piece.from = tokens_of(job.from, run);
    piece.to = tokens_of(job.to, run);
    piece.where = positions(run.position);
    return true;
  }

  /// Of as many bytes as all heads of the packed tensor have, since they go out at the same time. The address of a line
  /// decides by itself whether it is written past the caches.
  void choose_habits(std::size_t packed_heads) {
    if (job.from.tokens < 2) return;
    const std::size_t own_heads = job.to.heads;
    job.to.heads = packed_heads;
    choose_memory_habits(job, false);
    job.to.heads = own_heads;
  }
};

inline void check_split_sizes(const tensor_shape& packed, const tensor_shape& q, const tensor_shape& k,
                              const tensor_shape& v) {
  const bool sum =
      q.heads <= packed.heads && k.heads <= packed.heads - q.heads && v.heads == packed.heads - q.heads - k.heads;
  if (!sum || k.heads != v.heads) {
    fail(
        "rotary::split_qkv: q, k and v have %zu, %zu and %zu heads and packed %zu; k and v need equal numbers, and all "
        "three together those of packed. Use heads() to take parts.",
        q.heads, k.heads, v.heads, packed.heads);
  }
  const tensor_shape* const outputs[] = {&q, &k, &v};
  for (std::size_t i = 0; i < 3; ++i) {
    const tensor_shape& to = *outputs[i];
    if (to.batch == packed.batch && to.tokens == packed.tokens && to.head_dim == packed.head_dim) continue;
    fail(
        "rotary::split_qkv: %c is [%zu, %zu, heads, %zu] and packed [%zu, %zu, heads, %zu] (batch, tokens, heads, "
        "head_dim); they must be equal.",
        "qkv"[i], to.batch, to.tokens, to.head_dim, packed.batch, packed.tokens, packed.head_dim);
  }
}

/// What is written and what is read may not meet.
inline void check_split_memory(const tensor_shape& packed, split_output (&outputs)[3]) {
  constexpr const char* function = "split_qkv";
  const extent read = extent_of(function, "packed", packed);
  check_address(function, "packed", packed);
  for (split_output& output : outputs) {
    if (output.empty()) continue;
    check_address(function, output.argument, output.job.to);
    output.bytes = extent_of(function, output.argument, output.job.to);
    check_written_once(function, output.job.to, output.argument);
    check_disjoint(function, "packed", packed, read, output.argument, output.job.to, output.bytes);
    for (const split_output* other = outputs; other != &output; ++other) {
      if (other->empty()) continue;
      check_disjoint(function, other->argument, other->job.to, other->bytes, output.argument, output.job.to,
                     output.bytes);
    }
  }
}

/// How many tokens are taken at a time: few, so that packed is read in its order, but not one, since every change from
/// q to k to v begins new streams of memory, which the processor takes some lines to recognise. One where the order of
/// addresses counts for more (by_address).
inline std::size_t tokens_at_a_time(const tensor_shape& packed, bool by_address) {
  if (by_address) return 1;
  constexpr std::size_t room = std::size_t{1} << 19;  // bytes, half of a second cache
  const std::size_t token = packed.heads * packed.head_dim * packed.element_size;
  return token < room ? room / token : 1;
}

template <class From, class Q, class K, class V, class Row>
void run_split(const tensor_view<From>& from, const tensor_view<Q>& q, const tensor_view<K>& k, const tensor_view<V>& v,
               const table_view<Row>& rows, const positions& where, const layout& how, const slice& part) {
  static_assert(!std::is_const<Q>::value && !std::is_const<K>::value && !std::is_const<V>::value,
                "rotary: the destinations must not be const");
  const tensor_shape packed = shape_of(from), of_q = shape_of(q), of_k = shape_of(k), of_v = shape_of(v);
  check_split_sizes(packed, of_q, of_k, of_v);
  check_slice("split_qkv", part);
  if (packed.empty()) return;
  const rows_shape table = shape_of(rows);
  const auto output = [&](const char* argument, std::size_t first, const tensor_shape& to) {
    split_output made = {argument, first, {packed, to, table, where, how, 1.0, 1.0}};
    made.job.from.address += static_cast<std::uintptr_t>(packed.at(0, 0, first)) * packed.element_size;
    made.job.from.heads = to.heads;
    made.job.plain_rows = rows.pair_step == 1 && rows.pairs != 0;
    made.job.copies_outside = packed.head_dim != 2 * rows.pairs;
    return made;
  };
  split_output outputs[] = {output("q", 0, of_q), output("k", q.heads, of_k), output("v", q.heads + k.heads, of_v)};
  outputs[2].job.table.pairs = packed.head_dim / 2;  // treats memory as if all channels rotated
  outputs[2].job.how = {};
  check_split_memory(packed, outputs);
  check_block("split_qkv", packed, table, how);
  check_positions("split_qkv", packed, table, where);

  for (split_output& each : outputs) each.choose_habits(packed.heads);
  const channel_copy<format_of<From>, format_of<V>> copy(outputs[2].job.streams && packed.head_dim % 2 == 0);
  const token_runs runs(packed, slot_list::range(0, packed.batch * packed.tokens), where, packed.tokens,
                        tokens_at_a_time(packed, outputs[2].job.by_address));
  runs.each(packed.heads, part, [&](const token_run& run) {
    rotation_job piece = outputs[0].job;
    if (outputs[0].take(run, piece)) walk_unscaled<true, format_of<From>, format_of<Q>, format_of<Row>>(piece);
    if (outputs[1].take(run, piece)) walk_unscaled<true, format_of<From>, format_of<K>, format_of<Row>>(piece);
    if (outputs[2].take(run, piece)) copy(piece.from, piece.to);
  });
}

}  // namespace detail
}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
