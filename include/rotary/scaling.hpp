// Scaling policies: what the published ways to extend a model's context do to its inverse frequencies. Each is a plain
// struct of the parameters that configs state, called by make_spectrum(rotary_dim, rope_theta, policy[, seq_len]).
//
// Units: lengths in tokens; w[j] = theta^(-2j/d) radians per position, d = rotary_dim. Every call throws error when a
// parameter is outside the range stated, naming it. docs/add-a-scaling-policy.md shows how to write another policy.
//
// Accuracy for theta >= 1 and factors >= 1: within 1.2e-16 radians per position, and within 4 units in the last place
// (8 for ntk_mixed) but on the ramps of llama3 and of untruncated yarn, where small differences can raise that to a
// relative 1e-13.
#ifndef ROTARY_SCALING_HPP
#define ROTARY_SCALING_HPP

#include <cstddef>
#include <cstdint>
#include <utility>

#include "detail/config.hpp"
#include "error.hpp"
#include "list.hpp"
#include "spectrum.hpp"

namespace rotary {
inline namespace ROTARY_ABI {
namespace detail {

inline void require_factor(const char* policy, double factor) {
  require_positive(policy, "factor", factor, "1 leaves the frequencies as they are.");
}

inline void require_length(const char* policy, const char* argument, std::int64_t value, std::int64_t least) {
  if (value >= least) return;
  fail("rotary::%s: %s is %lld; it must be at least %lld. It is a number of tokens.", policy, argument,
       static_cast<long long>(value), static_cast<long long>(least));
}

// The spectrum of what a policy made of inverse_frequencies(rotary_dim, rope_theta).
inline spectrum of_one_theta(std::size_t rotary_dim, double rope_theta, list<double> inv_freq, double magnitude = 1.0) {
  return spectrum(std::move(inv_freq), magnitude, step_ratio(rotary_dim, rope_theta));
}

inline spectrum slowed(std::size_t rotary_dim, double rope_theta, double divisor) {
  list<double> inv_freq = inverse_frequencies(rotary_dim, rope_theta);
  for (double& w : inv_freq) w /= divisor;
  return of_one_theta(rotary_dim, rope_theta, std::move(inv_freq));
}

inline spectrum divided(const char* policy, const char* argument, std::size_t rotary_dim, double rope_theta,
                        const list<double>& divisors, double magnitude) {
  list<double> inv_freq = inverse_frequencies(rotary_dim, rope_theta);
  if (divisors.size() != inv_freq.size()) {
    fail("rotary::%s: %s has %zu values; it must have %zu, rotary_dim / 2. Give one of each pair.", policy, argument,
         divisors.size(), inv_freq.size());
  }
  for (std::size_t j = 0; j < inv_freq.size(); ++j) {
    if (!is_finite(divisors[j]) || divisors[j] <= 0.0) {
      fail("rotary::%s: %s[%zu] is %.9g; it must be finite and greater than 0. 1 leaves the pair as it is.", policy,
           argument, j, divisors[j]);
    }
    inv_freq[j] /= divisors[j];
  }
  return of_one_theta(rotary_dim, rope_theta, std::move(inv_freq), magnitude);
}

// theta * alpha^(d/(d-2)): the slowest pair turns alpha times slower, the fastest as before. The only pair of d = 2 has
// frequency 1 whatever theta is.
inline double ntk_theta(std::size_t rotary_dim, double rope_theta, double alpha) {
  if (rotary_dim <= 2) return rope_theta;
  const double d = static_cast<double>(rotary_dim);
  return rope_theta * rational_power(alpha, d, d - 2.0);
}

}  // namespace detail

/// No scaling: w[j].
struct none {
  spectrum operator()(std::size_t rotary_dim, double rope_theta) const { return make_spectrum(rotary_dim, rope_theta); }
};

/// Position interpolation (arXiv 2306.15595): w[j] / factor. factor > 0 is how many times the context grows; configs
/// that state its inverse (freq_scale of llama.cpp, scale of MLX) need 1 / that.
struct linear {
  double factor;

  spectrum operator()(std::size_t rotary_dim, double rope_theta) const {
    detail::require_factor("linear", factor);
    return detail::slowed(rotary_dim, rope_theta, factor);
  }
};

/// Position interpolation by the length in use (Transformer Engine): w[j] / factor up to factor * pretrained tokens,
/// and w[j] * pretrained / seq_len beyond. factor > 0, pretrained_max_position_embeddings >= 1.
struct dynamic_linear {
  double factor;
  std::int64_t pretrained_max_position_embeddings;

  spectrum operator()(std::size_t rotary_dim, double rope_theta, std::int64_t seq_len) const {
    detail::require_factor("dynamic_linear", factor);
    detail::require_length("dynamic_linear", "pretrained_max_position_embeddings", pretrained_max_position_embeddings,
                           1);
    detail::require_length("dynamic_linear", "seq_len", seq_len, 0);
    const double needed = static_cast<double>(seq_len) / static_cast<double>(pretrained_max_position_embeddings);
    return detail::slowed(rotary_dim, rope_theta, needed > factor ? needed : factor);
  }
};

/// NTK-aware scaling with a fixed alpha > 0 (HunyuanV1; GGUF rope.scaling.alpha): theta becomes theta *
/// alpha^(d/(d-2)).
struct ntk {
  double alpha;

  /// The theta that ordinary frequencies of the result have.
  double effective_theta(std::size_t rotary_dim, double rope_theta) const {
    detail::require_positive("ntk", "alpha", alpha, "1 leaves theta as it is.");
    return detail::ntk_theta(rotary_dim, rope_theta, alpha);
  }
  spectrum operator()(std::size_t rotary_dim, double rope_theta) const {
    return make_spectrum(rotary_dim, effective_theta(rotary_dim, rope_theta));
  }
};

/// NTK scaling that also slows the fastest pair (rope_type "ntk" of vLLM without mixed_b): w[j] * factor^(-(2j+2)/d),
/// factor > 0.
struct ntk_fixed {
  double factor;

  spectrum operator()(std::size_t rotary_dim, double rope_theta) const {
    detail::require_factor("ntk_fixed", factor);
    if (rotary_dim == 0) return make_spectrum(0, rope_theta);
    const double fastest = detail::rational_power(factor, 2.0, static_cast<double>(rotary_dim));
    return detail::slowed(rotary_dim, rope_theta * factor, fastest);
  }
};

/// The same with the slowing spread by an exponent (vLLM's mixed_b): w[j] / exp(ln(factor) * ((j+1) / pairs)^mixed_b).
/// factor > 0, mixed_b finite.
struct ntk_mixed {
  double factor;
  double mixed_b;

  spectrum operator()(std::size_t rotary_dim, double rope_theta) const {
    detail::require_factor("ntk_mixed", factor);
    detail::require_finite("ntk_mixed", "mixed_b", mixed_b, "0.625 is usual.");
    list<double> inv_freq = inverse_frequencies(rotary_dim, rope_theta);
    const double pairs = static_cast<double>(inv_freq.size());
    for (std::size_t j = 0; j < inv_freq.size(); ++j) {
      inv_freq[j] *= detail::pow(factor, -detail::pow(static_cast<double>(j + 1) / pairs, mixed_b));
    }
    return detail::of_one_theta(rotary_dim, rope_theta, std::move(inv_freq));
  }
};

/// Dynamic NTK (transformers' "dynamic"): ntk with alpha = factor * L / max - (factor - 1), where max is
/// max_position_embeddings >= 1 and L the larger of seq_len and max. So nothing changes up to max tokens, and even
/// factor 1 changes theta beyond. factor > 0. A static alpha under the same name (HunyuanV1) is `ntk`.
struct dynamic_ntk {
  double factor;
  std::int64_t max_position_embeddings;

  double effective_theta(std::size_t rotary_dim, double rope_theta, std::int64_t seq_len) const {
    detail::require_factor("dynamic_ntk", factor);
    detail::require_length("dynamic_ntk", "max_position_embeddings", max_position_embeddings, 1);
    detail::require_length("dynamic_ntk", "seq_len", seq_len, 0);
    if (seq_len <= max_position_embeddings) return rope_theta;
    // Written so that nothing cancels; it exceeds 1 for every factor > 0.
    const double excess = static_cast<double>(seq_len - max_position_embeddings);
    const double alpha = 1.0 + factor * (excess / static_cast<double>(max_position_embeddings));
    return detail::ntk_theta(rotary_dim, rope_theta, alpha);
  }
  spectrum operator()(std::size_t rotary_dim, double rope_theta, std::int64_t seq_len) const {
    return make_spectrum(rotary_dim, effective_theta(rotary_dim, rope_theta, seq_len));
  }
};

/// Dynamic NTK of Qwen-1 (use_dynamic_ntk): ntk with alpha = max(1, 2^ceil(log2(L / seq_length) + 1) - 1), L = seq_len.
/// seq_length >= 1 is the length trained on. The logarithmic query scaling of that model is not part of a spectrum.
struct qwen_dynamic_ntk {
  std::int64_t seq_length;

  double effective_theta(std::size_t rotary_dim, double rope_theta, std::int64_t seq_len) const {
    detail::require_length("qwen_dynamic_ntk", "seq_length", seq_length, 1);
    detail::require_length("qwen_dynamic_ntk", "seq_len", seq_len, 0);
    double alpha = 1.0;
    for (double reach = static_cast<double>(seq_length); reach < static_cast<double>(seq_len); reach *= 2.0) {
      alpha = 2.0 * alpha + 1.0;
    }
    return detail::ntk_theta(rotary_dim, rope_theta, alpha);
  }
  spectrum operator()(std::size_t rotary_dim, double rope_theta, std::int64_t seq_len) const {
    return make_spectrum(rotary_dim, effective_theta(rotary_dim, rope_theta, seq_len));
  }
};

/// How YaRN's multiplier of cos and sin follows from its factor. Engines disagree on what a config's keys mean, so the
/// caller chooses. With g(k) = 1 for factor <= 1, else 0.1 * k * ln(factor) + 1:
class yarn_magnitude {
 public:
  /// g(1), of the paper. log_multiplier stands for the 0.1 (0.07 in TeleChat3); finite and >= 0.
  static constexpr yarn_magnitude paper(double log_multiplier = 0.1) { return {rule::paper, log_multiplier, 0.0}; }
  /// g(mscale) / g(mscale_all_dim), of DeepSeek and transformers; both finite and > 0.
  static constexpr yarn_magnitude mscale_ratio(double mscale, double mscale_all_dim) {
    return {rule::mscale_ratio, mscale, mscale_all_dim};
  }
  /// The final multiplier ("attention_factor"), finite and > 0. It is not multiplied by anything else.
  static constexpr yarn_magnitude exactly(double value) { return {rule::exactly, value, 0.0}; }
  /// 1. YaRN with it is "NTK-by-parts".
  static constexpr yarn_magnitude one() { return exactly(1.0); }

  /// The multiplier for a yarn.factor.
  double value(double factor) const;

 private:
  enum class rule : unsigned char { paper, mscale_ratio, exactly };
  constexpr yarn_magnitude(rule chosen, double first, double second) : rule_(chosen), first_(first), second_(second) {}

  rule rule_;
  double first_;
  double second_;
};

/// YaRN (arXiv 2309.00071): pairs that turn more than beta_fast times within the original context stay as they are,
/// those that turn less than beta_slow times are divided by factor, and a linear ramp over the pair index joins them:
/// w[j] / factor * ramp + w[j] * (1 - ramp), ramp = clamp((j - low) / (high - low), 0, 1).
///
/// factor, beta_fast, beta_slow > 0; original_max_position_embeddings >= 1; theta > 1; low <= high unless factor is 1,
/// which a beta_fast below beta_slow breaks. truncate (false in gpt-oss) rounds low down and high up.
struct yarn {
  double factor;
  std::int64_t original_max_position_embeddings;
  double beta_fast = 32.0;
  double beta_slow = 1.0;
  bool truncate = true;
  yarn_magnitude magnitude = yarn_magnitude::paper();

  struct range {
    double low;   // the last pair that stays as it is
    double high;  // the first that is divided by factor
  };
  /// The ends of the ramp, in pairs.
  range correction_range(std::size_t rotary_dim, double rope_theta) const;

  spectrum operator()(std::size_t rotary_dim, double rope_theta) const;
};

/// What DeepSeek-V2/V3, Kimi-K2 and others multiply the softmax scale of attention by, beside the spectrum: g(k)^2 of
/// yarn_magnitude with k = mscale_all_dim. factor > 0, mscale_all_dim >= 0.
double softmax_scale_multiplier(double factor, double mscale_all_dim);

/// How LongRoPE's multiplier of cos and sin follows from its parameters.
class longrope_magnitude {
 public:
  /// 1 for factor <= 1, else sqrt(1 + ln(factor) / ln(original_max_position_embeddings)).
  static constexpr longrope_magnitude paper() { return {false, 1.0}; }
  /// The final multiplier ("attention_factor", "short_mscale", "long_mscale"), finite and > 0.
  static constexpr longrope_magnitude exactly(double value) { return {true, value}; }

  /// The multiplier for a longrope.factor and .original_max_position_embeddings.
  double value(double factor, std::int64_t original_max_position_embeddings) const;

 private:
  constexpr longrope_magnitude(bool exact, double value) : exact_(exact), value_(value) {}

  bool exact_;
  double value_;
};

/// LongRoPE ("su" in early Phi-3 configs, arXiv 2402.13753): w[j] / long_factor[j] when seq_len exceeds
/// original_max_position_embeddings (>= 2), w[j] / short_factor[j] up to it. factor > 0 only sets the magnitude; where
/// a config states none it is max_position_embeddings / original_max_position_embeddings. Each list has rotary_dim / 2
/// values > 0; an empty short_factor stands for all ones.
struct longrope {
  double factor;
  std::int64_t original_max_position_embeddings;
  list<double> short_factor;
  list<double> long_factor;
  longrope_magnitude short_magnitude = longrope_magnitude::paper();
  longrope_magnitude long_magnitude = longrope_magnitude::paper();

  spectrum operator()(std::size_t rotary_dim, double rope_theta, std::int64_t seq_len) const;
};

/// Llama 3.1's scaling. With turns = original_max_position_embeddings * w[j] / 2 pi: w[j] where turns >
/// high_freq_factor, w[j] / factor where turns < low_freq_factor, else interpolated linearly in turns. Llama 3.1 has
/// {8, 1, 4, 8192}. factor, low_freq_factor > 0; high_freq_factor > low_freq_factor; original_max_position_embeddings
/// >= 1.
struct llama3 {
  double factor;
  double low_freq_factor;
  double high_freq_factor;
  std::int64_t original_max_position_embeddings;

  spectrum operator()(std::size_t rotary_dim, double rope_theta) const;
};

/// Gemma-4's p-RoPE: theta^(-2j/D) / factor for the first floor(partial_rotary_factor * D / 2) pairs and 0, which does
/// not rotate, for the others. D = rotary_dim is the WHOLE head: with split-half pairing the channels at rest are two
/// bands, not a tail. partial_rotary_factor in [0, 1], factor > 0.
struct proportional {
  double partial_rotary_factor = 1.0;
  double factor = 1.0;

  spectrum operator()(std::size_t head_dim, double rope_theta) const;
};

/// Several position axes with a spectrum each, one after the other: theta^(-2i/axis_dims[a]) for the axis_dims[a] / 2
/// pairs of axis a. {D/2, D/2} for the vision towers of Qwen-VL, GLM-V, Llama-4 and SAM; {16, 56, 56} for Flux. Each is
/// even and they sum to rotary_dim.
struct axial {
  list<std::size_t> axis_dims;

  spectrum operator()(std::size_t rotary_dim, double rope_theta) const;
};

/// The vision tower of Pixtral and Mistral-3: two axes share the frequencies w[j] of the whole head, the first axis has
/// the even ones in the first half of the pairs, the second axis the odd ones. rotary_dim is a multiple of 4.
struct axial_even_odd {
  spectrum operator()(std::size_t rotary_dim, double rope_theta) const;
};

/// MoonViT (Kimi-VL, Kimi-K2.5): pairs 2i and 2i + 1 have the frequency theta^(-4i/d), of one axis each. rotary_dim is
/// a multiple of 4.
struct axial_alternating {
  spectrum operator()(std::size_t rotary_dim, double rope_theta) const;
};

/// xPos (arXiv 2212.10554): rows of queries are multiplied, and rows of keys divided, by
/// zeta[j]^((p - center) / scale_base) with zeta[j] = (2j + 0.4 d) / (1.4 d). Queries and keys need a spectrum each
/// with the same center (the middle of the sequence keeps both in the range of float). scale_base > 0, center finite,
/// in positions.
enum class xpos_role : unsigned char { query, key };
struct xpos {
  xpos_role role;
  double scale_base = 512.0;
  double center = 0.0;

  spectrum operator()(std::size_t rotary_dim, double rope_theta) const;
};

/// GGUF's rope_freqs, and ggml's freq_factors: w[j] / factors[j]; rotary_dim / 2 values > 0.
struct frequency_factors {
  list<double> factors;

  spectrum operator()(std::size_t rotary_dim, double rope_theta) const {
    return detail::divided("frequency_factors", "factors", rotary_dim, rope_theta, factors, 1.0);
  }
};

}  // namespace ROTARY_ABI
}  // namespace rotary

#include "detail/scaling.inl"

#endif
