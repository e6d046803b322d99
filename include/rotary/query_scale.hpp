// What queries are multiplied by: a number, and one of each token.
#ifndef ROTARY_QUERY_SCALE_HPP
#define ROTARY_QUERY_SCALE_HPP

#include "error.hpp"
#include "types.hpp"

namespace rotary {
inline namespace ROTARY_ABI {

/// A multiplier of whole heads, channels that do not rotate too: one for all tokens, and one of each. Converts from a
/// number. For the temperature of Llama-4 and Ministral-3, fill the array once per forward pass with
/// query_temperature::multiplier of each token's position (rope.hpp).
class query_scale {
 public:
  query_scale(double of_all = 1.0) noexcept : of_all_(of_all) {}
  /// of_token: count is tokens (all sequences share them) or batch * tokens (row-major [batch, tokens]); borrowed.
  query_scale(const float* of_token, std::size_t count, double of_all = 1.0) noexcept
      : of_all_(of_all), of_token_(of_token), count_(count), given_(true) {}

  /// Throws rotary::error, in the name of `function`, for a multiplier that is neither 0 nor between `least` and
  /// `most`, and where the array does not fit [batch, tokens]. Every call that takes a scale does this.
  void check(const char* function, std::size_t batch, std::size_t tokens, double least, double most) const {
    if (!fits(of_all_, least, most)) {
      detail::fail("rotary::%s: scale is %g; it must be finite, 0 or between %g and %g. Use 1 for none.", function,
                   of_all_, least, most);
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
      if (detail::is_finite(factor) && fits(factor * of_all_, least, most)) continue;
      detail::fail(
          "rotary::%s: the factor of token %zu is %g, times scale %g; that must be finite, 0 or between %g and %g. Use "
          "1 "
          "for none.",
          function, i, factor, of_all_, least, most);
    }
  }

  /// The multiplier of a token, counted over the batch, which has `tokens` a sequence.
  double of_token(std::size_t token, std::size_t tokens) const noexcept {
    if (!given_) return of_all_;
    return of_all_ * static_cast<double>(of_token_[count_ == tokens ? token % tokens : token]);
  }

 private:
  static bool fits(double factor, double least, double most) {
    const double size = factor < 0 ? -factor : factor;
    return detail::is_finite(factor) && size <= most && (size >= least || factor == 0.0);
  }

  double of_all_;
  const float* of_token_ = nullptr;
  std::size_t count_ = 0;
  bool given_ = false;
};

}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
