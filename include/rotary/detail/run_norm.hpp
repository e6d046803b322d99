// One call of a norm with a rotation: check it, make the factors of each token, hand its heads to a kernel.
#ifndef ROTARY_DETAIL_RUN_NORM_HPP
#define ROTARY_DETAIL_RUN_NORM_HPP

#include "../query_scale.hpp"
#include "../rms_norm.hpp"
#include "norm_kernels.hpp"
#include "run_append.hpp"

namespace rotary {
inline namespace ROTARY_ABI {
namespace detail {

/// Channels of a head whose factors are kept on the stack.
constexpr std::size_t most_normed_channels = 1024;

/// The longest row of factors: not that of whole heads, where few channels beside the pairs take vectors of their own.
constexpr std::size_t most_factors() {
  std::size_t most = 0;
  for (std::size_t pairs = 0; pairs <= most_normed_channels / 2; ++pairs) {
    const std::size_t row = norm_sizes{most_normed_channels, pairs, 0}.row();
    if (row > most) most = row;
  }
  return most;
}

/// C: what is computed in.
template <class C, class W>
void check_norm(const char* function, const rms_norm<W>& norm, const query_scale& scale, const tensor_shape& x) {
  static_assert(sizeof(W) == sizeof(format_of<W>), "rotary::element<W>::format must have the size of W");
  if (norm.weight == nullptr && (norm.size != 0 || norm.one_plus)) {
    fail(
        "rotary::%s: norm.weight is a null pointer, norm.size %zu, norm.one_plus %s; without a weight they must be 0 "
        "and false. Pass the weights.",
        function, norm.size, norm.one_plus ? "true" : "false");
  }
  if (norm.weight != nullptr && norm.order == norm_order::none) {
    fail("rotary::%s: norm.weight is given and norm.order is none; weights belong to a norm. Use no_norm.", function);
  }
  if (norm.weight != nullptr && norm.size != x.head_dim) {
    fail("rotary::%s: norm.size is %zu; it must be head_dim = %zu, a weight for each channel.", function, norm.size,
         x.head_dim);
  }
  if (!is_finite(norm.eps) || norm.eps < 0.0 || norm.eps > 1e300) {
    fail("rotary::%s: norm.eps is %g; it must be finite, from 0 to 1e300. Use the model's rms_norm_eps.", function,
         norm.eps);
  }
  if (x.head_dim > most_normed_channels) {
    fail("rotary::%s: head_dim is %zu; heads that are normalised may have up to %zu channels.", function, x.head_dim,
         most_normed_channels);
  }
  constexpr bool in_double = std::is_same<C, double>::value;
  scale.check(function, x.batch, x.tokens, in_double ? 2.3e-308 : 1.2e-38, in_double ? 1e308 : 3e38);
}

/// Normalises and rotates runs of a call's heads. TwoTensors: from one tensor to another.
template <bool TwoTensors, class From, class To, class Row, class W, class C>
class normed_rotation {
 public:
  normed_rotation(const tensor_shape& x, const rms_norm<W>& norm, const query_scale& scale, const rows_shape& table,
                  const layout& how)
      : table_(table),
        how_(how),
        sizes_{x.head_dim, table.pairs, how.offset},
        eps_(norm.eps),
        order_(norm.order),
        scale_(scale),
        sequence_(x.tokens),
        kernels_(norm_kernels_for<TwoTensors, From, To, Row, format_of<W>, C>(how)) {
    gather_weights(norm);
  }

  /// The heads of a run, in the tensor and where they go to.
  void operator()(const token_run& run, const tensor_shape& from, const tensor_shape& to) {
    using grid = norm_grid<From, To, C>;
    const std::size_t row = sizes_.row(), fit = factors_room / row;
    const bool tokens_inside = run.tokens > 1 && absolute(from.token_stride) < absolute(from.head_stride);
    const std::size_t enough = tokens_inside ? fit : (grid::together + run.heads - 1) / run.heads;
    const head_axis of_heads = {run.heads, from.head_stride, to.head_stride, 0};
    head_axis of_tokens = {enough < fit ? enough : fit, from.token_stride, to.token_stride,
                           static_cast<std::ptrdiff_t>(row)};
    for (std::size_t t = 0; t < run.tokens; t += of_tokens.count) {
      if (run.tokens - t < of_tokens.count) of_tokens.count = run.tokens - t;
      for (std::size_t i = 0; i < of_tokens.count; ++i) fold(run, t + i, factors_ + i * row);
      const grid heads = {reinterpret_cast<const From*>(from.address) + from.at(0, t, 0),
                          reinterpret_cast<To*>(to.address) + to.at(0, t, 0),
                          factors_,
                          tokens_inside ? of_tokens : of_heads,
                          tokens_inside ? of_heads : of_tokens,
                          sizes_,
                          eps_,
                          order_};
      kernels_.normalise(heads);
    }
  }

 private:
  /// Weights in the order of the factors: of the pairs' first members, of their second ones, of other channels.
  void gather_weights(const rms_norm<W>& norm) {
    C* const all = factors_;  // not needed yet
    for (std::size_t i = 0; norm.weight == nullptr && i < sizes_.channels; ++i) all[i] = C(1);
    if (norm.weight != nullptr) {
      kernels_.read_weights(reinterpret_cast<const format_of<W>*>(norm.weight), all, sizes_.channels);
    }
    for (std::size_t i = 0; norm.one_plus && i < sizes_.channels; ++i) {  // in double: 1 + weight may be close to 0
      all[i] = static_cast<C>(1.0 + load_scalar<double>(reinterpret_cast<const format_of<W>*>(norm.weight) + i));
    }
    const pairing order = order_ == norm_order::after_rotation ? how_.stored : how_.pairing;
    const std::size_t pairs = sizes_.pairs, behind = sizes_.offset + 2 * pairs;
    for (std::size_t j = 0; j < pairs; ++j) {
      const std::size_t first = sizes_.offset + first_member(order, j);
      first_[j] = all[first];
      second_[j] = all[order == pairing::split_half ? first + pairs : first + 1];
    }
    for (std::size_t i = 0; i < sizes_.offset; ++i) outside_[i] = all[i];
    for (std::size_t i = behind; i < sizes_.channels; ++i) outside_[i - 2 * pairs] = all[i];
    for (std::size_t j = pairs; j < in_whole_vectors(pairs); ++j) first_[j] = second_[j] = cos_[j] = sin_[j] = C(0);
    const std::size_t outside = sizes_.channels - 2 * pairs;
    for (std::size_t i = outside; i < in_whole_vectors(outside); ++i) outside_[i] = C(0);
  }

  /// The factors of token t of a run.
  void fold(const token_run& run, std::size_t t, C* row) {
    const std::uint64_t position = static_cast<std::uint64_t>(run.position) + t;
    const std::ptrdiff_t at =
        static_cast<std::ptrdiff_t>(position - static_cast<std::uint64_t>(table_.first_position)) * table_.row_stride;
    if (sizes_.pairs != 0) {
      kernels_.read_row(static_cast<const Row*>(table_.cos) + at, table_.pair_step, sizes_.pairs, 1.0, cos_);
      kernels_.read_row(static_cast<const Row*>(table_.sin) + at, table_.pair_step, sizes_.pairs, 1.0, sin_);
    }
    const C scale = static_cast<C>(scale_.of_token(run.token + t, sequence_));
    // A weight belongs to the channel that is normalised: of the source, or of the result.
    const bool after = order_ == norm_order::after_rotation;
    kernels_.fold({cos_, sin_, scale, first_, second_, after ? first_ : second_, after ? second_ : first_, outside_},
                  sizes_, row);
    if (after) weigh_squares(row);
  }

  /// (a cos - b sin)^2 + (b cos + a sin)^2 = (a^2 + b^2) (cos^2 + sin^2), which is not 1 of rows with a magnitude.
  void weigh_squares(C* row) const {
    for (std::size_t i = 0; i < in_whole_vectors(sizes_.channels); ++i) row[i] = C(1);
    const std::size_t step = how_.pairing == pairing::split_half ? sizes_.pairs : 1;
    for (std::size_t j = 0; j < sizes_.pairs; ++j) {
      C* const first = row + sizes_.offset + first_member(how_.pairing, j);
      first[0] = first[step] = cos_[j] * cos_[j] + sin_[j] * sin_[j];
    }
  }

  static constexpr std::size_t most_channels = in_whole_vectors(most_normed_channels);
  static constexpr std::size_t most_pairs = in_whole_vectors(most_normed_channels / 2);
  static constexpr std::size_t factors_room = most_factors();

  alignas(64) C factors_[factors_room];
  alignas(64) C first_[most_pairs], second_[most_pairs], outside_[most_channels];
  alignas(64) C cos_[most_pairs], sin_[most_pairs];
  const rows_shape& table_;
  const layout& how_;
  norm_sizes sizes_;
  double eps_;
  norm_order order_;
  const query_scale& scale_;
  std::size_t sequence_;  // tokens of one
  norm_kernels<From, To, Row, format_of<W>, C> kernels_;
};

template <bool TwoTensors, class From, class To, class W, class Row>
void run_norm(const tensor_view<From>& from, const tensor_view<To>& to, const rms_norm<W>& norm,
              const table_view<Row>& rows, const positions& where, const layout& how, const slice& part,
              const query_scale& scale) {
  static_assert(!std::is_const<To>::value, "rotary: the destination must not be const");
  constexpr const char* function = "norm_and_rotate";
  using read = format_of<From>;
  using written = format_of<To>;
  using row = format_of<Row>;
  rotation_job job = {shape_of(from), shape_of(to), shape_of(rows), where, how, 1.0, 1.0};
  prepare(function, job, TwoTensors, std::is_same<read, written>::value, part);
  if (job.from.empty()) return;
  using computed = typename compute<read, written, row>::type;
  check_norm<computed>(function, norm, scale, job.from);
  normed_rotation<TwoTensors, read, written, row, W, computed> pass(job.from, norm, scale, job.table, how);
  const std::size_t tokens = from.batch * from.tokens;
  const token_runs runs(job.from, slot_list::range(0, tokens), where, tokens, no_limit);
  runs.each(from.heads, part,
            [&](const token_run& run) { pass(run, tokens_of(job.from, run), tokens_of(job.to, run)); });
}

/// Normalises and rotates keys into their slots.
template <class From, class To, class Row, class W>
void put_normed_keys(const cache_writing& keys, const rotation_job& job, const rms_norm<W>& norm,
                     const token_runs& runs, const slice& part) {
  using walked = std::conditional_t<is_quantised<To>, float, To>;
  const query_scale none;
  normed_rotation<true, From, walked, Row, W, typename compute<From, walked, Row>::type> pass(keys.from, norm, none,
                                                                                              job.table, job.how);
  if constexpr (is_quantised<To>) {
    quantised_piece<To> floats(keys.cache, 0, keys.cache.head_dim);
    runs.each(keys.from.heads, part, [&](const token_run& run) {
      each_piece(run, keys.cache.head_dim, [&](const token_run& piece) {
        pass(piece, tokens_of(keys.from, piece), floats.shape(piece));
        floats.pack(piece);
      });
    });
  } else {
    runs.each(keys.from.heads, part,
              [&](const token_run& run) { pass(run, tokens_of(keys.from, run), places_of(keys.cache, run)); });
  }
}

template <class From, class To, class W, class Row, class Values>
void run_norm_append(const tensor_view<From>& k, const rms_norm<W>& norm, const cache_view<To>& cache, Values values,
                     const slot_list& slot_ids, const table_view<Row>& rows, const positions& where, const layout& how,
                     const slice& part) {
  constexpr const char* function = "norm_and_append";
  using to = cache_format_of<To>;
  cache_writing keys = {"k", "the k cache", shape_of(k), shape_of(cache)};
  const rotation_job job = keys.job(shape_of(rows), where, how);
  check_append<to>(function, keys, job, values, slot_ids, part, false);
  if (!keys.empty()) {
    check_norm<float>(function, norm, query_scale(), keys.from);
    const token_runs runs(keys.from, slot_ids, where, keys.cache.places.tokens, no_limit);
    put_normed_keys<format_of<From>, to, format_of<Row>>(keys, job, norm, runs, part);
  }
  values.put(slot_ids, part);
}

}  // namespace detail
}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
