// Runs of tokens in the tensor that they come from, in the cache that they go to, and, for quantised caches, as floats
// on the stack in between.
#ifndef ROTARY_DETAIL_CACHE_RUNS_HPP
#define ROTARY_DETAIL_CACHE_RUNS_HPP

#include "cache_checks.hpp"
#include "cache_kernels.hpp"
#include "run_rotation.hpp"
#include "token_runs.hpp"

namespace rotary {
inline namespace ROTARY_ABI {
namespace detail {

/// A run's part of the cache.
inline tensor_shape places_of(const cache_shape& cache, const token_run& run) {
  tensor_shape part = cache.places;
  part.address = cache.at(run.slot, run.head);
  part.batch = 1;
  part.tokens = run.tokens;
  part.heads = run.heads;
  return part;
}

/// Visits a run in pieces of as many floats as there is room for; `channels` of a head, at most quantised_room, count.
template <class Visit>
void each_piece(const token_run& run, std::size_t channels, const Visit& visit) {
  const std::size_t fit = quantised_room / channels;
  const std::size_t heads = run.heads < fit ? run.heads : fit, tokens = heads < run.heads ? 1 : fit / heads;
  for (std::size_t t = 0; t < run.tokens; t += tokens) {
    for (std::size_t h = 0; h < run.heads; h += heads) {
      token_run piece = run;
      piece.token += t;
      piece.slot += t;
      piece.position = static_cast<std::int64_t>(static_cast<std::uint64_t>(run.position) + t);
      piece.tokens = run.tokens - t < tokens ? run.tokens - t : tokens;
      piece.head += h;
      piece.heads = run.heads - h < heads ? run.heads - h : heads;
      visit(piece);
    }
  }
}

/// Channels [first, first + count) of a piece's heads as floats, [tokens, heads, count], and the cache that they belong
/// to. first and count divide into elements of T.
template <class T>
class quantised_piece {
 public:
  quantised_piece(const cache_shape& cache, std::size_t first, std::size_t count)
      : cache_(cache), first_(first), count_(count) {}

  tensor_shape shape(const token_run& piece) {
    const std::ptrdiff_t head = static_cast<std::ptrdiff_t>(count_);
    return {reinterpret_cast<std::uintptr_t>(floats_),       sizeof(float), 1, piece.tokens, piece.heads, count_, 0,
            static_cast<std::ptrdiff_t>(piece.heads) * head, head};
  }

  void unpack(const token_run& piece) {
    each_head(piece, [this](float* floats, float scale, T* head) { kernels_.unpack(head, scale, floats, count_); });
  }
  void pack(const token_run& piece) {
    each_head(piece, [this](float* floats, float scale, T* head) { kernels_.pack(floats, scale, head, count_); });
  }

 private:
  template <class Visit>
  void each_head(const token_run& piece, const Visit& visit) {
    float* floats = floats_;
    for (std::size_t t = 0; t < piece.tokens; ++t) {
      for (std::size_t h = piece.head; h < piece.head + piece.heads; ++h, floats += count_) {
        visit(floats, cache_.scale_of(h), reinterpret_cast<T*>(cache_.at(piece.slot + t, h)) + first_ / channels_in<T>);
      }
    }
  }

  alignas(64) float floats_[quantised_room];
  const cache_shape& cache_;
  std::size_t first_, count_;
  quantised_kernels<T> kernels_ = select_quantised<T>();
};

}  // namespace detail
}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
