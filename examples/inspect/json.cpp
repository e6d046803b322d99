#include "json.hpp"

#include <cmath>
#include <rotary/rope_summary.hpp>
#include <type_traits>
#include <variant>

namespace inspect {
namespace {

using json = nlohmann::ordered_json;

/// Tokens and factors that are whole numbers without ".0".
json number(double value) {
  if (std::fabs(value) < 0x1p53 && std::floor(value) == value) return static_cast<std::int64_t>(value);
  return value;
}

json list_of(const rotary::list<double>& numbers) { return std::vector<double>(numbers); }

/// By the names of the policy's members.
json parameters_of(const rotary::scaling& scaling) {
  json parameters = json::object();
  for (const rotary::policy_parameter& p : rotary::describe(scaling).parameters) parameters[p.name] = number(p.value);
  std::visit(
      [&](const auto& policy) {
        using policy_type = std::decay_t<decltype(policy)>;
        if constexpr (std::is_same_v<policy_type, rotary::yarn>) {
          parameters["truncate"] = policy.truncate;
        } else if constexpr (std::is_same_v<policy_type, rotary::longrope>) {
          parameters["short_factor"] = list_of(policy.short_factor);
          parameters["long_factor"] = list_of(policy.long_factor);
        } else if constexpr (std::is_same_v<policy_type, rotary::frequency_factors>) {
          parameters["factors"] = list_of(policy.factors);
        }
      },
      scaling);
  return parameters;
}

json origins_of(const std::vector<rotary::origin>& origins) {
  json result = json::object();
  for (const rotary::origin& from : origins) result[from.field] = from.source;
  return result;
}

/// null: one position a token.
json axes_of(const rotary::layer_rope& layer) {
  const auto axes = layer.axes();
  if (!axes) return nullptr;
  json map = json::array();
  for (std::size_t j = 0; j < axes->pairs(); ++j) map.push_back((*axes)[j]);
  return {{"count", axes->axes()},
          {"layout", rotary::name_of(layer.mrope->layout)},
          {"section", layer.mrope->section},
          {"axis_of_pair", map}};
}

json temperature_of(const rotary::layer_rope& layer) {
  if (!layer.query_temperature) return nullptr;
  const rotary::query_temperature& t = *layer.query_temperature;
  const bool stepped = t.how == rotary::query_temperature::rule::stepped;
  return {
      {"rule", stepped ? "stepped" : "log_n"}, {"scale", number(t.scale)}, {"length", t.length}, {"first", t.first}};
}

json curves_json(const layer_inspection& of, std::int64_t context) {
  const curves all = curves_of(of, context);
  return {{"distance", all.distance},
          {"score", all.score},
          {"unscaled_score", all.unscaled_score},
          {"position", all.position},
          {"float32_angle_error", all.float32},
          {"float32_recurrence_angle_error", all.float32_recurrence}};
}

json layer_json(const layer_inspection& of, std::int64_t context) {
  const rotary::layer_rope& layer = of.layer;
  const auto known = of.positions_of_known_angles();
  json wavelengths = json::array(), regions = json::array();
  for (std::size_t j = 0; j < of.regions.size(); ++j) {
    wavelengths.push_back(std::isfinite(of.wavelength(j)) ? json(of.wavelength(j)) : json());
    regions.push_back(name_of(of.regions[j]));
  }
  return {{"name", layer.name},
          {"layers", of.layers},
          {"head_dim", layer.head_dim},
          {"rotary_dim", layer.rotary_dim},
          {"offset", layer.offset},
          {"pairing", rotary::name_of(layer.pairing)},
          {"rope_theta", layer.rotates() ? number(layer.rope_theta) : json()},
          {"policy", rotary::describe(layer.scaling).name},
          {"parameters", parameters_of(layer.scaling)},
          {"attention_factor", of.spectrum.magnitude()},
          {"softmax_scale_multiplier", layer.softmax_scale_multiplier},
          {"query_temperature", temperature_of(layer)},
          {"axes", axes_of(layer)},
          {"original_context", of.original_context == 0 ? json() : json(of.original_context)},
          {"positions_of_known_angles", known ? json(*known) : json()},
          {"inv_freq", list_of(of.spectrum.inv_freq())},
          {"unscaled_inv_freq", of.unscaled},
          {"wavelength", wavelengths},
          {"region", regions},
          {"curves", curves_json(of, context)},
          {"origins", origins_of(layer.origins)}};
}

json comparison_json(const comparison& of, std::int64_t position) {
  json settings = json::object();
  for (const setting_difference& s : of.settings) settings[s.name] = {s.first, s.second};
  json largest = nullptr;
  if (of.worst_pair) largest = {{"pair", *of.worst_pair}, {"radians", of.angle_differences[*of.worst_pair]}};
  return {{"first", of.first->layer.name},
          {"second", of.second->layer.name},
          {"different_settings", settings},
          {"position", position},
          {"angle_difference", of.angle_differences},
          {"largest_angle_difference", largest}};
}

}  // namespace

json to_json(const inspection& of) {
  json types = json::array();
  for (const layer_inspection& layer : of.types) types.push_back(layer_json(layer, of.context));
  const std::int64_t longest = of.rope.max_position_embeddings;
  return {{"path", of.path},
          {"model_type", of.rope.model_type},
          {"max_position_embeddings", longest == 0 ? json() : json(longest)},
          {"context", of.context == 0 ? json() : json(of.context)},
          {"origins", origins_of(of.rope.origins)},
          {"ignored_keys", of.rope.ignored_keys},
          {"types", types}};
}

json to_json(const std::vector<comparison>& all, const inspection& first, const inspection& second,
             std::int64_t position) {
  json result = to_json(first);
  result["compared_with"] = to_json(second);
  result["comparisons"] = json::array();
  for (const comparison& one : all) result["comparisons"].push_back(comparison_json(one, position));
  return result;
}

}  // namespace inspect
