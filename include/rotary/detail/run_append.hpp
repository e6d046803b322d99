// One call of append: check it, then put the keys into their slots, then the values.
#ifndef ROTARY_DETAIL_RUN_APPEND_HPP
#define ROTARY_DETAIL_RUN_APPEND_HPP

#include "cache_runs.hpp"
#include "channel_copy.hpp"

namespace rotary {
inline namespace ROTARY_ABI {
namespace detail {

/// From a tensor to a cache of one call, and what the checks found out.
struct cache_writing {
  const char* source;  // "k", "v"
  const char* argument;
  tensor_shape from;
  cache_shape cache;
  extent in_from = {}, in_cache = {};

  bool empty() const { return from.empty(); }

  template <class To>
  void check(const char* function) {
    check_head_counts(function, source, from.heads, from.head_dim, cache);
    if (empty()) return;
    check_address(function, source, from);
    in_from = extent_of(function, source, from);
    in_cache = check_cache<To>(function, argument, cache);
    check_disjoint(function, source, from, in_from, argument, cache.places, in_cache);
  }

  /// A job for choose_memory_habits: as many tokens as the source has, to places like the cache's.
  rotation_job job(const rows_shape& rows, const positions& where, const layout& how) const {
    rotation_job made = {from, cache.places, rows, where, how, 1.0, 1.0};
    made.to.batch = from.batch;
    made.to.tokens = from.tokens;
    made.plain_rows = rows.pair_step == 1 && rows.pairs != 0;
    made.copies_outside = from.head_dim != 2 * rows.pairs;
    return made;
  }
};

/// How many tokens of a run are rotated into the cache before they are where they came from, in the nearest caches.
constexpr std::size_t live_tokens = 16;

/// Rotates part of a call's keys where they are.
template <class T, class Row>
void rotate_run(rotation_job job, const tensor_shape& keys, const positions& where) {
  job.from = job.to = keys;
  job.where = where;
  job.copies_outside = job.streams = false;
  if (job.table.pairs != 0) walk_unscaled<false, T, T, Row>(job);
}

/// Rotates keys into their slots. C: what to compute in.
template <bool Live, class C, class From, class To, class Row>
void put_keys(const cache_writing& keys, rotation_job job, const token_runs& runs, const slice& part) {
  using walked = std::conditional_t<is_quantised<To>, float, To>;
  const auto kernels = kernels_for<true, From, walked, Row, C>(job.how, job.streams);
  const auto rotate_into = [&](const token_run& run, const tensor_shape& to) {
    job.from = tokens_of(keys.from, run);
    job.to = to;
    job.where = positions(run.position);
    tensor_walk<From, walked, Row, C>(job, kernels).run();
  };
  const auto rotate_live = [&](const token_run& run) {
    if constexpr (Live) rotate_run<From, Row>(job, tokens_of(keys.from, run), positions(run.position));
  };
  if constexpr (is_quantised<To>) {
    quantised_piece<To> floats(keys.cache, 0, keys.cache.head_dim);
    runs.template each<Live>(keys.from.heads, part, [&](const token_run& run) {
      each_piece(run, keys.cache.head_dim, [&](const token_run& piece) {
        if (piece.skipped) return;
        rotate_into(piece, floats.shape(piece));
        floats.pack(piece);
      });
      rotate_live(run);
    });
  } else {
    runs.template each<Live>(keys.from.heads, part, [&](const token_run& run) {
      if (!run.skipped) rotate_into(run, places_of(keys.cache, run));
      rotate_live(run);
    });
  }
}

/// Puts values into their slots.
template <class From, class To>
void put_values(const cache_writing& values, bool streams, const token_runs& runs, const slice& part) {
  const tensor_shape& from = values.from;
  if constexpr (is_quantised<To>) {
    const channel_copy<From, float> copy(false);
    quantised_piece<To> floats(values.cache, 0, values.cache.head_dim);
    runs.each(from.heads, part, [&](const token_run& run) {
      each_piece(run, from.head_dim, [&](const token_run& piece) {
        copy(tokens_of(from, piece), floats.shape(piece));
        floats.pack(piece);
      });
    });
  } else {
    const channel_copy<From, To> copy(streams);
    runs.each(from.heads, part,
              [&](const token_run& run) { copy(tokens_of(from, run), places_of(values.cache, run)); });
  }
}

/// Where a call has no values: a cache of keys alone, as of MLA.
struct no_values {
  void check(const char*, const cache_writing&, bool) {}
  void put(const slot_list&, const slice&) const {}
};

template <class From, class To>
struct values_to_put {
  cache_writing writing;

  /// `live`: the keys are written, too.
  void check(const char* function, const cache_writing& keys, bool live) {
    const tensor_shape &v = writing.from, &k = keys.from, &places = keys.cache.places;
    if (v.batch != k.batch || v.tokens != k.tokens) {
      fail("rotary::%s: v has %zu sequences of %zu tokens and k %zu of %zu; they must be equal.", function, v.batch,
           v.tokens, k.batch, k.tokens);
    }
    if (writing.cache.places.batch != places.batch || writing.cache.places.tokens != places.tokens) {
      fail(
          "rotary::%s: the v cache has %zu blocks of %zu slots and the k cache %zu of %zu; they must be equal, since "
          "the slots are shared.",
          function, writing.cache.places.batch, writing.cache.places.tokens, places.batch, places.tokens);
    }
    writing.check<cache_format_of<To>>(function);
    if (writing.empty() || keys.empty()) return;
    const tensor_shape& v_places = writing.cache.places;
    check_disjoint(function, "the k cache", places, keys.in_cache, "the v cache", v_places, writing.in_cache);
    check_disjoint(function, "v", v, writing.in_from, "the k cache", places, keys.in_cache);
    check_disjoint(function, "k", k, keys.in_from, "the v cache", v_places, writing.in_cache);
    if (live) check_disjoint(function, "k", k, keys.in_from, "v", v, writing.in_from);
  }

  void put(const slot_list& slot_ids, const slice& part) const {
    if (writing.empty()) return;
    // Whole heads rotate nowhere, but memory is treated as if all their channels did.
    const std::size_t pairs = writing.from.head_dim / 2;
    rotation_job job = writing.job({nullptr, nullptr, 0, pairs, 0, 1, 0}, 0, {});
    if (writing.from.tokens > 1) choose_memory_habits(job, false);
    const bool streams = job.streams && writing.from.head_dim % 2 == 0;
    const token_runs runs(writing.from, slot_ids, 0, writing.cache.places.tokens, no_limit);
    put_values<format_of<From>, cache_format_of<To>>(writing, streams, runs, part);
  }
};

/// Checks everything before anything is written. Live: the keys are written, too.
template <class To, class Values>
void check_append(const char* function, cache_writing& keys, const rotation_job& job, Values& values,
                  const slot_list& slot_ids, const slice& part, bool live) {
  const tensor_shape& k = keys.from;
  check_slice(function, part);
  keys.check<To>(function);
  if (!keys.empty()) {
    check_block(function, k, job.table, job.how);
    check_positions(function, k, job.table, job.where);
    if (live) check_in_place(function, k, job.how);
  }
  values.check(function, keys, live);
  if (multiply_overflows(k.batch, k.tokens) || slot_ids.size() != k.batch * k.tokens) {
    fail("rotary::%s: %zu slots were given; k has %zu sequences of %zu tokens. Give one of each token.", function,
         slot_ids.size(), k.batch, k.tokens);
  }
  check_slots(function, slot_ids, keys.cache);
}

template <bool Live, class From, class To, class Row, class Values>
void run_append(const char* function, const tensor_view<From>& k, const cache_view<To>& cache, Values values,
                const slot_list& slot_ids, const table_view<Row>& rows, const positions& where, const layout& how,
                const slice& part) {
  static_assert(!Live || !std::is_const<From>::value, "rotary: keys that are rotated must not be const");
  using from = format_of<From>;
  using to = cache_format_of<To>;
  using walked = std::conditional_t<is_quantised<to>, float, to>;
  cache_writing keys = {"k", "the k cache", shape_of(k), shape_of(cache)};
  rotation_job job = keys.job(shape_of(rows), where, how);
  check_append<to>(function, keys, job, values, slot_ids, part, Live);
  if (!keys.empty()) {
    if (k.tokens > 1 && !is_quantised<to>) choose_memory_habits(job, false);
    const token_runs runs(keys.from, slot_ids, where, keys.cache.places.tokens, Live ? live_tokens : no_limit);
#if ROTARY_X86
    if constexpr (compute<from, to, format_of<Row>>::half) {
      if (half_arithmetic()) {
        put_keys<Live, float16, from, to, format_of<Row>>(keys, job, runs, part);
        return values.put(slot_ids, part);
      }
    }
#endif
    using formats = compute<from, walked, format_of<Row>>;
    put_keys<Live, typename formats::type, from, to, format_of<Row>>(keys, job, runs, part);
  }
  values.put(slot_ids, part);
}

}  // namespace detail
}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
