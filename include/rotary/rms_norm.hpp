// What heads of q and k are normalised by, and what queries are multiplied by.
#ifndef ROTARY_RMS_NORM_HPP
#define ROTARY_RMS_NORM_HPP

#include "error.hpp"
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
  double eps = 1e-6;      ///< 0 or more; with 0, a head of zeros becomes NaN, as in torch and ggml
  bool one_plus = false;  ///< multiply by 1 + weight[i]: Gemma
  norm_order order = norm_order::before_rotation;
};

/// For models that have a temperature of queries but no norm: Ministral-3.
inline constexpr rms_norm<> no_norm = {nullptr, 0, 0.0, false, norm_order::none};

/// A multiplier of whole heads, channels that do not rotate too: one for all tokens, and one of each. Converts from a
/// number. For the temperature of Llama-4 and Ministral-3, fill the array once per forward pass with
/// query_temperature::multiplier of each token's position (rope.hpp).
class query_scale {
 public:
  query_scale(double of_all = 1.0) noexcept : of_all_(of_all) {}
  /// of_token: count is tokens (all sequences share them) or batch * tokens (row-major [batch, tokens]); borrowed.
  query_scale(const float* of_token, std::size_t count, double of_all = 1.0) noexcept
      : of_all_(of_all), of_token_(of_token), count_(count), given_(true) {}

  /// Throws rotary::error for a number that is not finite, and where the array does not fit [batch, tokens].
  void check(const char* function, std::size_t batch, std::size_t tokens) const {
    if (!detail::is_finite(of_all_)) {
      detail::fail("rotary::%s: scale is %g; it must be finite. Use 1 for none.", function, of_all_);
    }
    if (!given_) return;
    if (count_ != tokens && (count_ % tokens != 0 || count_ / tokens != batch)) {
      detail::fail(
          "rotary::%s: %zu factors of tokens were given; the view has %zu sequences of %zu tokens, so give tokens or "
          "batch * tokens of them.",
          function, count_, batch, tokens);
    }
    if (of_token_ == nullptr) {
      detail::fail("rotary::%s: the factors of tokens are a null pointer with %zu values; pass the array.", function,
                   count_);
    }
    for (std::size_t i = 0; i < count_; ++i) {
      const double factor = static_cast<double>(of_token_[i]);
      if (detail::is_finite(factor)) continue;
      detail::fail("rotary::%s: the factor of token %zu is %g; it must be finite. Use 1 for none.", function, i,
                   factor);
    }
  }

  /// The multiplier of a token, counted over the batch, which has `tokens` a sequence.
  double of_token(std::size_t token, std::size_t tokens) const noexcept {
    if (!given_) return of_all_;
    return of_all_ * static_cast<double>(of_token_[count_ == tokens ? token % tokens : token]);
  }

 private:
  double of_all_;
  const float* of_token_ = nullptr;
  std::size_t count_ = 0;
  bool given_ = false;
};

}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
