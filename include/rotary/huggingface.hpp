// A model's config.json -> rope. The only header that needs nlohmann/json (3.9 or later); not included by rotary.hpp.
//
//     const rotary::rope rope = rotary::from_huggingface_file("Llama-3.1-8B/config.json");
//
// Honours every key of the text part that bears on the rotation, under all spellings of transformers 4 and 5 and of the
// models' own code, and refuses what it cannot honour by rotary::error with the key, its value and what is permitted:
// unknown model types, unknown scaling types, unknown keys in a block of scaling parameters, and keys beside it that
// name rope and that the model type has no use for. detail/huggingface_models.hpp lists the model types.
#ifndef ROTARY_HUGGINGFACE_HPP
#define ROTARY_HUGGINGFACE_HPP

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "detail/huggingface_layer_kinds.hpp"
#include "detail/huggingface_parts.hpp"
#include "detail/mapped_file.hpp"
#include "rope.hpp"

namespace rotary {
inline namespace ROTARY_ABI {

/// What the caller knows and the config or the library does not.
struct huggingface_options {
  /// How the checkpoint's channels pair up, for a model type that the library does not know (which must then state its
  /// rope_theta) or for permuted weights. A wrong pairing gives wrong results without an error, so it is not guessed.
  std::optional<rotary::pairing> pairing = std::nullopt;
  /// Keys that the caller has found not to bear on the rotation, alone ("made_up", wherever it stands) or with the path
  /// that errors print ("rope_scaling.made_up"); others unknown are refused. One
  /// list may serve many models: keys that a model lacks are no error, and rope::ignored_keys says which it had.
  std::vector<std::string> ignored_keys = {};
};

namespace detail {

inline huggingface_model model_of(const config_object& config, const std::string& model_type,
                                  const huggingface_options& options) {
  if (const huggingface_model* const known = find_huggingface_model(model_type)) return *known;
  if (harmless(model_type) != model_type) {
    refuse(config.path_of("model_type"), "\"" + model_type + "\"", "it must be printable ASCII");
  }
  if (options.pairing) return {model_type.c_str(), *options.pairing, 0.0};
  if (model_type.empty()) refuse_missing(config.path_of("model_type"), "state it, or huggingface_options::pairing");
  refuse(config.path_of("model_type"), "\"" + model_type + "\"",
         "the library does not know how its channels pair up. State huggingface_options::pairing");
}

/// The blocks of a nested rope_parameters by type of layer.
inline std::map<std::string, config_object> blocks_by_type(const config_object& nested) {
  std::map<std::string, config_object> blocks;
  for (const auto& item : nested.raw().items()) {
    // Names are printed by those who use the rope.
    if (item.key().empty() || harmless(item.key()) != item.key()) {
      nested.refuse_value(item.key(), "the name of a type of layer must be printable ASCII");
    }
    const std::optional<config_object> block = nested.object(item.key().c_str());
    if (!block)
      nested.refuse_value(item.key(), "it must be an object. Say {\"rope_type\": \"default\"} for no scaling");
    blocks.emplace(item.key(), *block);
  }
  return blocks;
}

/// One type of layer for each block; layer_types says which layers.
inline void read_nested_types(const model_config& from, const std::map<std::string, config_object>& blocks,
                              rope& result) {
  std::map<std::string, std::size_t> index;
  for (const auto& [name, block] : blocks) {
    const layer_kind kind = {name.c_str(), true, true, nullptr, 0.0};
    index.emplace(name, result.types.size());
    result.types.push_back(read_layer(from, &kind, &block, &block));
  }
  if (const auto kinds = kinds_by_name(from.config, index, "rope_parameters has no such key")) {
    result.type_of_layer = *kinds;
  }
}

inline void read_types(const model_config& from, const layer_scheme* scheme, const config_object* flat,
                       const std::map<std::string, config_object>& blocks, rope& result) {
  if (scheme == nullptr && !blocks.empty()) return read_nested_types(from, blocks, result);
  if (scheme == nullptr) {
    result.types.push_back(read_layer(from, nullptr, flat, flat));
    return;
  }
  for (const auto& own : blocks) {
    if (own.first == scheme->kinds[0].name || own.first == scheme->kinds[1].name) continue;
    refuse(own.second.path(), "a block", "model_type " + result.model_type + " has no such type of layer");
  }
  for (const layer_kind& kind : scheme->kinds) {
    const auto own = blocks.find(kind.name);
    const config_object* const block = own != blocks.end() ? &own->second : kind.scaled ? flat : nullptr;
    const bool shares_theta = kind.theta_key != nullptr && std::string(kind.theta_key) == "rope_theta";
    result.types.push_back(read_layer(from, &kind, block == nullptr && shares_theta ? flat : block, block));
  }
  result.type_of_layer = kinds_of_layers(from.config, *scheme);
}

inline rope read_rope(const nlohmann::json& root, const huggingface_options& options) {
  rope result;
  const config_object config = text_part(config_object(root, ""), options.ignored_keys, result);
  huggingface_model model = with_latent_attention(config, model_of(config, result.model_type, options));
  if (!config_rotates(config, model, options.ignored_keys)) model.special = peculiarity::never_rotates;
  const auto longest = longest_context(config, model);
  if (longest) {
    result.max_position_embeddings = longest->first;
    result.origins.push_back({"max_position_embeddings", config.path_of(longest->second)});
  }
  const std::optional<config_object> block = scaling_block(config);
  const bool nested = block && is_nested(*block);
  std::map<std::string, config_object> blocks;
  if (nested) blocks = blocks_by_type(*block);
  const bool has_window = config.has("sliding_window");
  const bool alike = model.special == peculiarity::exaone_window && !has_window;
  if (alike && !config.raw().contains("sliding_window")) {
    refuse_missing(config.path_of("sliding_window"), "state it, or null where all layers rotate: engines differ");
  }
  const model_config from = {config, model, options.pairing,
                             longest ? std::optional<std::int64_t>(longest->first) : std::nullopt, nested};
  result.number_of_layers = number_of_layers(config);
  read_types(from, alike ? nullptr : model.layers, block && !nested ? &*block : nullptr, blocks, result);

  const auto every = [](const std::string&) { return true; };
  if (model.special != peculiarity::never_rotates) {
    refuse_unread(config, concerns_rope, "model_type " + result.model_type, options.ignored_keys);
    if (block && !nested) refuse_unread(*block, every, "rope_type " + rope_type_of(*block), options.ignored_keys);
  }
  note_ignored(config, options.ignored_keys, result);
  if (block && !nested) note_ignored(*block, options.ignored_keys, result);
  for (const auto& [name, own] : blocks) {
    refuse_unread(own, every, "rope_type " + rope_type_of(own), options.ignored_keys);
    note_ignored(own, options.ignored_keys, result);
  }
  return result;
}

}  // namespace detail

/// The rotation that a parsed config.json describes. Throws error as said above, and where it nests deeper than 64
/// levels.
inline rope from_huggingface(const nlohmann::json& config, const huggingface_options& options = {}) {
  detail::require_shallow(config, "");
  return detail::read_rope(config, options);
}

/// The same of the file's text. Throws error also where it is not JSON or repeats a key.
inline rope from_huggingface_text(const std::string& text, const huggingface_options& options = {}) {
  return detail::read_rope(detail::parse_config(text), options);
}

/// The same of a file on disk. Throws error also where it cannot be read or has more than 16 MiB; of a pipe, read its
/// text.
inline rope from_huggingface_file(const std::string& path, const huggingface_options& options = {}) {
  constexpr std::size_t most = std::size_t{1} << 24;
  const detail::mapped_file file("from_huggingface_file", path.c_str());
  if (file.size() > most) {
    detail::fail(
        "rotary::from_huggingface_file: path is \"%.200s\", a file of %zu bytes; it must have at most %zu. Give the "
        "model's config.json.",
        path.c_str(), file.size(), most);
  }
  if (file.size() == 0) return from_huggingface_text("", options);  // data() is null
  return from_huggingface_text(std::string(reinterpret_cast<const char*>(file.data()), file.size()), options);
}

}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
