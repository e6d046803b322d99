// A spectrum says how fast each pair of channels turns with the position. scaling.hpp has the policies that make one.
#ifndef ROTARY_SPECTRUM_HPP
#define ROTARY_SPECTRUM_HPP

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include "detail/config.hpp"
#include "error.hpp"
#include "list.hpp"

namespace rotary {
inline namespace ROTARY_ABI {
namespace detail {

constexpr std::size_t rotary_dim_limit = std::size_t{1} << 24;

inline void require_rotary_dim(const char* function, std::size_t rotary_dim) {
  if (rotary_dim % 2 == 0 && rotary_dim <= rotary_dim_limit) return;
  fail("rotary::%s: rotary_dim is %zu; it must be even and at most %zu. Channels rotate in pairs.", function,
       rotary_dim, rotary_dim_limit);
}

inline void require_finite(const char* function, const char* argument, double value, const char* remedy) {
  if (is_finite(value)) return;
  fail("rotary::%s: %s is %.9g; it must be finite. %s", function, argument, value, remedy);
}

inline void require_positive(const char* function, const char* argument, double value, const char* remedy) {
  if (is_finite(value) && value > 0.0) return;
  fail("rotary::%s: %s is %.9g; it must be finite and greater than 0. %s", function, argument, value, remedy);
}

inline void require_theta(const char* function, double rope_theta) {
  require_positive(function, "rope_theta", rope_theta, "Most models use 10000 to 10000000.");
}

#if ROTARY_GNU
inline double fma(double x, double y, double z) { return __builtin_fma(x, y, z); }
#else
using std::fma;
#endif

// base^(numerator / denominator). The rounding of the quotient alone would cost ln(base)/2 units in the last place of
// the result (8 for base 1e7), so what it dropped is found exactly (the fma) and put back to first order.
inline double rational_power(double base, double numerator, double denominator) {
  const double exponent = numerator / denominator;
  const double dropped = fma(-exponent, denominator, numerator) / denominator;
  const double power = pow(base, exponent);
  return is_finite(power) ? power + power * (dropped * log(base)) : power;
}

}  // namespace detail

/// The inverse frequencies of rotary position embedding and the multiplier of cosine and sine. An immutable value.
/// Pair j of a token at position p turns by the angle p * inv_freq()[j]; its cosine and sine are multiplied by
/// magnitude(). Zero pairs are valid and mean that nothing rotates.
class spectrum {
 public:
  /// User-given `inv_freq`, radians per position, one of each pair (0: the pair stands still; negative: it turns
  /// backwards). `magnitude` is the FINAL multiplier of cos and sin ("attention factor"). `step_ratio` as below.
  /// Throws error unless every value is finite, magnitude > 0 and step_ratio >= 0.
  explicit spectrum(list<double> inv_freq, double magnitude = 1.0, double step_ratio = 0.0)
      : inv_freq_(std::move(inv_freq)), magnitude_(magnitude), step_ratio_(step_ratio) {
    detail::require_rotary_dim("spectrum", 2 * inv_freq_.size());
    require_all_finite("inv_freq", inv_freq_);
    detail::require_positive("spectrum", "magnitude", magnitude,
                             "It is the final multiplier of cos and sin: 1 for none.");
    if (!detail::is_finite(step_ratio) || step_ratio < 0.0) {
      detail::fail(
          "rotary::spectrum: step_ratio is %.9g; it must be finite and at least 0. Use 0 unless one theta made it.",
          step_ratio);
    }
  }

  std::size_t pairs() const noexcept { return inv_freq_.size(); }
  /// The number of channels that rotate: 2 * pairs().
  std::size_t rotary_dim() const noexcept { return 2 * inv_freq_.size(); }
  /// Radians per position, [pairs].
  const list<double>& inv_freq() const noexcept { return inv_freq_; }
  /// The final multiplier of cos and sin, also called attention factor.
  double magnitude() const noexcept { return magnitude_; }

  /// xPos: the natural logarithm of the multiplier per position, [pairs]; empty for all other spectra. The row of
  /// position p has the further multiplier exp(growth()[j] * (p - growth_center())).
  const list<double>& growth() const noexcept { return growth_; }
  double growth_center() const noexcept { return growth_center_; }
  /// This spectrum with a growth of its rows. Throws error unless there is one finite value a pair and center is
  /// finite.
  spectrum with_growth(list<double> growth, double center) const {
    if (growth.size() != pairs()) {
      detail::fail("rotary::spectrum::with_growth: growth has %zu values; it must have %zu. Give one of each pair.",
                   growth.size(), pairs());
    }
    require_all_finite("growth", growth);
    detail::require_finite("spectrum::with_growth", "center", center, "Queries and keys must share it.");
    spectrum result(*this);
    result.growth_ = std::move(growth);
    result.growth_center_ = center;
    return result;
  }

  /// theta^(-2/d) where the spectrum came from one theta, else 0: the factor from pair to pair that ggml's float
  /// recurrence multiplies by, before it applies what a policy changed in each pair.
  double step_ratio() const noexcept { return step_ratio_; }

 private:
  static void require_all_finite(const char* argument, const list<double>& values) {
    for (std::size_t j = 0; j < values.size(); ++j) {
      if (detail::is_finite(values[j])) continue;
      detail::fail("rotary::spectrum: %s[%zu] is %.9g; it must be finite. Check the parameters that made it.", argument,
                   j, values[j]);
    }
  }

  list<double> inv_freq_;
  list<double> growth_;
  double magnitude_;
  double step_ratio_;
  double growth_center_ = 0.0;
};

/// theta^(-2j/d) for j = 0 .. d/2-1, radians per position (RoFormer, arXiv 2104.09864): what every policy starts from.
/// Each is within 1.1 units in the last place of the exact value. Throws error on an odd rotary_dim, or a rope_theta
/// that is not finite and greater than 0.
inline list<double> inverse_frequencies(std::size_t rotary_dim, double rope_theta) {
  detail::require_rotary_dim("inverse_frequencies", rotary_dim);
  detail::require_theta("inverse_frequencies", rope_theta);
  list<double> inv_freq(rotary_dim / 2);
  for (std::size_t j = 0; j < inv_freq.size(); ++j) {
    inv_freq[j] = detail::rational_power(rope_theta, -2.0 * static_cast<double>(j), static_cast<double>(rotary_dim));
  }
  return inv_freq;
}

/// theta^(-2/d), the third argument of spectrum's constructor for a policy that changes the pairs of one theta.
/// 0 when rotary_dim is 0.
inline double step_ratio(std::size_t rotary_dim, double rope_theta) {
  if (rotary_dim == 0) return 0.0;
  return detail::rational_power(rope_theta, -2.0, static_cast<double>(rotary_dim));
}

/// The unscaled spectrum of a model: rotary_dim channels (even; 0: none), base rope_theta. Throws as
/// inverse_frequencies does.
///
/// Models that state a ratio of thetas without an exponent (rope_ratio of ChatGLM and GLM-4, ntk_factor of Diffusers)
/// are unscaled: pass rope_theta * ratio.
inline spectrum make_spectrum(std::size_t rotary_dim, double rope_theta) {
  detail::require_rotary_dim("make_spectrum", rotary_dim);
  detail::require_theta("make_spectrum", rope_theta);
  return spectrum(inverse_frequencies(rotary_dim, rope_theta), 1.0, step_ratio(rotary_dim, rope_theta));
}

namespace detail {
template <class Policy, class... SequenceLength>
spectrum apply_policy(std::size_t rotary_dim, double rope_theta, const Policy& policy, SequenceLength... seq_len) {
  static_assert(
      std::is_invocable_r_v<spectrum, const Policy&, std::size_t, double, SequenceLength...>,
      "A policy is called as policy(rotary_dim, rope_theta), or, where its result depends on the sequence length "
      "(dynamic_ntk, longrope, ...), as policy(rotary_dim, rope_theta, seq_len); give make_spectrum the seq_len "
      "in the second case only.");
  require_rotary_dim("make_spectrum", rotary_dim);
  require_theta("make_spectrum", rope_theta);
  spectrum result = policy(rotary_dim, rope_theta, seq_len...);
  if (result.rotary_dim() != rotary_dim) {
    fail(
        "rotary::make_spectrum: the number of pairs of the policy is %zu; it must be %zu, rotary_dim / 2. Correct the "
        "policy.",
        result.pairs(), rotary_dim / 2);
  }
  return result;
}
}  // namespace detail

/// The spectrum of a model whose context was extended by `policy`: one of scaling.hpp, or any object that is called as
/// `spectrum policy(rotary_dim, rope_theta)`. Throws error when an argument or a parameter of the policy is out of
/// range.
template <class Policy>
spectrum make_spectrum(std::size_t rotary_dim, double rope_theta, const Policy& policy) {
  return detail::apply_policy(rotary_dim, rope_theta, policy);
}

/// The same for a policy whose result depends on the length of the sequence: `spectrum policy(rotary_dim, rope_theta,
/// seq_len)`. seq_len, in tokens, is that of the sequence to rotate (largest position + 1). Nothing is remembered
/// between calls: keys cached with the spectrum of another length keep that spectrum until they are rotated anew.
template <class Policy>
spectrum make_spectrum(std::size_t rotary_dim, double rope_theta, const Policy& policy, std::int64_t seq_len) {
  return detail::apply_policy(rotary_dim, rope_theta, policy, seq_len);
}

/// The number of channels that rotate when a config states partial_rotary_factor: head_dim * partial_rotary_factor
/// rounded down, as transformers does (100 * 0.29 is 28.999999999999996 and gives 28), except that a product less than
/// 1e-6 below an even number is that number (100 * 0.58 gives 58). Throws error unless the factor is in [0, 1] and the
/// result even.
inline std::size_t rotary_dim(std::size_t head_dim, double partial_rotary_factor) {
  if (!detail::is_finite(partial_rotary_factor) || partial_rotary_factor < 0.0 || partial_rotary_factor > 1.0) {
    detail::fail("rotary::rotary_dim: partial_rotary_factor is %.9g; it must be in [0, 1]. 1 rotates the whole head.",
                 partial_rotary_factor);
  }
  if (head_dim > detail::rotary_dim_limit) {
    detail::fail("rotary::rotary_dim: head_dim is %zu; it must be at most %zu. Check for a negative value.", head_dim,
                 detail::rotary_dim_limit);
  }
  const double product = static_cast<double>(head_dim) * partial_rotary_factor;
  const auto lifted = static_cast<std::size_t>(product + 1e-6);
  const std::size_t dim = lifted % 2 == 0 ? lifted : static_cast<std::size_t>(product);
  if (dim % 2 != 0) {
    detail::fail(
        "rotary::rotary_dim: head_dim %zu * partial_rotary_factor %.9g is %zu; it must be even. Channels rotate in "
        "pairs.",
        head_dim, partial_rotary_factor, dim);
  }
  return dim;
}

}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
