// The keys of a GGUF file that matter to rotation, fetched from any lookup, and typed access to them.
#ifndef ROTARY_DETAIL_GGUF_SETTINGS_HPP
#define ROTARY_DETAIL_GGUF_SETTINGS_HPP

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "../rope.hpp"
#include "gguf_cursor.hpp"

namespace rotary {
inline namespace ROTARY_ABI {
namespace detail {

constexpr const char* gguf_scaling_type = "rope.scaling.type";

// Behind "{architecture}.". Any other key behind "{architecture}.rope." is refused.
constexpr const char* gguf_rope_keys[] = {"rope.dimension_count",
                                          "rope.dimension_count_swa",
                                          "rope.dimension_sections",
                                          "rope.freq_base",
                                          "rope.freq_base_swa",
                                          "rope.scale_linear",
                                          "rope.scaling.alpha",
                                          "rope.scaling.attn_factor",
                                          "rope.scaling.factor",
                                          "rope.scaling.finetuned",
                                          "rope.scaling.original_context_length",
                                          "rope.scaling.yarn_attn_factor",
                                          "rope.scaling.yarn_beta_fast",
                                          "rope.scaling.yarn_beta_slow",
                                          "rope.scaling.yarn_ext_factor",
                                          "rope.scaling.yarn_log_multiplier"};
constexpr const char* gguf_other_keys[] = {"attention.head_count",
                                           "attention.key_length",
                                           "attention.key_length_swa",
                                           "attention.sliding_window",
                                           "attention.temperature_length",
                                           "attention.temperature_scale",
                                           "block_count",
                                           "context_length",
                                           "embedding_length",
                                           "attention.sliding_window_pattern"};
// Of these the value may be an array, or booleans; of all others it is one number.
constexpr const char* gguf_list_keys[] = {"attention.head_count", "attention.sliding_window_pattern",
                                          "rope.dimension_sections", "rope.scaling.finetuned"};
// Keys elsewhere that change the rotation in ways that this library does not know.
constexpr const char* gguf_refused_keys[] = {"attention.compress_rope_freq_base", "attention.rope_pattern"};
constexpr const char* gguf_tensors[] = {"rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight"};

/// Keys without "{architecture}.", as the file has them.
struct gguf_settings {
  std::string architecture;
  std::map<std::string, std::vector<double>> numbers;  ///< of a number or boolean one entry
  std::set<std::string> arrays;                        ///< the keys of `numbers` whose value is an array, even of one
  std::map<std::string, std::vector<double>> tensors;
  std::optional<std::string> scaling_type;

  /// "llama.rope.freq_base" of "rope.freq_base"
  std::string full(const char* key) const { return architecture + "." + key; }

  /// Throws error where the key has an array.
  std::optional<double> number(const char* key) const {
    const auto found = numbers.find(key);
    if (found == numbers.end()) return std::nullopt;
    if (arrays.count(key) != 0 || found->second.size() != 1) {
      fail("rotary::from_gguf: \"%s\" is an array of %zu; it must be one number. Correct the file.",
           printable(full(key)).c_str(), found->second.size());
    }
    return found->second[0];
  }

  /// Throws error unless it is an integer from `least` to `most`.
  std::optional<std::int64_t> integer(const char* key, std::int64_t least, std::int64_t most) const {
    const std::optional<double> value = number(key);
    if (value) require_integer(key, *value, least, most);
    return value ? std::optional<std::int64_t>(static_cast<std::int64_t>(*value)) : std::nullopt;
  }
  /// A number of channels or layers. The bound keeps a damaged file from asking for gigabytes of frequencies.
  std::optional<std::size_t> count(const char* key) const {
    const std::optional<std::int64_t> value = integer(key, 0, most_count);
    return value ? std::optional<std::size_t>(static_cast<std::size_t>(*value)) : std::nullopt;
  }
  /// A number of tokens.
  std::optional<std::int64_t> length(const char* key) const { return integer(key, 0, std::int64_t{1} << 53); }

  /// Throws error unless all of them are counts; empty where there is no such key.
  std::vector<std::size_t> counts(const char* key) const {
    std::vector<std::size_t> result;
    const auto found = numbers.find(key);
    if (found == numbers.end()) return result;
    for (std::size_t i = 0; i < found->second.size(); ++i) {
      const std::string entry = arrays.count(key) == 0 ? key : std::string(key) + "[" + std::to_string(i) + "]";
      require_integer(entry.c_str(), found->second[i], 0, most_count);
      result.push_back(static_cast<std::size_t>(found->second[i]));
    }
    return result;
  }

  /// Throws error unless it is finite, and moderate in size.
  std::optional<double> finite(const char* key) const {
    const std::optional<double> value = number(key);
    if (!value || is_moderate(*value)) return value;
    refuse(key, *value, is_finite(*value) ? moderate_range : "finite");
  }

  [[noreturn]] void refuse(const char* key, double value, const char* range) const {
    fail("rotary::from_gguf: \"%s\" is %.9g; it must be %s. Correct the file.", printable(full(key)).c_str(), value,
         range);
  }

 private:
  static constexpr std::int64_t most_count = 65536;

  void require_integer(const char* key, double value, std::int64_t least, std::int64_t most) const {
    if (is_finite(value) && value >= static_cast<double>(least) && value <= static_cast<double>(most) &&
        floor(value) == value) {
      return;
    }
    fail("rotary::from_gguf: \"%s\" is %.9g; it must be an integer from %lld to %lld. Correct the file.",
         printable(full(key)).c_str(), value, static_cast<long long>(least), static_cast<long long>(most));
  }
};

inline bool gguf_key_is_known(const std::string& key) {
  for (const char* const known : gguf_rope_keys) {
    if (key == known) return true;
  }
  return key == gguf_scaling_type;
}

/// Whether `key`, with "{architecture}.", is one of gguf_list_keys.
inline bool gguf_key_may_be_list(const std::string& key) {
  for (const char* const name : gguf_list_keys) {
    const std::string end = std::string(".") + name;
    if (key.size() > end.size() && key.compare(key.size() - end.size(), end.size(), end) == 0) return true;
  }
  return false;
}

/// Throws error on a key that this library does not honour.
template <class Lookup>
void require_known_keys(const Lookup& file, const std::string& architecture) {
  const std::string prefix = architecture + ".";
  for (const auto& name : file.keys()) {
    const std::string key(name);
    if (key.compare(0, prefix.size(), prefix) != 0) continue;
    const std::string rest = key.substr(prefix.size());
    bool refused = rest.compare(0, 5, "rope.") == 0 && !gguf_key_is_known(rest);
    for (const char* const known : gguf_refused_keys) refused = refused || rest == known;
    if (refused) {
      fail(
          "rotary::from_gguf: \"%s\" is not known; the rotation would ignore it. Make a rotary::rope by hand for this "
          "model.",
          printable(key).c_str());
    }
  }
}

/// Throws error on a tensor that by its name changes the rotation and that this library does not honour. llama.cpp has
/// the three of gguf_tensors, for all layers, and blk.N.attn_rot_embd, a checkpoint's own inverse frequencies, which it
/// does not read; other writers have blk.N.rope_freqs.weight.
template <class Lookup>
void require_known_tensors(const Lookup& file) {
  for (const auto& tensor : file.tensor_names()) {
    const std::string name(tensor);
    bool refused = false;
    for (const char* const part : {"rope_freqs", "rope_factors", "rot_embd"}) {
      refused = refused || name.find(part) != std::string::npos;
    }
    for (const char* const known : gguf_tensors) refused = refused && name != known;
    if (refused) {
      fail(
          "rotary::from_gguf: tensor \"%s\" is not known; the rotation would ignore it. Make a rotary::rope by hand "
          "for this model.",
          printable(name).c_str());
    }
  }
}

template <class Lookup>
gguf_settings read_gguf_settings(const Lookup& file) {
  gguf_settings settings;
  const std::optional<std::string> architecture = file.string("general.architecture");
  if (!architecture || architecture->empty()) {
    fail("rotary::from_gguf: \"general.architecture\" is missing; it must name the kind of model. Correct the file.");
  }
  settings.architecture = *architecture;
  require_known_keys(file, settings.architecture);
  require_known_tensors(file);
  const auto read = [&](const char* key) {
    const std::string full = settings.full(key);
    if (auto numbers = file.numbers(full)) settings.numbers.emplace(key, std::move(*numbers));
    if (file.is_array(full)) settings.arrays.insert(key);
  };
  for (const char* const key : gguf_rope_keys) read(key);
  for (const char* const key : gguf_other_keys) read(key);
  settings.scaling_type = file.string(settings.full(gguf_scaling_type));
  for (const char* const name : gguf_tensors) {
    if (auto numbers = file.tensor(name)) settings.tensors.emplace(name, std::move(*numbers));
  }
  return settings;
}

}  // namespace detail
}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
