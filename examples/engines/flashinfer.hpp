// Stands in, on the CPU, for FlashInfer's apply_rope and apply_rope_pos_ids (and apply_llama31_rope with the spectrum
// of a llama3 policy): q and k, ragged [nnz, heads, head_dim] with two strides each, rotated into q_rope and k_rope,
// which may be q and k. flashinfer_append.hpp has the paged cache.
//
// What differs from FlashInfer: it computes angles in float with fast power, sine and cosine; float angles alone are
// 5.0e-03 off in cos and sin at position 131071 (theta 10000, 128 channels), here they are exact. engines.flashinfer
// prints the figure; the GPU's fast functions, which it cannot run, come on top.
#ifndef ROTARY_EXAMPLES_ENGINES_FLASHINFER_HPP
#define ROTARY_EXAMPLES_ENGINES_FLASHINFER_HPP

#include <rotary/position_maps.hpp>
#include <rotary/rotary.hpp>
#include <vector>

#include "refuse.hpp"

namespace engines::flashinfer {

/// A tensor [n, heads, head_dim], strides in elements.
template <class T>
struct ragged {
  T* data;
  std::int64_t n, heads, head_dim, stride_n, stride_h;

  rotary::tensor_view<T> view() const {
    return {data,
            1,
            size("flashinfer", "n", n),
            size("flashinfer", "heads", heads),
            size("flashinfer", "head_dim", head_dim),
            0,
            stride_n,
            stride_h};
  }
};

/// One set of rotary_dim, interleave, rope_scale and rope_theta; keep it for all layers. apply_llama31_rope is the
/// other constructor with make_spectrum(rotary_dim, theta, llama3{...}).
class rope {
 public:
  rope(std::int64_t rotary_dim, bool interleave, double rope_scale, double rope_theta)
      : rope(
            rotary::make_spectrum(size("flashinfer", "rotary_dim", rotary_dim), rope_theta, rotary::linear{rope_scale}),
            interleave) {}
  rope(const rotary::spectrum& of, bool interleave)
      : step_(of), how_(interleave ? rotary::pairing::interleaved : rotary::pairing::split_half) {}

  template <class T, class Id>
  void apply_rope_pos_ids(const ragged<const T>& q, const ragged<const T>& k, const ragged<T>& q_rope,
                          const ragged<T>& k_rope, const Id* pos_ids) {
    if (q.n != k.n) refuse("flashinfer", "k's size 0", k.n, "q and k must have as many tokens.");
    step_.assign(pos_ids, size("flashinfer", "n", q.n));
    rotary::rotate(q.view(), q_rope.view(), step_, how_);
    rotary::rotate(k.view(), k_rope.view(), step_, how_);
  }

  /// Request b is rows [indptr[b], indptr[b + 1]), its first token at position offsets[b].
  template <class T, class Id>
  void apply_rope(const ragged<const T>& q, const ragged<const T>& k, const ragged<T>& q_rope, const ragged<T>& k_rope,
                  const Id* indptr, const Id* offsets, std::size_t batch) {
    ids_.resize(size("flashinfer", "n", q.n));
    rotary::write_positions(rotary::positions::ragged(indptr, batch, offsets), 1, ids_.size(), ids_.data(),
                            ids_.size());
    apply_rope_pos_ids(q, k, q_rope, k_rope, ids_.data());
  }

 private:
  rotary::step_table<float> step_;
  std::vector<std::int64_t> ids_;
  rotary::layout how_;
};

}  // namespace engines::flashinfer

#endif
