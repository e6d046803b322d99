// What heads of q and k are normalised by.
#ifndef ROTARY_RMS_NORM_HPP
#define ROTARY_RMS_NORM_HPP

#include "types.hpp"

namespace rotary {
inline namespace ROTARY_ABI {

enum class norm_order : unsigned char {
  before_rotation,  ///< Qwen3, Gemma-3
  after_rotation,   ///< Hunyuan; Llama-4, whose norm has no weight
  none              ///< rotation and scale alone
};

/// RMSNorm of each head by itself: channel i of a head becomes
///
///     x[i] / sqrt(mean of x^2 + eps) * weight[i]                            (Zhang & Sennrich, arXiv 1910.07467)
///
/// where the mean is over all head_dim channels, those that do not rotate, too. W is any element type. Not for norms
/// over all heads of a token, as OLMo-2 has.
template <class W = float>
struct rms_norm {
  const W* weight =
      nullptr;            ///< [head_dim], borrowed, of the channels as they are when they are normalised; null: none
  std::size_t size = 0;   ///< head_dim; 0 where weight is null
  double eps = 1e-6;      ///< 0 to 1e300; with 0, a head of zeros becomes NaN, as in torch and ggml
  bool one_plus = false;  ///< multiply by 1 + weight[i]: Gemma
  norm_order order = norm_order::before_rotation;
};

/// For models that have a temperature of queries but no norm: Ministral-3.
inline constexpr rms_norm<> no_norm = {nullptr, 0, 0.0, false, norm_order::none};

}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
