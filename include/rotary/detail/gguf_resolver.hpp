// From the keys of a GGUF file to the rotation of each layer.
#ifndef ROTARY_DETAIL_GGUF_RESOLVER_HPP
#define ROTARY_DETAIL_GGUF_RESOLVER_HPP

#include "gguf_scaling.hpp"

namespace rotary {
inline namespace ROTARY_ABI {
namespace detail {

class gguf_resolver {
 public:
  gguf_resolver(const gguf_settings& settings, std::optional<pairing> stated)
      : file_(settings),
        architecture_(architecture_of(settings, stated)),
        stated_(stated.has_value()),
        scaling_(settings, architecture_.traits) {}

  rope resolve() const {
    rope result;
    result.model_type = file_.architecture;
    if (const std::optional<std::int64_t> length = file_.length("context_length")) {
      result.max_position_embeddings = *length;
      result.origins.push_back({"max_position_embeddings", file_.full("context_length")});
    }
    result.number_of_layers = file_.count("block_count").value_or(0);
    layer_rope full = layer(false);
    if (all_at_rest()) rest(full);
    if (all_alike()) {
      refuse_sliding_keys();
      result.types = {std::move(full)};
    } else {
      layer_rope sliding = layer(true);
      const bool full_at_rest = has(full_rests);
      if (full_at_rest) rest(full);
      if (!full_at_rest && same(full, sliding)) {
        result.types = {std::move(full)};
      } else {
        full.name = has(layers_have_no_names) ? "nope" : "full_attention";
        sliding.name = has(layers_have_no_names) ? "all" : "sliding_attention";
        result.types = {std::move(full), std::move(sliding)};
        result.type_of_layer = layer_types();
      }
    }
    for (const layer_rope& type : result.types) require_consistent("from_gguf", type);
    return result;
  }

 private:
  static gguf_architecture architecture_of(const gguf_settings& settings, std::optional<pairing> stated) {
    const gguf_architecture* const known = find_gguf_architecture(settings.architecture);
    if (known == nullptr && !stated) {
      fail(
          "rotary::from_gguf: \"general.architecture\" is \"%s\", whose pairing is not known; it must be one of those "
          "in detail/gguf_architectures.hpp. Pass the pairing for which the rows of q and k are stored.",
          printable(settings.architecture).c_str());
    }
    if (known == nullptr && settings.architecture != printable(settings.architecture).c_str()) {
      fail(
          "rotary::from_gguf: \"general.architecture\" is \"%s\"; it must be at most 80 characters of printable ASCII. "
          "The file is damaged.",
          printable(settings.architecture).c_str());
    }
    gguf_architecture result = known == nullptr ? gguf_architecture{"", *stated} : *known;
    if (stated) result.pairing = *stated;
    return result;
  }

  bool has(unsigned trait) const { return (architecture_.traits & trait) != 0; }

  // No layer rotates.
  bool all_at_rest() const {
    if (has(finetuned_is_switch) && file_.number("rope.scaling.finetuned").value_or(1.0) == 0.0) return true;
    return has(only_32_layers) && file_.count("block_count").value_or(32) != 32;
  }

  bool all_alike() const {
    const std::optional<std::int64_t> window = file_.length("attention.sliding_window");
    if (has(only_with_window) && window.value_or(0) == 0) return true;
    return (has(only_without_zero) && window == std::int64_t{0}) || all_at_rest();
  }

  void refuse_sliding_keys() const {
    for (const char* const key : {"rope.freq_base_swa", "rope.dimension_count_swa", "attention.key_length_swa"}) {
      if (file_.numbers.count(key) == 0) continue;
      fail(
          "rotary::from_gguf: \"%s\" is there; it must be absent where attention.sliding_window is absent or 0. "
          "Correct the file.",
          printable(file_.full(key)).c_str());
    }
  }

  void rest(layer_rope& layer) const {
    layer.rotary_dim = 0;
    layer.scaling = none{};
    layer.mrope = std::nullopt;
    layer.softmax_scale_multiplier = 1.0;
    // What was noted of a layer that rotates is true no more.
    const std::string architecture = "architecture " + file_.architecture;
    for (origin& from : layer.origins) {
      if (from.field == "rotary_dim" || from.field == "scaling") from.source = architecture + ": does not rotate";
    }
    if (has(temperature_llama4)) {
      layer.query_temperature = query_temperature{query_temperature::rule::stepped, 0.1, 8192, 1};
      layer.origins.push_back({"query_temperature", architecture});
    }
  }

  bool same(const layer_rope& full, const layer_rope& sliding) const {
    return full.head_dim == sliding.head_dim && full.rotary_dim == sliding.rotary_dim &&
           full.rope_theta == sliding.rope_theta &&
           (!has(sliding_unscaled) || std::holds_alternative<none>(full.scaling));
  }

  // 0 for a layer of full attention, 1 for a sliding one; empty where the file does not tell.
  std::vector<std::size_t> layer_types() const {
    constexpr const char* key = "attention.sliding_window_pattern";
    const std::vector<std::size_t> pattern = file_.counts(key);
    const std::optional<std::size_t> blocks = file_.count("block_count");
    if (file_.arrays.count(key) != 0) {
      for (std::size_t i = 0; i < pattern.size(); ++i) {
        const std::string entry = std::string(key) + "[" + std::to_string(i) + "]";
        if (pattern[i] > 1) {
          file_.refuse(entry.c_str(), static_cast<double>(pattern[i]), "1 for a sliding layer, else 0");
        }
      }
      if (blocks && pattern.size() != *blocks) {
        fail("rotary::from_gguf: \"%s\" is an array of %zu; it must have %zu, block_count. Correct the file.",
             printable(file_.full(key)).c_str(), pattern.size(), *blocks);
      }
      return pattern;
    }
    if (!pattern.empty() && architecture_.period == 0) {
      file_.refuse(key, static_cast<double>(pattern[0]), "an array of a flag for each layer with this architecture");
    }
    if (!blocks || architecture_.period == 0) return {};
    const std::size_t period = pattern.empty() ? architecture_.period : pattern[0];
    std::vector<std::size_t> types(*blocks, 1);
    for (std::size_t i = has(full_first) || period == 0 ? 0 : period - 1; period != 0 && i < *blocks; i += period) {
      types[i] = 0;
    }
    return types;
  }

  layer_rope layer(bool sliding) const {
    layer_rope layer;
    layer.pairing = architecture_.pairing;
    layer.origins.push_back(
        {"pairing", stated_ ? std::string("stated by the caller") : "architecture " + file_.architecture});
    set_dimensions(layer, sliding);
    set_theta(layer, sliding);
    set_sections(layer);
    if (sliding && has(sliding_unscaled)) {
      layer.origins.push_back({"scaling", "architecture " + file_.architecture + ": none in sliding layers"});
    } else {
      layer.scaling = scaling_.policy(layer.head_dim, layer.rotary_dim);
      layer.softmax_scale_multiplier = scaling_.softmax_multiplier();
      layer.origins.push_back({"scaling", scaling_.source()});
      if (layer.softmax_scale_multiplier != 1.0) {
        layer.origins.push_back({"softmax_scale_multiplier", scaling_.softmax_source()});
      }
    }
    set_temperature(layer);
    return layer;
  }

  // The key for this kind of layer, else the one for all.
  const char* first_given(const char* of_sliding, const char* of_all, bool sliding) const {
    return sliding && file_.numbers.count(of_sliding) != 0 ? of_sliding : of_all;
  }

  void set_dimensions(layer_rope& layer, bool sliding) const {
    const char* const rotated_key = first_given("rope.dimension_count_swa", "rope.dimension_count", sliding);
    const std::optional<std::size_t> rotated = file_.count(rotated_key);
    if (has(rotated_part_alone)) {
      if (!rotated) {
        fail(
            "rotary::from_gguf: \"%s\" is missing; it must be the number of rotated channels of a head. Correct the "
            "file.",
            printable(file_.full(rotated_key)).c_str());
      }
      layer.head_dim = *rotated;
      layer.origins.push_back({"head_dim", file_.full(rotated_key) + ", the rotated part of a head"});
    } else {
      set_head_dim(layer, sliding);
    }
    layer.rotary_dim = rotated.value_or(layer.head_dim);
    if (rotated && (*rotated % 2 != 0 || *rotated > layer.head_dim)) {
      fail(
          "rotary::from_gguf: \"%s\" is %zu; it must be even and at most %zu, the channels of a head. Correct the "
          "file.",
          printable(file_.full(rotated_key)).c_str(), *rotated, layer.head_dim);
    }
    layer.origins.push_back({"rotary_dim", rotated ? file_.full(rotated_key) : "head_dim"});
  }

  void set_head_dim(layer_rope& layer, bool sliding) const {
    const char* const key = first_given("attention.key_length_swa", "attention.key_length", sliding);
    if (const std::optional<std::size_t> stated = file_.count(key)) {
      layer.head_dim = *stated;
      layer.origins.push_back({"head_dim", file_.full(key)});
      return;
    }
    const std::optional<std::size_t> width = file_.count("embedding_length");
    const std::vector<std::size_t> heads = file_.counts("attention.head_count");
    bool divides = width && !heads.empty() && heads[0] != 0 && *width % heads[0] == 0;
    for (const std::size_t of_layer : heads) divides = divides && of_layer == heads[0];
    if (!divides) {
      fail(
          "rotary::from_gguf: \"%s\" is missing; it must be the number of channels of a head, as embedding_length / "
          "attention.head_count is no one whole number. Correct the file.",
          printable(file_.full(key)).c_str());
    }
    layer.head_dim = *width / heads[0];
    layer.origins.push_back({"head_dim", file_.full("embedding_length") + " / attention.head_count"});
  }

  void set_theta(layer_rope& layer, bool sliding) const {
    const char* const key = first_given("rope.freq_base_swa", "rope.freq_base", sliding);
    const bool by_architecture = sliding && has(sliding_10000) && file_.numbers.count("rope.freq_base_swa") == 0;
    const std::optional<double> stated = by_architecture ? std::nullopt : file_.finite(key);
    layer.rope_theta = stated.value_or(10000.0);
    if (layer.rope_theta <= 0.0) file_.refuse(key, layer.rope_theta, "greater than 0");
    layer.origins.push_back({"rope_theta", stated ? file_.full(key) : "default: 10000"});
  }

  void set_sections(layer_rope& layer) const {
    constexpr const char* key = "rope.dimension_sections";
    std::vector<std::size_t> sections = file_.counts(key);
    while (!sections.empty() && sections.back() == 0) sections.pop_back();
    const gguf_axes axes = architecture_.axes;
    if (sections.empty() && (axes == gguf_axes::one || axes == gguf_axes::chunked_if_stated)) return;
    const std::size_t most = axes == gguf_axes::one ? 0 : axes == gguf_axes::interleaved ? 3 : 4;
    if (sections.empty() || sections.size() > most) {
      fail(
          "rotary::from_gguf: \"%s\" has %zu numbers that are not 0 at the end; architecture %s must have %s %zu. "
          "Correct the file.",
          printable(file_.full(key)).c_str(), sections.size(), printable(file_.architecture).c_str(),
          most == 0 ? "exactly" : "1 to", most);
    }
    std::size_t sum = 0;  // of at most 4 counts
    for (const std::size_t section : sections) sum += section;
    if (sum != layer.rotary_dim / 2) {
      fail("rotary::from_gguf: the sum of \"%s\" is %zu; it must be %zu, half of the rotated channels. Correct either.",
           printable(file_.full(key)).c_str(), sum, layer.rotary_dim / 2);
    }
    if (axes == gguf_axes::chunked_if_stated && !stated_) layer.pairing = pairing::split_half;
    layer.mrope =
        mrope{std::move(sections), axes == gguf_axes::interleaved ? mrope_layout::interleaved : mrope_layout::chunked};
    layer.origins.push_back({"mrope", file_.full(key)});
  }

  // Ministral's llama_4_scaling_beta.
  void set_temperature(layer_rope& layer) const {
    const double scale = file_.finite("attention.temperature_scale").value_or(0.0);
    if (scale == 0.0) return;
    const char* const own = "attention.temperature_length";
    const char* const key = file_.numbers.count(own) != 0 ? own : "rope.scaling.original_context_length";
    const std::optional<std::int64_t> length = file_.length(key);
    if (length.value_or(0) < 1) {
      fail(
          "rotary::from_gguf: \"%s\" is missing or 0; it must be the length that attention.temperature_scale %.9g goes "
          "with. Correct the file.",
          printable(file_.full(key)).c_str(), scale);
    }
    layer.query_temperature = query_temperature{query_temperature::rule::stepped, scale, *length, 0};
    layer.origins.push_back({"query_temperature", file_.full("attention.temperature_scale") + ", " + key});
  }

  const gguf_settings& file_;
  gguf_architecture architecture_;
  bool stated_;
  gguf_scaling scaling_;
};

}  // namespace detail
}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
