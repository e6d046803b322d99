// Which layers are of which kind, in models that alternate between two.
#ifndef ROTARY_DETAIL_HUGGINGFACE_LAYER_KINDS_HPP
#define ROTARY_DETAIL_HUGGINGFACE_LAYER_KINDS_HPP

#include <map>

#include "huggingface_layers.hpp"

namespace rotary {
inline namespace ROTARY_ABI {
namespace detail {

inline constexpr std::int64_t most_layers = 65536;

/// The number of layers and the key that states it.
inline std::optional<std::pair<std::int64_t, const char*>> stated_layers(const config_object& config) {
  static constexpr const char* keys[] = {"num_hidden_layers", "n_layer", "num_layers"};
  return first_stated(config, keys, 1, most_layers);
}

/// 0 where the config does not say.
inline std::size_t number_of_layers(const config_object& config) {
  const auto stated = stated_layers(config);
  return stated ? static_cast<std::size_t>(stated->first) : 0;
}

/// Throws error unless the list under `key` has an entry for each layer and no more, where their number is known.
inline void require_entries(const config_object& config, const char* key, std::size_t entries) {
  const auto layers = stated_layers(config);
  if (!layers || entries == static_cast<std::size_t>(layers->first)) return;
  refuse(config.path_of(key), "a list of " + std::to_string(entries),
         "it must have " + std::to_string(layers->first) + " entries, " + config.path_of(layers->second));
}

/// The kinds by layer_types, which names them; none where there is no such key. `known` says which names `index` has.
inline std::optional<std::vector<std::size_t>> kinds_by_name(const config_object& config,
                                                             const std::map<std::string, std::size_t>& index,
                                                             const char* known) {
  const nlohmann::json* const types = config.array("layer_types");
  if (types == nullptr) return std::nullopt;
  require_entries(config, "layer_types", types->size());
  std::vector<std::size_t> kinds;
  for (std::size_t i = 0; i < types->size(); ++i) {
    const nlohmann::json& type = (*types)[i];
    const auto found = type.is_string() ? index.find(type.get<std::string>()) : index.end();
    if (found == index.end()) refuse(config.path_of("layer_types") + "[" + std::to_string(i) + "]", shown(type), known);
    kinds.push_back(found->second);
  }
  return kinds;
}

/// The kinds by a rule: every interval-th layer is of the first kind.
inline std::vector<std::size_t> kinds_by_interval(const config_object& config, std::size_t layers,
                                                  const layer_scheme& scheme) {
  std::size_t interval = scheme.interval;
  if (scheme.interval_key != nullptr) {
    if (const auto own = config.integer(scheme.interval_key, 1, most_layers)) interval = static_cast<std::size_t>(*own);
  }
  std::vector<std::size_t> kinds(layers, 1);
  if (layers == 0) return kinds;
  if (interval == 0) refuse_missing(config.path_of("layer_types"), "state it: this model type follows no rule");
  for (std::size_t i = scheme.first_of_interval ? 0 : interval - 1; i < layers; i += interval) kinds[i] = 0;
  return kinds;
}

/// For each layer 0 or 1, its kind; empty where the config does not say.
inline std::vector<std::size_t> kinds_of_layers(const config_object& config, const layer_scheme& scheme) {
  const std::size_t layers = number_of_layers(config);
  if (scheme.list_key != nullptr) {
    if (auto list = config.counts(scheme.list_key, 1.0); list && !list->empty()) {
      require_entries(config, scheme.list_key, list->size());
      if (scheme.interval_key != nullptr) config.pass_over(scheme.interval_key);  // transformers writes both
      return *list;
    }
  }
  if (scheme.index_key != nullptr) {
    if (config.array(scheme.index_key) == nullptr) refuse_missing(config.path_of(scheme.index_key), "state it");
    std::vector<std::size_t> kinds(layers, 1);
    const double last = layers == 0 ? most_layers : static_cast<double>(layers - 1);
    for (const std::size_t layer : config.counts(scheme.index_key, last).value_or(std::vector<std::size_t>())) {
      if (layer < layers) kinds[layer] = 0;
    }
    return kinds;
  }
  // Where the kinds have names of their own, layer_types is about the window of attention.
  if (std::string(scheme.kinds[0].name) == "full_attention") {
    const auto named = kinds_by_name(config, {{scheme.kinds[0].name, 0}, {scheme.kinds[1].name, 1}},
                                     "known are full_attention and sliding_attention");
    if (named) return *named;
  }
  return kinds_by_interval(config, layers, scheme);
}

}  // namespace detail
}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
