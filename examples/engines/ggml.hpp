// Stands in for ggml_rope_ext, ggml_rope_multi and their _back on the CPU: x is [head_dim, heads, tokens, batch] with
// byte strides nb (ggml lists the fastest axis first; nb[0] is the element), float or float16, in place or not. pos is
// int32 [tokens], for MROPE, IMROPE and VISION [4 * tokens], axis by axis.
//
// What differs from ggml: it computes each angle by repeated float multiplication, which at position 131072 is 0.011
// off in cos and sin (theta 10000, 128 channels); here angles are exact. angles::float32_recurrence gives ggml's
// numbers within 1.2e-07, and on a YaRN ramp, which ggml computes in float, within 1.0e-05 at position 32768; VISION,
// whose angles restart in the middle, has no such mode, and is within 4.2e-07 of ggml at positions of patches. Sections
// must sum to n_dims / 2; ggml repeats shorter ones. engines.ggml prints the figures.
#ifndef ROTARY_EXAMPLES_ENGINES_GGML_HPP
#define ROTARY_EXAMPLES_ENGINES_GGML_HPP

#include <cmath>
#include <rotary/rotary.hpp>
#include <utility>

#include "refuse.hpp"

namespace engines::ggml {

enum rope_type : int { normal = 0, neox = 2, mrope = 8, vision = 24, imrope = 40 };  // GGML_ROPE_TYPE_*

/// What ggml keeps in op_params, and the tensor of divisors.
struct rope_params {
  int n_dims = 0, mode = normal, n_ctx_orig = 0;
  float freq_base = 10000.0f, freq_scale = 1.0f, ext_factor = 0.0f, attn_factor = 1.0f;
  float beta_fast = 32.0f, beta_slow = 1.0f;
  int sections[4] = {0, 0, 0, 0};
  const float* freq_factors = nullptr;  // [n_dims / 2]; [n_dims] for VISION; null: none
};

template <class T>
struct tensor {
  T* data;
  std::int64_t ne[4];
  std::size_t nb[4];
};

/// VISION pairs n_dims channels with as many others, in two halves that restart at frequency 1. ext_factor weighs how
/// much of an angle is left without freq_scale, on YaRN's ramp.
inline rotary::spectrum spectrum_of(const rope_params& p) {
  const std::size_t n = size("ggml", "n_dims", p.n_dims);
  const double base = p.freq_base, scale = p.freq_scale, ext = p.ext_factor;
  auto inv_freq = p.mode == vision ? rotary::make_spectrum(2 * n, base, rotary::axial{{n, n}}).inv_freq()
                                   : rotary::inverse_frequencies(n, base);
  rotary::yarn::range ramp = {0.0, 0.0};
  double magnitude = p.attn_factor;
  if (ext != 0.0) {
    ramp = rotary::yarn{1.0, p.n_ctx_orig, p.beta_fast, p.beta_slow}.correction_range(n, base);
    magnitude *= 1.0 + 0.1 * std::log(1.0 / scale);
  }
  for (std::size_t j = 0; j < inv_freq.size(); ++j) {
    const double at = (static_cast<double>(j) - ramp.low) / std::fmax(0.001, ramp.high - ramp.low);
    const double unscaled = ext * (1.0 - std::fmin(1.0, std::fmax(0.0, at)));
    inv_freq[j] *= scale + (1.0 - scale) * unscaled;
    if (p.freq_factors != nullptr) inv_freq[j] /= static_cast<double>(p.freq_factors[j]);
  }
  return rotary::spectrum(std::move(inv_freq), magnitude, p.mode == vision ? 0.0 : rotary::step_ratio(n, base));
}

inline rotary::axis_map axes_of(const rope_params& p) {
  const rotary::list<std::size_t> sections(p.sections, 4);
  const std::size_t n = size("ggml", "n_dims", p.n_dims);
  switch (p.mode) {
    case normal:
    case neox:
      return rotary::axis_map(rotary::list<std::uint8_t>(n / 2), 1);
    case mrope:
      return rotary::mrope_chunked(sections);
    case imrope:
      return rotary::mrope_interleaved_ggml(sections);
    case vision:
      if (2 * sections[0] != n) refuse("ggml", "sections[0]", p.sections[0], "VISION needs n_dims / 2.");
      if (2 * sections[1] != n) refuse("ggml", "sections[1]", p.sections[1], "VISION needs n_dims / 2.");
      return rotary::vision_2d(n);
    default:
      refuse("ggml", "mode", p.mode, "it must be 0, 2, 8, 24 or 40.");
  }
}

template <class T>
rotary::tensor_view<T> view(const tensor<T>& x) {
  std::size_t ne[4];
  std::ptrdiff_t stride[4];
  for (int i = 0; i < 4; ++i) {
    ne[i] = size("ggml", "ne", x.ne[i]);
    if (x.nb[i] % sizeof(T) != 0) {
      refuse("ggml", "nb", static_cast<std::int64_t>(x.nb[i]), "it must be a multiple of the element's size.");
    }
    stride[i] = static_cast<std::ptrdiff_t>(x.nb[i] / sizeof(T));
  }
  if (stride[0] != 1) refuse("ggml", "nb[0] in elements", stride[0], "it must be 1. Make the tensor contiguous.");
  return {x.data, ne[3], ne[2], ne[1], ne[0], stride[3], stride[2], stride[1]};
}

/// One graph's rope nodes of equal parameters.
class rope {
 public:
  explicit rope(const rope_params& p, rotary::angles mode = rotary::angles::exact) : rope(p, axes_of(p), mode) {}

  /// Once per forward pass, by one thread. Allocates only when tokens exceeds every number before.
  void set_positions(const std::int32_t* pos, std::int64_t tokens) {
    step_.assign(rotary::axis_major(pos, step_.axes(), size("ggml", "tokens", tokens)));
  }

  /// By each of nth threads; dst may be src.
  template <class From, class T>
  void forward(const tensor<From>& src, const tensor<T>& dst, std::size_t ith = 0, std::size_t nth = 1) const {
    require_whole_heads(dst.ne[0]);
    rotary::rotate(view(src), view(dst), step_, how_, {ith, nth});
  }
  template <class From, class T>
  void back(const tensor<From>& src, const tensor<T>& dst, std::size_t ith = 0, std::size_t nth = 1) const {
    require_whole_heads(dst.ne[0]);
    rotary::rotate_adjoint(view(src), view(dst), step_, how_, {ith, nth});
  }

 private:
  rope(const rope_params& p, const rotary::axis_map& axes, rotary::angles mode)
      : head_dim_(p.mode == vision ? 2 * std::int64_t{p.n_dims} : 0),
        step_(spectrum_of(p), axes, mode),
        how_(p.mode == normal ? rotary::pairing::interleaved : rotary::pairing::split_half) {}

  void require_whole_heads(std::int64_t head_dim) const {
    if (head_dim_ != 0 && head_dim != head_dim_) refuse("ggml", "ne[0]", head_dim, "VISION needs 2 * n_dims.");
  }

  std::int64_t head_dim_;  // 0: any
  rotary::step_table<float> step_;
  rotary::layout how_;
};

}  // namespace engines::ggml

#endif
