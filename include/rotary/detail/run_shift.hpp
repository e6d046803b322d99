// One call that rotates cached keys where they are: check it, then walk over the slots.
#ifndef ROTARY_DETAIL_RUN_SHIFT_HPP
#define ROTARY_DETAIL_RUN_SHIFT_HPP

#include "cache_runs.hpp"

namespace rotary {
inline namespace ROTARY_ABI {
namespace detail {

/// Rotates the heads of each run where they are. C: what to compute in.
template <class C, class T, class Row>
void rotate_slots(const cache_shape& cache, rotation_job job, const token_runs& runs, const slice& part) {
  if constexpr (is_quantised<T>) {
    // Only the elements that hold rotated channels.
    constexpr std::size_t channels = channels_in<T>;
    const std::size_t first = job.how.offset / channels * channels;
    const std::size_t end = (job.how.offset + 2 * job.table.pairs + channels - 1) / channels * channels;
    quantised_piece<T> floats(cache, first, end - first);
    const auto kernels = kernels_for<false, float, float, Row, C>(job.how);
    job.how.offset -= first;
    runs.each(cache.places.heads, part, [&](const token_run& run) {
      each_piece(run, end - first, [&](const token_run& piece) {
        floats.unpack(piece);
        job.from = job.to = floats.shape(piece);
        job.where = positions(piece.position);
        tensor_walk<float, float, Row, C>(job, kernels).run();
        floats.pack(piece);
      });
    });
  } else {
    const auto kernels = kernels_for<false, T, T, Row, C>(job.how);
    runs.each(cache.places.heads, part, [&](const token_run& run) {
      job.from = job.to = places_of(cache, run);
      job.where = positions(run.position);
      tensor_walk<T, T, Row, C>(job, kernels).run();
    });
  }
}

/// Row i of `rows`, multiplied by `factor`, for the key in slot_ids[i]; if `shares`, a single row serves for all.
template <class T, class Row>
void run_shift(const char* function, const cache_view<T>& view, const slot_list& slot_ids, const table_view<Row>& rows,
               double factor, bool shares, const layout& how, const slice& part) {
  using format = cache_format_of<T>;
  const cache_shape cache = shape_of(view);
  shares = shares && rows.rows == 1;
  if (rows.rows != slot_ids.size() && !shares) {
    fail("rotary::%s: the step_table has %zu rows for %zu slots; assign one of each slot.", function, rows.rows,
         slot_ids.size());
  }
  check_slice(function, part);
  if (slot_ids.size() == 0 || cache.places.heads == 0 || cache.head_dim == 0) return;
  const rows_shape table = {rows.cos,       rows.sin, slot_ids.size(), rows.pairs, shares ? 0 : rows.row_stride,
                            rows.pair_step, 0};
  tensor_shape keys = cache.places;  // one sequence, whose tokens are the slots
  keys.batch = 1;
  keys.tokens = slot_ids.size();
  keys.head_dim = cache.head_dim;
  check_in_place(function, cache.places, how);
  check_cache<format>(function, "the cache", cache);
  check_block(function, keys, table, how);
  check_slots(function, slot_ids, cache);
  if (rows.pairs == 0) return;

  rotation_job job = {keys, keys, table, positions(0), how, factor, factor};
  job.plain_rows = table.pair_step == 1 && factor == 1.0;
  if (!is_quantised<format>) choose_memory_habits(job, true);
  const token_runs runs(keys, slot_ids, positions(0), cache.places.tokens, no_limit);
  using row = format_of<Row>;
  using walked = std::conditional_t<is_quantised<format>, float, format>;
  using formats = compute<walked, walked, row>;
#if ROTARY_X86
  if constexpr (formats::half) {
    const bool keeps_digits = factor * factor >= 0x1p-8 && factor * factor <= 0x1p8;
    if (half_arithmetic() && keeps_digits) return rotate_slots<float16, format, row>(cache, job, runs, part);
  }
#endif
  rotate_slots<typename formats::type, format, row>(cache, job, runs, part);
}

/// What takes the magnitude out of rows: keys have it already.
inline double without_magnitude(const char* function, double magnitude) {
  if (is_finite(magnitude) && magnitude > 1e-30 && magnitude < 1e30) return 1.0 / magnitude;
  fail(
      "rotary::%s: the rows have the magnitude %g; keys can be moved by rows with one magnitude, between 1e-30 and "
      "1e30. Keys of xPos cannot be moved.",
      function, magnitude);
}

/// The row of one position, for as many pairs as there is room for. The same bound as for a table.
template <class Row>
class one_row {
 public:
  one_row(const char* function, const spectrum& of, std::int64_t position) : pairs_(of.pairs()) {
    if (pairs_ > room) {
      fail("rotary::%s: the spectrum has %zu pairs; one delta takes up to %zu. Use a step_table.", function, pairs_,
           room);
    }
    if (!of.growth().empty()) without_magnitude(function, 0.0);
    for (std::size_t j = 0; j < pairs_; ++j) {
      const double angle = static_cast<double>(position) * of.inv_freq()[j];
      if (!is_finite(angle)) {
        fail("rotary::%s: delta is %lld; its angle with inv_freq[%zu], %g, must be finite.", function,
             static_cast<long long>(position), j, of.inv_freq()[j]);
      }
      cos_[j] = static_cast<Row>(detail::cos(angle));
      sin_[j] = static_cast<Row>(detail::sin(angle));
    }
  }
  table_view<Row> view() const { return {cos_, sin_, 1, pairs_, 0}; }

 private:
  static constexpr std::size_t room = quantised_room / 2;
  std::size_t pairs_;
  Row cos_[room], sin_[room];
};

}  // namespace detail
}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
