// Reading the reference data of tests/data/golden (its README.md has the format).
#ifndef ROTARY_TESTS_GOLDEN_HPP
#define ROTARY_TESTS_GOLDEN_HPP

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <rotary/scaling.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace golden {

/// The file NAME.json, parsed, of the directory in the environment variable ROTARY_GOLDEN_DIR or of tests/data/golden.
/// The data are in ["records"]. A missing or empty file throws, so that no test passes for want of data.
inline nlohmann::json load(const std::string& name) {
  const char* directory = std::getenv("ROTARY_GOLDEN_DIR");
  const std::string path =
      std::string(directory != nullptr ? directory : ROTARY_GOLDEN_DIR_DEFAULT) + "/" + name + ".json";
  std::ifstream file(path);
  if (!file) throw std::runtime_error("cannot open " + path);
  nlohmann::json json = nlohmann::json::parse(file);
  if (json.at("records").empty()) throw std::runtime_error(path + " has no records");
  return json;
}

inline bool given(const nlohmann::json& parameters, const char* key) {
  return parameters.contains(key) && !parameters.at(key).is_null();
}

inline rotary::yarn yarn_from(const nlohmann::json& p) {
  rotary::yarn policy{p.at("factor"), p.at("original_max_position_embeddings"), p.at("beta_fast"), p.at("beta_slow"),
                      p.at("truncate")};
  if (given(p, "attention_factor")) {
    policy.magnitude = rotary::yarn_magnitude::exactly(p.at("attention_factor"));
  } else if (given(p, "mscale") && given(p, "mscale_all_dim")) {
    policy.magnitude = rotary::yarn_magnitude::mscale_ratio(p.at("mscale"), p.at("mscale_all_dim"));
  }
  return policy;
}

inline rotary::spectrum longrope_from(const nlohmann::json& p, std::size_t rotary_dim, double rope_theta) {
  const std::vector<double> factors = p.at("factors");
  const std::vector<double> of_other_regime(factors.size(), 1e6);  // would be seen if the regimes were confused
  const bool is_long = p.at("which") == "long";
  rotary::longrope policy{p.at("factor"), p.at("original_max_position_embeddings"), is_long ? of_other_regime : factors,
                          is_long ? factors : of_other_regime};
  if (given(p, "attention_factor")) {
    (is_long ? policy.long_magnitude : policy.short_magnitude) =
        rotary::longrope_magnitude::exactly(p.at("attention_factor"));
  }
  const std::int64_t longest_short = policy.original_max_position_embeddings;
  return rotary::make_spectrum(rotary_dim, rope_theta, policy, is_long ? longest_short + 1 : longest_short);
}

/// The library's spectrum of a record's "parameters".
inline rotary::spectrum spectrum_from(const nlohmann::json& p) {
  const std::string policy = p.at("policy");
  const std::size_t rotary_dim = p.at("rotary_dim");
  const double rope_theta = p.at("base");
  if (policy == "none") return rotary::make_spectrum(rotary_dim, rope_theta);
  if (policy == "linear") return rotary::make_spectrum(rotary_dim, rope_theta, rotary::linear{p.at("factor")});
  if (policy == "ntk") return rotary::make_spectrum(rotary_dim, rope_theta, rotary::ntk{p.at("alpha")});
  if (policy == "dynamic_ntk") {
    const rotary::dynamic_ntk dynamic{p.at("factor"), p.at("max_position_embeddings")};
    return rotary::make_spectrum(rotary_dim, rope_theta, dynamic, p.at("seq_len").get<std::int64_t>());
  }
  if (policy == "yarn") return rotary::make_spectrum(rotary_dim, rope_theta, yarn_from(p));
  if (policy == "longrope") return longrope_from(p, rotary_dim, rope_theta);
  if (policy == "llama3") {
    const rotary::llama3 llama3{p.at("factor"), p.at("low_freq_factor"), p.at("high_freq_factor"),
                                p.at("original_max_position_embeddings")};
    return rotary::make_spectrum(rotary_dim, rope_theta, llama3);
  }
  if (policy == "proportional") {
    const rotary::proportional proportional{p.at("partial_rotary_factor"), p.at("factor")};
    return rotary::make_spectrum(p.at("head_dim"), rope_theta, proportional);
  }
  throw std::runtime_error("no such policy in the library: " + policy);
}

}  // namespace golden

#endif
