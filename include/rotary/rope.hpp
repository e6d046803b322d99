// What a model's files say of its rotary position embedding, resolved: readers (huggingface.hpp, gguf.hpp) make a
// `rope`, engines ask it for the spectrum and the layout of each layer. Not included by rotary.hpp: it needs the
// standard library's containers.
//
//     const rotary::rope rope = rotary::from_huggingface_file("model/config.json");
//     const rotary::table<float> table(rope.spectrum(), tokens);
//     rotary::rotate(rotary::bshd(q, 1, tokens, 32, 128), table, 0, rope.layout());
#ifndef ROTARY_ROPE_HPP
#define ROTARY_ROPE_HPP

#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "axes.hpp"
#include "layout.hpp"
#include "scaling.hpp"
#include "spectrum.hpp"

namespace rotary {
inline namespace ROTARY_ABI {

/// The policies that a model's files can name.
using scaling = std::variant<none, linear, ntk, ntk_fixed, ntk_mixed, dynamic_ntk, qwen_dynamic_ntk, yarn, longrope,
                             llama3, proportional, frequency_factors>;

/// Which of a token's positions each pair reads (M-RoPE), as a config says it; layer_rope::axes() makes the map.
enum class mrope_layout : unsigned char {
  chunked,                  ///< mrope_chunked: Qwen2-VL, GLM-4.1V; four sections in HunyuanVL
  interleaved,              ///< mrope_interleaved: Qwen3-VL
  height_width_alternating  ///< sections h, w, t: Ernie-4.5-VL
};
/// Sections count pairs and sum to rotary_dim / 2.
struct mrope {
  std::vector<std::size_t> section;
  mrope_layout layout = mrope_layout::chunked;
};

/// A multiplier of queries, after rotation, that grows with the token's position p.
struct query_temperature {
  enum class rule : unsigned char {
    stepped,  ///< 1 + scale * ln(1 + floor((p + first) / length)): Llama-4 (first 1), Ministral-3 (first 0)
    log_n     ///< max(1, ln(p + 1) / ln(length)): Qwen-1
  };
  rule how = rule::stepped;
  double scale = 0.0;       ///< of `stepped`
  std::int64_t length = 1;  ///< tokens; at least 1, for log_n at least 2
  std::int64_t first = 0;   ///< of `stepped`

  /// The multiplier for the query at `position` >= 0.
  double multiplier(std::int64_t position) const {
    const double p = static_cast<double>(position), n = static_cast<double>(length);
    if (how == rule::stepped) {
      return 1.0 + scale * detail::log(1.0 + detail::floor((p + static_cast<double>(first)) / n));
    }
    return position < length ? 1.0 : detail::log(p + 1.0) / detail::log(n);
  }
};

/// Where a value came from, for people who ask: {"rope_theta", "rope_parameters.rope_theta"}, {"head_dim", "hidden_size
/// / num_attention_heads"}, {"pairing", "model_type llama"}.
struct origin {
  std::string field;
  std::string source;
};

/// The rotation of one type of layer. A type with rotary_dim 0 does not rotate (NoPE): its spectrum has no pairs, and
/// rotate with it changes nothing.
struct layer_rope {
  std::string name = "all";  ///< "all", or the model's own word: "full_attention", "sliding_attention"
  std::size_t head_dim = 0;  ///< channels of a head as rotate sees it; of the rotated part alone under MLA
  std::size_t rotary_dim = 0;
  std::size_t offset = 0;  ///< first rotated channel of the head_dim
  rotary::pairing pairing = rotary::pairing::split_half;
  double rope_theta = 10000.0;
  rotary::scaling scaling = none{};
  std::optional<rotary::mrope> mrope = std::nullopt;  ///< none: one position a token
  double softmax_scale_multiplier = 1.0;              ///< of attention's 1/sqrt(head_dim): DeepSeek's mscale_all_dim
  std::optional<rotary::query_temperature> query_temperature = std::nullopt;
  std::vector<origin> origins = {};

  bool rotates() const noexcept { return rotary_dim != 0; }

  /// Whether the spectrum depends on the length of the sequence (dynamic NTK, LongRoPE).
  bool needs_sequence_length() const {
    return std::visit([](const auto& policy) { return depends_on_length<decltype(policy)>; }, scaling);
  }

  /// Throws error where needs_sequence_length(), and what the policy throws.
  rotary::spectrum spectrum() const {
    if (rotates() && needs_sequence_length()) {
      detail::fail(
          "rotary::layer_rope::spectrum: sequence_length is missing for layers \"%.80s\", whose scaling depends on it; "
          "give the number of tokens of the sequence to rotate.",
          name.c_str());
    }
    return spectrum(0);
  }
  /// sequence_length in tokens (largest position + 1); the result depends on it only where needs_sequence_length().
  rotary::spectrum spectrum(std::int64_t sequence_length) const {
    if (!rotates()) return make_spectrum(0, rope_theta);
    return std::visit(
        [&](const auto& policy) {
          if constexpr (depends_on_length<decltype(policy)>) {
            return make_spectrum(rotary_dim, rope_theta, policy, sequence_length);
          } else {
            return make_spectrum(rotary_dim, rope_theta, policy);
          }
        },
        scaling);
  }

  rotary::layout layout() const noexcept { return {pairing, offset}; }

  /// The axis of each pair; none where a token has one position. Throws error where the sections suit no map.
  std::optional<axis_map> axes() const {
    if (!mrope) return std::nullopt;
    const std::vector<std::size_t>& section = mrope->section;
    if (mrope->layout == mrope_layout::chunked) return mrope_chunked(section);
    if (mrope->layout == mrope_layout::interleaved) return mrope_interleaved(section);
    detail::require_sections("layer_rope::axes", section, 3);
    return height_width_alternating(section[0], section[1], section[2]);
  }

 private:
  template <class Policy>
  static constexpr bool depends_on_length =
      std::is_invocable_r_v<rotary::spectrum, Policy, std::size_t, double, std::int64_t>;
};

/// A model's layers. `types` has at least one entry; layer i is of types[type_of_layer[i]]. Where type_of_layer is
/// empty every layer is of the only type, or the files do not say of which one.
struct rope {
  std::string model_type;  ///< "llama"; in GGUF files the architecture
  std::vector<layer_rope> types;
  std::vector<std::size_t> type_of_layer = {};
  std::int64_t max_position_embeddings = 0;  ///< tokens; 0 where the files do not state it
  std::vector<origin> origins = {};
  /// Keys of the files, with their paths, that the caller said to ignore and that nothing here was read from. One that
  /// was named and is not listed had no effect: it is misspelt, absent from this model, or honoured.
  std::vector<std::string> ignored_keys = {};
  /// 0 where the files do not state it. Checkpoints may have more, of the same type, that predict further tokens.
  std::size_t number_of_layers = 0;

  /// Throws error if there is no such layer. Where type_of_layer is empty and there is one type, every index is of it:
  /// the files may not state the number of layers.
  const layer_rope& layer(std::size_t index = 0) const {
    if (type_of_layer.empty() && types.size() == 1) return types[0];
    if (index >= type_of_layer.size()) {
      detail::fail(
          "rotary::rope::layer: index is %zu; it must be below %zu, the number of layers that the model's files state. "
          "Choose one of the %zu types yourself where they state none.",
          index, type_of_layer.size(), types.size());
    }
    return types[type_of_layer[index]];
  }
  bool rotates(std::size_t index = 0) const { return layer(index).rotates(); }
  rotary::layout layout(std::size_t index = 0) const { return layer(index).layout(); }
  rotary::spectrum spectrum(std::size_t index = 0) const { return layer(index).spectrum(); }
  rotary::spectrum spectrum(std::size_t index, std::int64_t sequence_length) const {
    return layer(index).spectrum(sequence_length);
  }
};

namespace detail {

/// Whether a number of a model's files is 0 or has a magnitude from 1e-60 to 1e60. Those of models are far from either
/// end, and whatever the policies make of such numbers and of lengths up to 2^40 is finite, not 0 and not subnormal.
inline bool is_moderate(double value) {
  const double magnitude = value < 0.0 ? -value : value;
  return value == 0.0 || (is_finite(value) && magnitude >= 1e-60 && magnitude <= 1e60);
}
constexpr const char* moderate_range = "of a magnitude from 1e-60 to 1e60";

/// What readers call last: throws error naming `function` and the field unless the block lies in the head, the sections
/// cover the pairs, and the policy accepts its parameters at every length.
inline void require_consistent(const char* function, const layer_rope& layer) {
  if (layer.rotary_dim % 2 != 0) {
    fail("rotary::%s: rotary_dim is %zu; it must be even. Channels rotate in pairs.", function, layer.rotary_dim);
  }
  if (layer.rotary_dim > layer.head_dim || layer.offset > layer.head_dim - layer.rotary_dim) {
    fail("rotary::%s: rotary_dim is %zu at offset %zu; the block may reach head_dim = %zu. Correct either.", function,
         layer.rotary_dim, layer.offset, layer.head_dim);
  }
  if (const std::optional<axis_map> axes = layer.axes(); axes && axes->pairs() != layer.rotary_dim / 2) {
    fail("rotary::%s: the sum of mrope_section is %zu; it must be %zu, rotary_dim / 2. Correct either.", function,
         axes->pairs(), layer.rotary_dim / 2);
  }
  layer.spectrum(0);
  layer.spectrum(std::int64_t{1} << 40);
}

}  // namespace detail
}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
