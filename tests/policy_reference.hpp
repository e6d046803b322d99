// Spectra of the scaling policies straight from their formulas, in long double, sharing no code with the library. The
// parameters are those of the reference data (tests/data/golden/README.md, "Policies").
#ifndef ROTARY_TESTS_POLICY_REFERENCE_HPP
#define ROTARY_TESTS_POLICY_REFERENCE_HPP

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace reference {

struct policy_result {
  std::vector<long double> inv_freq;
  long double magnitude = 1.0L;
};

constexpr long double pi = 3.14159265358979323846264338327950288L;

inline bool stated(const nlohmann::json& p, const char* key) { return p.contains(key) && !p.at(key).is_null(); }

/// g(k) of yarn: what its magnitudes are made of.
inline long double yarn_g(long double factor, long double k) {
  return factor <= 1.0L ? 1.0L : 0.1L * k * std::log(factor) + 1.0L;
}

inline void apply_yarn(const nlohmann::json& p, long double d, long double base, policy_result& result) {
  const long double s = p.at("factor"), original = p.at("original_max_position_embeddings");
  const auto dim_of = [&](long double rotations) {
    return d * std::log(original / (2.0L * pi * rotations)) / (2.0L * std::log(base));
  };
  long double low = dim_of(p.at("beta_fast").get<long double>()), high = dim_of(p.at("beta_slow").get<long double>());
  if (p.at("truncate").get<bool>()) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0L);
  high = std::min(high, d - 1.0L);
  if (low == high) high += 0.001L;
  for (std::size_t j = 0; j < result.inv_freq.size(); ++j) {
    const long double ramp = std::clamp((static_cast<long double>(j) - low) / (high - low), 0.0L, 1.0L);
    result.inv_freq[j] = result.inv_freq[j] / s * ramp + result.inv_freq[j] * (1.0L - ramp);
  }
  if (stated(p, "attention_factor")) {
    result.magnitude = p.at("attention_factor");
  } else if (stated(p, "mscale") && stated(p, "mscale_all_dim")) {
    result.magnitude = yarn_g(s, p.at("mscale")) / yarn_g(s, p.at("mscale_all_dim"));
  } else {
    result.magnitude = yarn_g(s, 1.0L);
  }
}

inline void apply_llama3(const nlohmann::json& p, policy_result& result) {
  const long double s = p.at("factor"), original = p.at("original_max_position_embeddings");
  const long double low = p.at("low_freq_factor"), high = p.at("high_freq_factor");
  for (long double& w : result.inv_freq) {
    const long double turns = original * w / (2.0L * pi);
    const long double kept = std::clamp((turns - low) / (high - low), 0.0L, 1.0L);
    w = (1.0L - kept) * w / s + kept * w;
  }
}

inline void apply_longrope(const nlohmann::json& p, policy_result& result) {
  const long double s = p.at("factor"), original = p.at("original_max_position_embeddings");
  for (std::size_t j = 0; j < result.inv_freq.size(); ++j)
    result.inv_freq[j] /= p.at("factors").at(j).get<long double>();
  if (stated(p, "attention_factor")) {
    result.magnitude = p.at("attention_factor");
  } else if (s > 1.0L) {
    result.magnitude = std::sqrt(1.0L + std::log(s) / std::log(original));
  }
}

/// The spectrum of a record's parameters.
inline policy_result policy_spectrum(const nlohmann::json& p) {
  const std::string policy = p.at("policy");
  const long double d = p.at("rotary_dim");
  long double base = p.at("base");
  if (policy == "ntk") base *= std::pow(p.at("alpha").get<long double>(), d / (d - 2.0L));
  if (policy == "dynamic_ntk") {
    const long double most = p.at("max_position_embeddings"), s = p.at("factor");
    const long double length = std::max(most, p.at("seq_len").get<long double>());
    base *= std::pow(s * length / most - (s - 1.0L), d / (d - 2.0L));
  }
  policy_result result;
  for (long double j = 0.0L; j < d / 2.0L; j += 1.0L) result.inv_freq.push_back(std::pow(base, -2.0L * j / d));
  if (policy == "linear" || policy == "proportional") {
    for (long double& w : result.inv_freq) w /= p.value("factor", 1.0L);
  }
  if (policy == "proportional") {  // rotary_dim is the head
    const long double live = std::floor(p.at("partial_rotary_factor").get<long double>() * d / 2.0L);
    for (std::size_t j = 0; j < result.inv_freq.size(); ++j) {
      if (static_cast<long double>(j) >= live) result.inv_freq[j] = 0.0L;
    }
  }
  if (policy == "yarn") apply_yarn(p, d, base, result);
  if (policy == "llama3") apply_llama3(p, result);
  if (policy == "longrope") apply_longrope(p, result);
  return result;
}

}  // namespace reference

#endif
