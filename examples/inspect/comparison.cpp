#include "comparison.hpp"

#include <algorithm>
#include <cmath>
#include <rotary/rope_summary.hpp>

namespace inspect {
namespace {

// The summary tells of a list its length and range alone, so behind it the first entry in which the other's differs.
std::string policy_text(const rotary::scaling& scaling, const rotary::scaling& other) {
  const rotary::policy_description own = rotary::describe(scaling), others = rotary::describe(other);
  std::string text = rotary::summary(scaling);
  if (own.name != std::string(others.name)) return text;
  for (std::size_t i = 0; i < own.lists.size(); ++i) {
    const rotary::list<double>&a = own.lists[i].values, &b = others.lists[i].values;
    const auto differs = std::mismatch(a.begin(), a.end(), b.begin(), b.end());
    if (differs.first == a.end() || differs.second == b.end()) continue;
    text += std::string(" ") + own.lists[i].name + "[" + std::to_string(differs.first - a.begin()) + "] " +
            rotary::decimal(*differs.first, 17);
  }
  return text;
}

std::string theta_text(const rotary::layer_rope& layer) {
  return layer.rotates() ? rotary::decimal(layer.rope_theta) : "none";
}

std::string temperature_text(const std::optional<rotary::query_temperature>& temperature) {
  return temperature ? rotary::summary(*temperature) : "none";
}

std::string axes_text(const rotary::layer_rope& layer) {
  std::string text = "one";
  if (const auto axes = layer.axes()) {
    text = "axis of each pair";
    for (std::size_t j = 0; j < axes->pairs(); ++j) text += " " + std::to_string((*axes)[j]);
  }
  return text;
}

std::vector<setting_difference> settings_that_differ(const layer_inspection& a, const layer_inspection& b) {
  std::vector<setting_difference> settings = {
      {"head_dim", std::to_string(a.layer.head_dim), std::to_string(b.layer.head_dim)},
      {"rotary_dim", std::to_string(a.layer.rotary_dim), std::to_string(b.layer.rotary_dim)},
      {"offset", std::to_string(a.layer.offset), std::to_string(b.layer.offset)},
      {"pairing", rotary::name_of(a.layer.pairing), rotary::name_of(b.layer.pairing)},
      {"rope_theta", theta_text(a.layer), theta_text(b.layer)},
      {"scaling", policy_text(a.layer.scaling, b.layer.scaling), policy_text(b.layer.scaling, a.layer.scaling)},
      {"attention_factor", rotary::decimal(a.spectrum.magnitude()), rotary::decimal(b.spectrum.magnitude())},
      {"softmax_scale_multiplier", rotary::decimal(a.layer.softmax_scale_multiplier),
       rotary::decimal(b.layer.softmax_scale_multiplier)},
      {"axes", axes_text(a.layer), axes_text(b.layer)},
      {"query_temperature", temperature_text(a.layer.query_temperature), temperature_text(b.layer.query_temperature)}};
  const auto equal = [](const setting_difference& setting) { return setting.first == setting.second; };
  settings.erase(std::remove_if(settings.begin(), settings.end(), equal), settings.end());
  return settings;
}

comparison compare_layers(const layer_inspection& a, const layer_inspection& b, std::int64_t position) {
  comparison result{&a, &b, settings_that_differ(a, b), {}, std::nullopt};
  if (a.spectrum.pairs() != b.spectrum.pairs()) return result;
  for (std::size_t j = 0; j < a.spectrum.pairs(); ++j) {
    const double difference = std::fabs(a.spectrum.inv_freq()[j] - b.spectrum.inv_freq()[j]);
    result.angle_differences.push_back(difference * static_cast<double>(position));
    if (!result.worst_pair || result.angle_differences[j] > result.angle_differences[*result.worst_pair]) {
      result.worst_pair = j;
    }
  }
  return result;
}

}  // namespace

std::vector<comparison> compare(const inspection& first, const inspection& second, std::int64_t position) {
  std::vector<comparison> result;
  for (const layer_inspection& a : first.types) {
    for (const layer_inspection& b : second.types) {
      const bool only = first.types.size() == 1 || second.types.size() == 1;
      if (only || a.layer.name == b.layer.name) result.push_back(compare_layers(a, b, position));
    }
  }
  return result;
}

}  // namespace inspect
