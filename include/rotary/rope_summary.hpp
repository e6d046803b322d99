// What a rope says, for people: names and parameters of its scaling policies, and a text of a few lines a type of
// layer.
#ifndef ROTARY_ROPE_SUMMARY_HPP
#define ROTARY_ROPE_SUMMARY_HPP

#include <algorithm>
#include <string>
#include <variant>
#include <vector>

#include "rope.hpp"

#if !ROTARY_GNU
#  include <cstdio>
#endif

namespace rotary {
inline namespace ROTARY_ABI {

/// One number of a policy.
struct policy_parameter {
  const char* name;
  double value;
};

/// A number for each pair.
struct policy_list {
  const char* name;
  list<double> values;
};

/// A policy's name and parameters, by the names of its members; magnitudes as the final multiplier of cos and sin.
struct policy_description {
  const char* name;
  std::vector<policy_parameter> parameters;
  std::vector<policy_list> lists = {};
};

namespace detail {

inline policy_description describe(const none&) { return {"none", {}}; }
inline policy_description describe(const linear& p) { return {"linear", {{"factor", p.factor}}}; }
inline policy_description describe(const ntk& p) { return {"ntk", {{"alpha", p.alpha}}}; }
inline policy_description describe(const ntk_fixed& p) { return {"ntk_fixed", {{"factor", p.factor}}}; }
inline policy_description describe(const ntk_mixed& p) {
  return {"ntk_mixed", {{"factor", p.factor}, {"mixed_b", p.mixed_b}}};
}
inline policy_description describe(const dynamic_ntk& p) {
  return {"dynamic_ntk",
          {{"factor", p.factor}, {"max_position_embeddings", static_cast<double>(p.max_position_embeddings)}}};
}
inline policy_description describe(const qwen_dynamic_ntk& p) {
  return {"qwen_dynamic_ntk", {{"seq_length", static_cast<double>(p.seq_length)}}};
}
inline policy_description describe(const yarn& p) {
  return {"yarn",
          {{"factor", p.factor},
           {"original_max_position_embeddings", static_cast<double>(p.original_max_position_embeddings)},
           {"beta_fast", p.beta_fast},
           {"beta_slow", p.beta_slow},
           {"truncate", p.truncate ? 1.0 : 0.0},
           {"attention_factor", p.magnitude.value(p.factor)}}};
}
inline policy_description describe(const longrope& p) {
  const std::int64_t original = p.original_max_position_embeddings;
  return {"longrope",
          {{"factor", p.factor},
           {"original_max_position_embeddings", static_cast<double>(original)},
           {"short_attention_factor", p.short_magnitude.value(p.factor, original)},
           {"long_attention_factor", p.long_magnitude.value(p.factor, original)}},
          {{"short_factor", p.short_factor}, {"long_factor", p.long_factor}}};
}
inline policy_description describe(const llama3& p) {
  return {"llama3",
          {{"factor", p.factor},
           {"low_freq_factor", p.low_freq_factor},
           {"high_freq_factor", p.high_freq_factor},
           {"original_max_position_embeddings", static_cast<double>(p.original_max_position_embeddings)}}};
}
inline policy_description describe(const proportional& p) {
  return {"proportional", {{"partial_rotary_factor", p.partial_rotary_factor}, {"factor", p.factor}}};
}
inline policy_description describe(const frequency_factors& p) {
  return {"frequency_factors", {}, {{"factors", p.factors}}};
}

}  // namespace detail

inline policy_description describe(const scaling& policy) {
  return std::visit([](const auto& p) { return detail::describe(p); }, policy);
}

/// Up to `digits` significant digits, no trailing zeros.
inline std::string decimal(double value, int digits = 10) {
  char text[40];
#if ROTARY_GNU
  __builtin_snprintf(text, sizeof text, "%.*g", digits, value);
#else
  std::snprintf(text, sizeof text, "%.*g", digits, value);
#endif
  return text;
}

inline const char* name_of(pairing which) { return which == pairing::interleaved ? "interleaved" : "split_half"; }
inline const char* name_of(mrope_layout how) {
  if (how == mrope_layout::chunked) return "chunked";
  return how == mrope_layout::interleaved ? "interleaved" : "height_width_alternating";
}

namespace detail {

/// Where the value of a field came from, in brackets; empty where nobody noted it.
inline std::string source_of(const std::vector<origin>& origins, const std::string& field) {
  for (const origin& from : origins) {
    if (from.field == field) return "  [" + from.source + "]";
  }
  return "";
}

/// The layers of a type: "0-4, 6-10".
inline std::string layers_of_type(const rope& model, std::size_t type) {
  if (model.type_of_layer.empty()) return model.types.size() == 1 ? "all" : "not stated";
  std::string ranges;
  const std::vector<std::size_t>& of = model.type_of_layer;
  for (std::size_t first = 0; first < of.size(); ++first) {
    if (of[first] != type) continue;
    std::size_t last = first;
    while (last + 1 < of.size() && of[last + 1] == type) ++last;
    ranges += (ranges.empty() ? "" : ", ") + std::to_string(first);
    if (last != first) ranges += "-" + std::to_string(last);
    first = last;
  }
  return ranges.empty() ? "none" : ranges;
}

}  // namespace detail

/// The policy in one line; of a list its length and range: "longrope factor 32 ... long_factor (48 from 1 to 64.3)".
inline std::string summary(const scaling& policy) {
  const policy_description own = describe(policy);
  std::string text = own.name;
  for (const policy_parameter& p : own.parameters) text += std::string(" ") + p.name + " " + decimal(p.value);
  for (const policy_list& of_pairs : own.lists) {
    const list<double>& values = of_pairs.values;
    text += std::string(" ") + of_pairs.name + " (" + std::to_string(values.size());
    if (!values.empty()) {
      const auto range = std::minmax_element(values.begin(), values.end());
      text += " from " + decimal(*range.first) + " to " + decimal(*range.second);
    }
    text += ")";
  }
  return text;
}

/// "stepped, scale 0.1, every 8192 tokens, first 1"
inline std::string summary(const query_temperature& temperature) {
  const std::string tokens = std::to_string(temperature.length) + " tokens";
  if (temperature.how == query_temperature::rule::log_n) return "log_n from " + tokens;
  return "stepped, scale " + decimal(temperature.scale) + ", every " + tokens + ", first " +
         std::to_string(temperature.first);
}

namespace detail {

inline std::string summary_of_layer(const layer_rope& layer) {
  const auto line = [&](const char* field, const std::string& value) {
    return std::string("  ") + field + ": " + value + source_of(layer.origins, field) + "\n";
  };
  std::string text = line("head_dim", std::to_string(layer.head_dim));
  if (layer.rotates()) {
    text += line("rotary_dim", std::to_string(layer.rotary_dim) + " from channel " + std::to_string(layer.offset));
    text += line("pairing", name_of(layer.pairing));
    text += line("rope_theta", decimal(layer.rope_theta));
    text += line("scaling", summary(layer.scaling));
  } else {
    text += line("rotary_dim", "0 (no rotation)");
  }
  if (layer.mrope) {
    std::string sections = name_of(layer.mrope->layout);
    for (const std::size_t section : layer.mrope->section) sections += " " + std::to_string(section);
    text += line("mrope", sections);
  }
  if (layer.softmax_scale_multiplier != 1.0) {
    text += line("softmax_scale_multiplier", decimal(layer.softmax_scale_multiplier));
  }
  if (layer.query_temperature) {
    text += line("query_temperature", summary(*layer.query_temperature));
  }
  return text;
}

}  // namespace detail

/// Some lines for people, each with the key that its value came from. Not a format to parse.
inline std::string summary(const rope& model) {
  std::string text = "model_type: " + model.model_type + "\n";
  if (model.max_position_embeddings != 0) {
    text += "max_position_embeddings: " + std::to_string(model.max_position_embeddings) +
            detail::source_of(model.origins, "max_position_embeddings") + "\n";
  }
  for (const std::string& key : model.ignored_keys) text += "ignored: " + key + "\n";
  for (std::size_t type = 0; type < model.types.size(); ++type) {
    text += "layers of type " + model.types[type].name + ": " + detail::layers_of_type(model, type) + "\n" +
            detail::summary_of_layer(model.types[type]);
  }
  return text;
}

}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
