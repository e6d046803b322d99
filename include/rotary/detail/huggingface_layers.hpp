// The rotation of one type of layer, from the config, the model's row and the block of scaling parameters that applies.
#ifndef ROTARY_DETAIL_HUGGINGFACE_LAYERS_HPP
#define ROTARY_DETAIL_HUGGINGFACE_LAYERS_HPP

#include "huggingface_scaling.hpp"

namespace rotary {
inline namespace ROTARY_ABI {
namespace detail {

/// What every type of layer of one model is read from.
struct model_config {
  const config_object& config;
  const huggingface_model& model;
  std::optional<rotary::pairing> pairing;  // the caller's, which wins
  std::optional<std::int64_t> max_position_embeddings;
  bool nested;  // each type of layer has a block, whose values win over those beside it, which are for all types
};

/// Of a head; what a stated number may make the reader allocate follows.
inline constexpr std::int64_t most_channels = 65536;

inline void note(layer_rope& layer, const char* field, std::string source) {
  layer.origins.push_back({field, std::move(source)});
}

inline std::string of_model(const model_config& from) { return std::string("model_type ") + from.model.model_type; }

/// The first of `keys` that the config states as a whole number, and its name. Throws error where another one of them
/// states another number: engines differ in which they read.
template <std::size_t n>
std::optional<std::pair<std::int64_t, const char*>> first_stated(const config_object& config,
                                                                 const char* const (&keys)[n], std::int64_t least,
                                                                 std::int64_t most) {
  std::optional<std::pair<std::int64_t, const char*>> first;
  for (const char* key : keys) {
    const std::optional<std::int64_t> value = config.integer(key, least, most);
    if (!value) continue;
    if (!first) first.emplace(*value, key);
    if (*value != first->first) {
      config.refuse_value(key, "it must equal " + config.path_of(first->second) + ", " + std::to_string(first->first) +
                                   ", which means the same. Remove one");
    }
  }
  return first;
}

/// max_position_embeddings, however it is called. Qwen-1's seq_length is the length trained on, which may be less.
inline std::optional<std::pair<std::int64_t, const char*>> longest_context(const config_object& config,
                                                                           const huggingface_model& model) {
  static constexpr const char* lengths[] = {"max_position_embeddings", "n_positions", "max_sequence_length",
                                            "max_seq_len"};
  static constexpr const char* all_lengths[] = {"max_position_embeddings", "n_positions", "seq_length",
                                                "max_sequence_length", "max_seq_len"};
  constexpr std::int64_t most = std::int64_t{1} << 40;
  if (model.special == peculiarity::qwen1) {
    if (const auto own = first_stated(config, lengths, 1, most)) return own;
  }
  return first_stated(config, all_lengths, 1, most);
}

/// The channels that latent attention (MLA) rotates, in models that may have it; none where the config does not say.
inline std::optional<std::int64_t> latent_head_dim(const model_config& from) {
  constexpr const char* key = "qk_rope_head_dim";
  const peculiarity special = from.model.special;
  const bool never = special == peculiarity::never_rotates;
  const bool latent = never || special == peculiarity::mla_softmax || !find_huggingface_model(from.model.model_type);
  if (!latent || !from.config.flag("use_mla").value_or(true)) return std::nullopt;
  return from.config.integer(key, never ? 0 : 1, most_channels);
}

inline void read_head_dim(const model_config& from, const layer_kind* kind, layer_rope& layer) {
  static constexpr const char* keys[] = {"head_dim", "kv_channels", "attention_head_dim"};
  const auto set = [&](std::int64_t value, std::string source) {
    layer.head_dim = static_cast<std::size_t>(value);
    note(layer, "head_dim", std::move(source));
  };
  if (kind != nullptr && kind->head_dim_key != nullptr) {
    if (const auto value = from.config.integer(kind->head_dim_key, 1, most_channels)) {
      return set(*value, from.config.path_of(kind->head_dim_key));
    }
    if (kind->head_dim != 0) return set(static_cast<std::int64_t>(kind->head_dim), of_model(from));
  }
  if (const auto latent = latent_head_dim(from)) return set(*latent, from.config.path_of("qk_rope_head_dim"));
  if (const auto stated = first_stated(from.config, keys, 1, most_channels)) {
    return set(stated->first, from.config.path_of(stated->second));
  }
  if (from.model.head_dim != 0) return set(static_cast<std::int64_t>(from.model.head_dim), of_model(from));

  static constexpr const char* widths[] = {"hidden_size", "n_embd", "d_model"};
  static constexpr const char* counts[] = {"num_attention_heads", "n_head", "num_heads"};
  const auto width = first_stated(from.config, widths, 1, std::int64_t{1} << 40);
  const auto heads = first_stated(from.config, counts, 1, most_channels);
  if (!width && !heads && from.model.special == peculiarity::widths_have_defaults)
    return set(4096 / 32, of_model(from));
  if (!width || !heads) {
    refuse_missing(from.config.path_of("head_dim"), "state it, or hidden_size and num_attention_heads");
  }
  if (width->first % heads->first != 0 || width->first / heads->first > most_channels) {
    from.config.refuse_value(width->second, "it must be a multiple of " + std::string(heads->second) + ", " +
                                                std::to_string(heads->first) + ", of at most " +
                                                std::to_string(most_channels) + " channels a head");
  }
  set(width->first / heads->first, from.config.path_of(width->second) + " / " + from.config.path_of(heads->second));
}

inline void read_theta(const model_config& from, const layer_kind* kind, const config_object* block,
                       layer_rope& layer) {
  const auto set = [&](double value, std::string source) {
    layer.rope_theta = value;
    note(layer, "rope_theta", std::move(source));
  };
  if (from.model.special == peculiarity::chatglm_ratio) {
    return set(10000.0 * from.config.positive("rope_ratio").value_or(1.0), "10000 * rope_ratio");
  }
  const char* const own_key = kind != nullptr && kind->theta_key != nullptr ? kind->theta_key : "rope_theta";
  const std::optional<double> in_block = block == nullptr ? std::nullopt : block->positive("rope_theta");
  std::optional<std::pair<double, std::string>> stated;
  if (in_block) stated.emplace(*in_block, block->path_of("rope_theta"));
  const bool of_other_types = in_block && from.nested && std::string(own_key) == "rope_theta";
  for (const char* key : {own_key, "rotary_emb_base", "theta"}) {
    if (std::string(key) == "theta" && from.model.special != peculiarity::lfm2_theta) continue;
    const std::optional<double> value = from.config.positive(key);
    if (!value) continue;
    if (!stated) stated.emplace(*value, from.config.path_of(key));
    if (*value != stated->first && !of_other_types) from.config.refuse_value(key, "it must equal " + stated->second);
  }
  if (stated) return set(stated->first, stated->second);
  const double theta = kind != nullptr && kind->rope_theta != 0.0 ? kind->rope_theta : from.model.rope_theta;
  if (theta == 0.0) refuse_missing(from.config.path_of("rope_theta"), "state it: this model type has no default");
  set(theta, of_model(from));
}

/// The rotated part of a head, as the keys that were read so far state it.
struct rotated_part {
  double fraction = 0.0;  ///< of the head
  std::size_t channels = 0;
  std::string source = {};  ///< empty: no key states it

  /// Throws error unless `key` states what the others do.
  void agree(double of_head, std::size_t stated, std::string key) {
    if (!source.empty() && stated != channels) {
      fail("rotary::from_huggingface: %.90s makes %zu channels rotate and %.90s %zu; they must agree. Remove one.",
           harmless(source).c_str(), channels, harmless(key).c_str(), stated);
    }
    fraction = of_head;
    channels = stated;
    source = std::move(key);
  }
};

inline void read_fraction(const config_object& object, const char* key, std::size_t head_dim, rotated_part& part) {
  const std::optional<double> value = object.number(key);
  if (!value) return;
  if (*value < 0.0 || *value > 1.0) object.refuse_value(key, "it must be in [0, 1], the part of the head that rotates");
  part.agree(*value, rotary_dim(head_dim, *value), object.path_of(key));
}

/// The key rotary_dim, which counts channels.
inline void read_rotated_channels(const config_object& config, std::size_t head_dim, rotated_part& part) {
  const std::optional<std::int64_t> value = config.integer("rotary_dim", 0, most_channels);
  if (!value) return;
  const auto channels = static_cast<std::size_t>(*value);
  if (channels > head_dim || channels % 2 != 0) {
    config.refuse_value("rotary_dim", "it must be even and at most head_dim, " + std::to_string(head_dim));
  }
  part.agree(static_cast<double>(channels) / static_cast<double>(head_dim), channels, config.path_of("rotary_dim"));
}

/// Sets rotary_dim to the one that all keys agree on, and returns the fraction of the head that they stand for.
inline double read_rotary_dim(const model_config& from, const config_object* block, layer_rope& layer) {
  rotated_part part;
  if (block != nullptr) read_fraction(*block, "partial_rotary_factor", layer.head_dim, part);
  const bool of_this_type = from.nested && !part.source.empty();
  for (const char* key : {"partial_rotary_factor", "rotary_pct", "rotary_emb_fraction", "rope_pct", "rope_percent"}) {
    of_this_type ? from.config.pass_over(key) : read_fraction(from.config, key, layer.head_dim, part);
  }
  read_rotated_channels(from.config, layer.head_dim, part);
  if (from.model.special == peculiarity::rotary_dim_must_be_stated && part.source.empty() &&
      !from.config.raw().contains("rotary_dim")) {
    refuse_missing(from.config.path_of("rotary_dim"), "state it, or null where all of the head rotates");
  }
  const double usual = from.model.partial_rotary_factor;
  if (part.source.empty()) part.agree(usual, rotary_dim(layer.head_dim, usual), of_model(from));
  layer.rotary_dim = part.channels;
  note(layer, "rotary_dim", part.source);
  return part.fraction;
}

/// rope_type wins over type, but a type that says mrope beside a rope_type of default is how such models are written.
inline void refuse_axes_without_sections(const config_object& block) {
  for (const char* key : {"rope_type", "type"}) {
    const std::string type = block.word(key).value_or("");
    if (type != "mrope" && type != "xdrope") continue;
    refuse_missing(block.path_of(type + "_section"),
                   "state the pairs of each axis, as " + block.path_of(key) + " is " + type);
  }
}

inline void read_mrope(const model_config& from, const config_object* block, layer_rope& layer) {
  std::optional<std::vector<std::size_t>> section;
  mrope_layout how = from.model.mrope;
  if (block != nullptr) {
    for (const char* key : {"mrope_section", "xdrope_section"}) {
      if (!block->has(key)) continue;
      if (section) block->refuse_value(key, "it must not stand beside mrope_section");
      section = block->counts(key, static_cast<double>(most_channels));
      note(layer, "mrope", block->path_of(key));
    }
    if (how != mrope_layout::height_width_alternating) {
      if (const auto flag = block->flag("mrope_interleaved")) {
        how = *flag ? mrope_layout::interleaved : mrope_layout::chunked;
      }
    }
    if (from.model.section[0] != 0) {  // Qwen3-Omni says it twice
      const std::optional<bool> again = block->flag("interleaved");
      if (again && *again != (how == mrope_layout::interleaved)) {
        block->refuse_value("interleaved", "it must equal mrope_interleaved");
      }
    }
  }
  if (!section && from.model.section[0] != 0) {
    section.emplace(from.model.section, from.model.section + 3);
    note(layer, "mrope", of_model(from));
  }
  if (block != nullptr && !section) refuse_axes_without_sections(*block);
  if (section) layer.mrope = mrope{*section, how};
  for (const char* key : {"use_mrope", "rope_3d"}) {
    const std::optional<bool> flag = from.config.flag(key);
    if (flag && *flag != section.has_value()) {
      from.config.refuse_value(key, section ? "the model has mrope_section" : "the model has no mrope_section");
    }
  }
}

inline void read_pairing(const model_config& from, layer_rope& layer) {
  layer.pairing = from.model.pairing;
  std::string source = of_model(from);
  const char* const key = from.model.special == peculiarity::mla_softmax ? "rope_interleave" : "rotary_emb_interleaved";
  if (const auto flag = from.config.flag(key)) {
    layer.pairing = *flag ? pairing::interleaved : pairing::split_half;
    source = from.config.path_of(key);
  }
  if (from.pairing) {
    layer.pairing = *from.pairing;
    source = "the caller";
  }
  note(layer, "pairing", std::move(source));
}

/// What attention multiplies beside the rotation.
inline void read_temperature(const model_config& from, const config_object* block, layer_rope& layer) {
  query_temperature temperature;
  if (from.model.special == peculiarity::llama4_temperature && !layer.rotates()) {
    if (!from.config.flag("attn_temperature_tuning").value_or(true)) return;
    temperature.scale = from.config.number("attn_scale").value_or(0.1);
    temperature.length = from.config.length("floor_scale").value_or(8192);
    temperature.first = 1;
    note(layer, "query_temperature", "attn_scale, floor_scale");
    layer.query_temperature = temperature;
  }
  const std::optional<double> beta = block == nullptr ? std::nullopt : block->number("llama_4_scaling_beta");
  if (beta) {
    const auto* const policy = std::get_if<yarn>(&layer.scaling);
    if (policy == nullptr) block->refuse_value("llama_4_scaling_beta", "it needs rope_type yarn");
    temperature.scale = *beta;
    temperature.length = policy->original_max_position_embeddings;
    note(layer, "query_temperature", block->path_of("llama_4_scaling_beta"));
    layer.query_temperature = temperature;
  }
}

/// Qwen-1 states its scaling beside, not inside, a block.
inline void read_qwen1(const model_config& from, layer_rope& layer) {
  const bool dynamic = from.config.flag("use_dynamic_ntk").value_or(true);
  const bool log_n = from.config.flag("use_logn_attn").value_or(true);
  const std::optional<std::int64_t> trained = from.config.integer("seq_length", 2, std::int64_t{1} << 40);
  if (!dynamic && !log_n) return;
  if (!trained) refuse_missing(from.config.path_of("seq_length"), "use_dynamic_ntk and use_logn_attn need it");
  if (dynamic) {
    layer.scaling = qwen_dynamic_ntk{*trained};
    note(layer, "scaling", "use_dynamic_ntk, seq_length");
  }
  if (log_n) {
    layer.query_temperature = query_temperature{query_temperature::rule::log_n, 0.0, *trained, 0};
    note(layer, "query_temperature", "use_logn_attn, seq_length");
  }
}

/// NomicBERT writes this beside the block; 1 is no scaling, and anything else is left for refusal.
inline void pass_over_unit_factor(const config_object& config) {
  const auto factor = config.raw().find("rotary_scaling_factor");
  if (factor != config.raw().end() && factor->is_number() && factor->get<double>() == 1.0) {
    config.pass_over("rotary_scaling_factor");
  }
}

inline void read_layer_scaling(const model_config& from, const config_object& block, double fraction,
                               layer_rope& layer) {
  layer.scaling = read_scaling(block, {from.config, from.max_position_embeddings}, from.model.special);
  if (auto* const policy = std::get_if<proportional>(&layer.scaling)) {
    policy->partial_rotary_factor = fraction;
    layer.rotary_dim = layer.head_dim;
    note(layer, "rotary_dim", "head_dim: proportional");
  }
  const auto* const policy = std::get_if<yarn>(&layer.scaling);
  if (policy != nullptr && from.model.special == peculiarity::mla_softmax) {
    const double mscale_all_dim = block.number("mscale_all_dim").value_or(0.0);
    layer.softmax_scale_multiplier = softmax_scale_multiplier(policy->factor, mscale_all_dim);
    if (mscale_all_dim != 0.0) note(layer, "softmax_scale_multiplier", block.path_of("mscale_all_dim"));
  }
  std::string source = block.path();
  constexpr const char* original = "original_max_position_embeddings";
  const bool needs_original = policy != nullptr || std::holds_alternative<longrope>(layer.scaling) ||
                              std::holds_alternative<llama3>(layer.scaling);
  if (needs_original && from.config.has(original)) source += ", " + from.config.path_of(original);
  note(layer, "scaling", std::move(source));
}

/// `theta_block` may state rope_theta, `block` the rest; either may be null.
inline layer_rope read_layer(const model_config& from, const layer_kind* kind, const config_object* theta_block,
                             const config_object* block) {
  layer_rope layer;
  if (kind != nullptr) layer.name = kind->name;
  read_head_dim(from, kind, layer);
  read_pairing(from, layer);
  if (from.model.special == peculiarity::never_rotates || (kind != nullptr && !kind->rotates)) {
    note(layer, "rotary_dim", of_model(from) + ": these layers do not rotate");
  } else {
    if (block == nullptr && from.model.special == peculiarity::scaling_must_be_stated) {
      refuse_missing(from.config.path_of("rope_scaling"),
                     "state it, {\"rope_type\": \"default\"} for none: engines differ in what they do without it");
    }
    read_theta(from, kind, theta_block, layer);
    const double fraction = read_rotary_dim(from, block, layer);
    if (block != nullptr) read_layer_scaling(from, *block, fraction, layer);
    pass_over_unit_factor(from.config);
    if (from.model.special == peculiarity::qwen1) read_qwen1(from, layer);
    read_mrope(from, block, layer);
  }
  read_temperature(from, block, layer);
  require_consistent("from_huggingface", layer);
  return layer;
}

}  // namespace detail
}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
