// The parts of a config.json that bear on the rotation: the language model's object, its block of scaling parameters,
// settings under which there is no rotation, and what is left that nobody read.
#ifndef ROTARY_DETAIL_HUGGINGFACE_PARTS_HPP
#define ROTARY_DETAIL_HUGGINGFACE_PARTS_HPP

#include "huggingface_keys.hpp"
#include "huggingface_models.hpp"

namespace rotary {
inline namespace ROTARY_ABI {
namespace detail {

/// The words of a key in lower case, each between two '_': "ropeTheta", "rope-theta" and "ROPE_theta" give
/// "_rope_theta_". "RoPE" counts as one word.
inline std::string words_of(std::string key) {
  for (std::size_t at = key.find("RoPE"); at != std::string::npos; at = key.find("RoPE")) key.replace(at, 4, "Rope");
  const auto is_upper = [](char c) { return c >= 'A' && c <= 'Z'; };
  const auto is_lower = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  std::string words = "_";
  for (std::size_t i = 0; i < key.size(); ++i) {
    const bool after_lower = i > 0 && is_lower(key[i - 1]), before_lower = i + 1 < key.size() && is_lower(key[i + 1]);
    if (is_upper(key[i]) && words.back() != '_' && (after_lower || before_lower)) words += '_';
    words += is_upper(key[i]) ? static_cast<char>(key[i] - 'A' + 'a') : is_lower(key[i]) ? key[i] : '_';
  }
  return words + "_";
}

/// Whether a key beside the scaling block bears on positions: some of its words, or the beginning of one, say so.
inline bool concerns_rope(const std::string& key) {
  const std::string words = words_of(key);
  for (const char* some :
       {"_rope", "_rotary", "_mrope_", "_xdrope_", "_longrope_", "_xpos_", "_ntk_", "_yarn_", "_alibi_", "_pos_emb_",
        "_positional_embedding_", "_position_embedding_", "_position_encoding_2d_", "_nope_layers_",
        "_nope_layer_interval_", "_use_nope_", "_use_logn_attn_", "_dual_chunk_attention_config_"}) {
    if (words.find(some) != std::string::npos) return true;
  }
  return false;
}

inline bool is_in(const std::vector<std::string>& keys, const std::string& key) {
  for (const std::string& one : keys) {
    if (one == key) return true;
  }
  return false;
}

/// Callers may name a key alone or with the path by which errors name it.
inline bool is_ignored(const config_object& object, const std::string& key, const std::vector<std::string>& ignored) {
  return is_in(ignored, key) || is_in(ignored, object.path_of(key));
}

/// The object that describes the language model. What stands beside it must not say otherwise, unless it is ignored.
inline config_object text_part(config_object config, const std::vector<std::string>& ignored_keys, rope& result) {
  for (;;) {
    if (const auto type = config.word("model_type")) result.model_type = *type;
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
      if (is_ignored(config, item.key(), ignored_keys)) {
        result.ignored_keys.push_back(config.path_of(item.key()));
        continue;
      }
      config.refuse_value(item.key(), "it must stand in " + inner->path() + ", which says otherwise or nothing");
    }
    config = *inner;
  }
}

/// The row as latent attention (MLA) is on or off. Off, DeepSeek's code takes Llama's attention, whatever the keys of
/// MLA say: DeepSeek-OCR, DeepSeek-VL2-tiny.
inline huggingface_model with_latent_attention(const config_object& config, huggingface_model model) {
  if (config.flag("use_mla").value_or(true)) return model;
  config.pass_over("qk_rope_head_dim");
  if (model.special != peculiarity::mla_softmax) return model;
  if (std::string(model.model_type) != "deepseek_v2") {
    config.refuse_value("use_mla", std::string("with model_type ") + model.model_type + " it must be true");
  }
  model.pairing = pairing::split_half;
  model.head_dim = 0;
  model.special = peculiarity::no;
  return model;
}

/// Kimi-Linear's flag: the channels that MLA keeps for the rotation do not rotate.
inline bool latent_attention_rotates(const config_object& config, const huggingface_model& model) {
  const std::optional<bool> nope = config.flag("mla_use_nope");
  const bool never = model.special == peculiarity::never_rotates;
  if (nope && *nope != never && find_huggingface_model(model.model_type) != nullptr) {
    config.refuse_value("mla_use_nope", std::string("with model_type ") + model.model_type + " it must be " +
                                            (never ? "true" : "false"));
  }
  return !nope.value_or(false);
}

/// Whether position_embedding_type means a rotation. rope_gptj and rope_gpt_neox name the pairing too, after Cohere.
inline bool positions_rotate(const config_object& config, const huggingface_model& model) {
  constexpr const char* key = "position_embedding_type";
  const std::optional<std::string> kind = config.word(key);
  if (!kind && model.special == peculiarity::positions_must_be_stated) {
    refuse_missing(config.path_of(key),
                   "it must say \"rope\", \"rotary\" or \"nope\": model types differ in what they do without it");
  }
  if (!kind || *kind == "rope" || *kind == "rotary") return true;
  if (*kind == "nope") return false;
  if (*kind == "absolute" && model.special == peculiarity::absolute_means_rope) return true;
  if (*kind == "rope_gptj" || *kind == "rope_gpt_neox") {
    const pairing named = *kind == "rope_gptj" ? pairing::interleaved : pairing::split_half;
    if (named == model.pairing) return true;
    config.refuse_value(key, std::string("the channels of model_type ") + model.model_type + " pair up otherwise");
  }
  config.refuse_value(key, "it must be \"rope\", \"rotary\" or \"nope\"");
}

/// Settings under which a model has no rotary embedding, or one that no spectrum describes.
inline bool config_rotates(const config_object& config, const huggingface_model& model,
                           const std::vector<std::string>& ignored_keys) {
  const auto ignored = [&](const char* key) { return is_ignored(config, key, ignored_keys); };
  for (const char* key : {"alibi", "use_alibi", "position_encoding_2d", "rotary_value", "use_xpos", "xpos"}) {
    if (!ignored(key) && config.flag(key).value_or(false)) config.refuse_value(key, "it must be false");
  }
  for (const char* key : {"original_rope", "rotary", "use_rotary_pos_emb"}) {
    if (!ignored(key) && !config.flag(key).value_or(true)) config.refuse_value(key, "it must be true");
  }
  const bool latent = ignored("mla_use_nope") || latent_attention_rotates(config, model);
  return (ignored("position_embedding_type") || positions_rotate(config, model)) && latent;
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

/// A block for each type of layer has an object for each of its keys. One of nulls alone states nothing.
inline bool is_nested(const config_object& block) {
  for (const char* parameter : {"rope_type", "type", "rope_theta", "factor"}) {
    if (block.raw().contains(parameter)) return false;
  }
  bool objects = false;
  for (const nlohmann::json& value : block.raw()) {
    if (!value.is_object() && !value.is_null()) return false;
    objects = objects || value.is_object();
  }
  return objects;
}

inline void refuse_unread(const config_object& object, bool (*matters)(const std::string&), const std::string& user,
                          const std::vector<std::string>& ignored_keys) {
  for (const auto& item : object.raw().items()) {
    if (item.value().is_null() || object.was_read(item.key()) || !matters(item.key())) continue;
    if (is_ignored(object, item.key(), ignored_keys)) continue;
    object.refuse_value(item.key(),
                        "rotary has no use for it with " + user + ". Remove it, or name it in ignored_keys");
  }
}

/// Tells the caller which of these keys were there and nobody read.
inline void note_ignored(const config_object& object, const std::vector<std::string>& ignored_keys, rope& result) {
  for (const auto& item : object.raw().items()) {
    if (!is_ignored(object, item.key(), ignored_keys) || object.was_read(item.key())) continue;
    result.ignored_keys.push_back(object.path_of(item.key()));
  }
}

}  // namespace detail
}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
