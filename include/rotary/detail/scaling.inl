// The longer policies of scaling.hpp, which includes this file at its end.
namespace rotary {
inline namespace ROTARY_ABI {
namespace detail {

// From w (where divided <= 0) to w / factor (where kept <= 0); between, their mean weighted by the distances to the
// ends of the ramp, kept from the divided end and divided from the kept end. Taking both as differences loses the
// fewest digits.
inline double between(double w, double factor, double kept, double divided) {
  if (divided <= 0.0 || factor == 1.0) return w;
  if (kept <= 0.0) return w / factor;
  return w * ((kept + divided / factor) / (kept + divided));
}

inline double yarn_mscale(double factor, double log_multiplier) {
  return factor <= 1.0 ? 1.0 : log_multiplier * log(factor) + 1.0;
}

}  // namespace detail

inline double yarn_magnitude::value(double factor) const {
  detail::require_factor("yarn", factor);
  if (rule_ == rule::exactly) {
    detail::require_positive("yarn", "magnitude", first_, "It is the final multiplier of cos and sin: 1 for none.");
    return first_;
  }
  if (rule_ == rule::mscale_ratio) {
    const char* const remedy = "Use yarn_magnitude::paper() where a config leaves it out or states 0.";
    detail::require_positive("yarn", "mscale", first_, remedy);
    detail::require_positive("yarn", "mscale_all_dim", second_, remedy);
    return detail::yarn_mscale(factor, 0.1 * first_) / detail::yarn_mscale(factor, 0.1 * second_);
  }
  if (!detail::is_finite(first_) || first_ < 0.0) {
    detail::fail("rotary::yarn: log_multiplier is %.9g; it must be finite and at least 0. The paper has 0.1.", first_);
  }
  return detail::yarn_mscale(factor, first_);
}

inline double softmax_scale_multiplier(double factor, double mscale_all_dim) {
  detail::require_factor("softmax_scale_multiplier", factor);
  if (!detail::is_finite(mscale_all_dim) || mscale_all_dim < 0.0) {
    detail::fail(
        "rotary::softmax_scale_multiplier: mscale_all_dim is %.9g; it must be finite and at least 0. 0 gives 1.",
        mscale_all_dim);
  }
  const double mscale = detail::yarn_mscale(factor, 0.1 * mscale_all_dim);
  return mscale * mscale;
}

inline yarn::range yarn::correction_range(std::size_t rotary_dim, double rope_theta) const {
  detail::require_rotary_dim("yarn", rotary_dim);
  detail::require_length("yarn", "original_max_position_embeddings", original_max_position_embeddings, 1);
  detail::require_positive("yarn", "beta_fast", beta_fast, "The paper has 32.");
  detail::require_positive("yarn", "beta_slow", beta_slow, "The paper has 1.");
  if (!detail::is_finite(rope_theta) || rope_theta <= 1.0) {
    detail::fail(
        "rotary::yarn: rope_theta is %.9g; it must be finite and greater than 1. Else pairs do not slow down "
        "along the head.",
        rope_theta);
  }
  const double context = static_cast<double>(original_max_position_embeddings);
  const double pairs_per_e = static_cast<double>(rotary_dim) / (2.0 * detail::log(rope_theta));
  // The pair that turns beta times within the original context.
  double low = pairs_per_e * detail::log(context / (2.0 * detail::pi * beta_fast));
  double high = pairs_per_e * detail::log(context / (2.0 * detail::pi * beta_slow));
  if (truncate) {
    low = detail::floor(low);
    high = detail::ceil(high);
  }
  // rotary_dim - 1, not pairs - 1, is what the published implementations use.
  const double last = static_cast<double>(rotary_dim) - 1.0;
  low = low > 0.0 ? low : 0.0;
  high = high < last ? high : last;
  if (low > high && factor != 1.0) {
    detail::fail(
        "rotary::yarn: the correction range of beta_fast %.9g, beta_slow %.9g, "
        "original_max_position_embeddings %lld is %.9g to %.9g; low must be at most high. Check that beta_fast >= "
        "beta_slow and that the length fits rope_theta %.9g.",
        beta_fast, beta_slow, static_cast<long long>(original_max_position_embeddings), low, high, rope_theta);
  }
  return {low, low == high ? high + 0.001 : high};
}

inline spectrum yarn::operator()(std::size_t rotary_dim, double rope_theta) const {
  const double m = magnitude.value(factor);
  list<double> inv_freq = inverse_frequencies(rotary_dim, rope_theta);
  if (!inv_freq.empty()) {
    const range ramp = correction_range(rotary_dim, rope_theta);
    for (std::size_t j = 0; j < inv_freq.size(); ++j) {
      const double pair = static_cast<double>(j);
      inv_freq[j] = detail::between(inv_freq[j], factor, ramp.high - pair, pair - ramp.low);
    }
  }
  return detail::of_one_theta(rotary_dim, rope_theta, std::move(inv_freq), m);
}

inline double longrope_magnitude::value(double factor, std::int64_t original_max_position_embeddings) const {
  if (exact_) {
    detail::require_positive("longrope", "magnitude", value_, "It is the final multiplier of cos and sin: 1 for none.");
    return value_;
  }
  detail::require_factor("longrope", factor);
  detail::require_length("longrope", "original_max_position_embeddings", original_max_position_embeddings, 2);
  if (factor <= 1.0) return 1.0;
  return detail::sqrt(1.0 + detail::log(factor) / detail::log(static_cast<double>(original_max_position_embeddings)));
}

inline spectrum longrope::operator()(std::size_t rotary_dim, double rope_theta, std::int64_t seq_len) const {
  detail::require_factor("longrope", factor);
  detail::require_length("longrope", "original_max_position_embeddings", original_max_position_embeddings, 2);
  detail::require_length("longrope", "seq_len", seq_len, 0);
  // Both regimes are checked whatever the length, so that a fault does not wait for the first long sequence.
  const double short_m = short_magnitude.value(factor, original_max_position_embeddings);
  const double long_m = long_magnitude.value(factor, original_max_position_embeddings);
  const spectrum above = detail::divided("longrope", "long_factor", rotary_dim, rope_theta, long_factor, long_m);
  list<double> divisors = short_factor;
  if (divisors.empty()) {
    divisors = list<double>(rotary_dim / 2);
    for (double& divisor : divisors) divisor = 1.0;
  }
  const spectrum within = detail::divided("longrope", "short_factor", rotary_dim, rope_theta, divisors, short_m);
  return seq_len > original_max_position_embeddings ? above : within;
}

inline spectrum llama3::operator()(std::size_t rotary_dim, double rope_theta) const {
  detail::require_factor("llama3", factor);
  detail::require_positive("llama3", "low_freq_factor", low_freq_factor, "Llama 3.1 has 1.");
  if (!detail::is_finite(high_freq_factor) || high_freq_factor <= low_freq_factor) {
    detail::fail(
        "rotary::llama3: high_freq_factor is %.9g; it must be finite and greater than low_freq_factor, %.9g. Llama "
        "3.1 has 4.",
        high_freq_factor, low_freq_factor);
  }
  detail::require_length("llama3", "original_max_position_embeddings", original_max_position_embeddings, 1);
  const double context = static_cast<double>(original_max_position_embeddings);
  list<double> inv_freq = inverse_frequencies(rotary_dim, rope_theta);
  for (double& w : inv_freq) {
    const double turns = context * w / (2.0 * detail::pi);
    w = detail::between(w, factor, turns - low_freq_factor, high_freq_factor - turns);
  }
  return detail::of_one_theta(rotary_dim, rope_theta, std::move(inv_freq));
}

inline spectrum proportional::operator()(std::size_t head_dim, double rope_theta) const {
  detail::require_factor("proportional", factor);
  if (!detail::is_finite(partial_rotary_factor) || partial_rotary_factor < 0.0 || partial_rotary_factor > 1.0) {
    detail::fail(
        "rotary::proportional: partial_rotary_factor is %.9g; it must be in [0, 1]. No more than the head rotates.",
        partial_rotary_factor);
  }
  list<double> inv_freq = inverse_frequencies(head_dim, rope_theta);
  const double pairs = static_cast<double>(inv_freq.size());
  const auto rotating = static_cast<std::size_t>(partial_rotary_factor * pairs);
  for (std::size_t j = 0; j < inv_freq.size(); ++j) inv_freq[j] = j < rotating ? inv_freq[j] / factor : 0.0;
  return detail::of_one_theta(head_dim, rope_theta, std::move(inv_freq));
}

inline spectrum axial::operator()(std::size_t rotary_dim, double rope_theta) const {
  detail::require_rotary_dim("axial", rotary_dim);
  std::size_t sum = 0;
  list<double> inv_freq(rotary_dim / 2);
  for (std::size_t a = 0; a < axis_dims.size(); ++a) {
    if (axis_dims[a] % 2 != 0 || axis_dims[a] > rotary_dim) {
      detail::fail(
          "rotary::axial: axis_dims[%zu] is %zu; it must be even and at most rotary_dim, %zu. Channels rotate in "
          "pairs.",
          a, axis_dims[a], rotary_dim);
    }
    const std::size_t before = sum / 2;
    sum += axis_dims[a];
    if (sum > rotary_dim) break;
    const list<double> axis = inverse_frequencies(axis_dims[a], rope_theta);
    for (std::size_t i = 0; i < axis.size(); ++i) inv_freq[before + i] = axis[i];
  }
  if (sum != rotary_dim) {
    detail::fail("rotary::axial: the sum of axis_dims is %s%zu; it must be rotary_dim, %zu. Count channels, not pairs.",
                 sum > rotary_dim ? "at least " : "", sum, rotary_dim);
  }
  return spectrum(std::move(inv_freq));
}

namespace detail {
inline void require_halves_for_two_axes(const char* policy, std::size_t rotary_dim) {
  if (rotary_dim % 4 == 0) return;
  fail("rotary::%s: rotary_dim is %zu; it must be a multiple of 4. Two axes share its pairs.", policy, rotary_dim);
}
}  // namespace detail

inline spectrum axial_even_odd::operator()(std::size_t rotary_dim, double rope_theta) const {
  detail::require_halves_for_two_axes("axial_even_odd", rotary_dim);
  const list<double> shared = inverse_frequencies(rotary_dim, rope_theta);
  const std::size_t half = shared.size() / 2;
  list<double> inv_freq(shared.size());
  for (std::size_t j = 0; j < half; ++j) {
    inv_freq[j] = shared[2 * j];
    inv_freq[half + j] = shared[2 * j + 1];
  }
  return spectrum(std::move(inv_freq));
}

inline spectrum axial_alternating::operator()(std::size_t rotary_dim, double rope_theta) const {
  detail::require_halves_for_two_axes("axial_alternating", rotary_dim);
  const list<double> of_each_axis = inverse_frequencies(rotary_dim / 2, rope_theta);
  list<double> inv_freq(rotary_dim / 2);
  for (std::size_t j = 0; j < inv_freq.size(); ++j) inv_freq[j] = of_each_axis[j / 2];
  return spectrum(std::move(inv_freq));
}

inline spectrum xpos::operator()(std::size_t rotary_dim, double rope_theta) const {
  if (role != xpos_role::query && role != xpos_role::key) {
    detail::fail("rotary::xpos: role is %d; it must be xpos_role::query or xpos_role::key. Make a spectrum of each.",
                 static_cast<int>(role));
  }
  detail::require_positive("xpos", "scale_base", scale_base, "The paper has 512.");
  detail::require_finite("xpos", "center", center, "Queries and keys must share it.");
  const double d = static_cast<double>(rotary_dim);
  const double divisor = role == xpos_role::query ? scale_base : -scale_base;
  list<double> growth(rotary_dim / 2);
  for (std::size_t j = 0; j < growth.size(); ++j) {
    growth[j] = detail::log((2.0 * static_cast<double>(j) + 0.4 * d) / (1.4 * d)) / divisor;
  }
  return make_spectrum(rotary_dim, rope_theta).with_growth(std::move(growth), center);
}

}  // namespace ROTARY_ABI
}  // namespace rotary
