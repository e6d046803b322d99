// The parts of a config.json that bear on the rotation: the language model's object, its block of scaling parameters,
// settings under which there is no rotation, and what is left that nobody read.
#ifndef ROTARY_DETAIL_HUGGINGFACE_PARTS_HPP
#define ROTARY_DETAIL_HUGGINGFACE_PARTS_HPP

#include "huggingface_keys.hpp"
#include "huggingface_models.hpp"

namespace rotary {
inline namespace ROTARY_ABI {
namespace detail {

/// Whether a key beside the scaling block bears on positions: one of its words says so, or it is known to.
inline bool concerns_rope(const std::string& key) {
  for (const char* known : {"alibi", "use_alibi", "position_encoding_2d", "position_embedding_type", "use_dynamic_ntk",
                            "use_logn_attn", "dual_chunk_attention_config"}) {
    if (key == known) return true;
  }
  const std::string words = "_" + key + "_";
  for (const char* word : {"_rope_", "_rotary_", "_mrope_", "_xdrope_"}) {
    if (words.find(word) != std::string::npos) return true;
  }
  return false;
}

/// The object that describes the language model. What stands beside it must not say otherwise.
inline config_object text_part(config_object config, std::string& model_type) {
  for (;;) {
    if (const auto type = config.word("model_type")) model_type = *type;
    std::optional<config_object> inner;
    for (const char* key : {"text_config", "thinker_config", "language_config", "llm_config"}) {
      if (!config.has(key)) continue;
      if (inner) config.refuse_value(key, "it stands beside " + inner->path() + ". Remove the one that is not meant");
      inner = config.object(key);
    }
    if (!inner) return config;
    for (const auto& item : config.raw().items()) {
      if (!concerns_rope(item.key()) || item.value().is_null()) continue;
      const auto same = inner->raw().find(item.key());
      if (same != inner->raw().end() && *same == item.value()) continue;
      config.refuse_value(item.key(), "it must stand in " + inner->path() + ", which says otherwise or nothing");
    }
    config = *inner;
  }
}

/// Settings under which a model has no rotary embedding, or one that no spectrum describes.
inline bool config_rotates(const config_object& config, const huggingface_model& model) {
  for (const char* key : {"alibi", "use_alibi", "position_encoding_2d", "rotary_value"}) {
    if (config.flag(key).value_or(false)) config.refuse_value(key, "it must be false");
  }
  if (!config.flag("original_rope").value_or(true)) config.refuse_value("original_rope", "it must be true");
  const std::optional<std::string> kind = config.word("position_embedding_type");
  if (!kind && model.special == peculiarity::positions_must_be_stated) {
    refuse_missing(config.path_of("position_embedding_type"),
                   "it must say \"rope\", \"rotary\" or \"nope\": model types differ in what they do without it");
  }
  if (kind && *kind != "rope" && *kind != "rotary" && *kind != "nope") {
    config.refuse_value("position_embedding_type", "it must be \"rope\", \"rotary\" or \"nope\"");
  }
  return !kind || *kind != "nope";
}

/// The block of scaling parameters, under either of its names.
inline std::optional<config_object> scaling_block(const config_object& config) {
  std::optional<config_object> parameters = config.object("rope_parameters"), scaling = config.object("rope_scaling");
  const bool both = parameters && scaling && !parameters->raw().empty() && !scaling->raw().empty();
  if (both && parameters->raw() != scaling->raw()) {
    config.refuse_value("rope_scaling", "it stands beside a rope_parameters that differs. Remove one");
  }
  return parameters && !parameters->raw().empty() ? parameters : scaling;
}

/// A block for each type of layer has an object for each of its keys.
inline bool is_nested(const config_object& block) {
  bool nested = !block.raw().empty();
  for (const nlohmann::json& value : block.raw()) nested = nested && (value.is_object() || value.is_null());
  return nested;
}

inline void refuse_unread(const config_object& object, bool (*matters)(const std::string&), const std::string& user,
                          const std::vector<std::string>& ignored_keys) {
  for (const auto& item : object.raw().items()) {
    bool ignored = item.value().is_null() || object.was_read(item.key()) || !matters(item.key());
    for (const std::string& key : ignored_keys) ignored = ignored || key == item.key();
    if (!ignored) {
      object.refuse_value(item.key(),
                          "rotary has no use for it with " + user + ". Remove it, or name it in ignored_keys");
    }
  }
}

}  // namespace detail
}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
