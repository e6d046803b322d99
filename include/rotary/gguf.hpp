// What a GGUF file says of its model's rotary position embedding, resolved. Not included by rotary.hpp: it needs the
// standard library's containers.
//
//     const rotary::rope rope = rotary::from_gguf_file("model.gguf");
//     const rotary::table<float> table(rope.spectrum(), tokens);
//     rotary::rotate(rotary::bshd(q, 1, tokens, 32, 128), table, 0, rope.layout());
//
// The rows of q and k in files of the Llama family are permuted, so rope.layout() is interleaved where the checkpoint
// it was made from is split_half: see docs/gguf.md.
#ifndef ROTARY_GGUF_HPP
#define ROTARY_GGUF_HPP

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "detail/gguf_resolver.hpp"
#include "gguf_file.hpp"
#include "rope.hpp"

namespace rotary {
inline namespace ROTARY_ABI {

/// How from_gguf asks for keys, here of gguf_views, which must outlive it. An engine that has its own reader, or has
/// loaded the file through llama.cpp, passes an object with the same six const members instead.
class gguf_lookup {
 public:
  explicit gguf_lookup(const gguf_view& file) : parts_{&file} {}
  /// Of a model that is split into several files: all of them, the first one first.
  explicit gguf_lookup(std::vector<const gguf_view*> parts) : parts_(std::move(parts)) {
    if (parts_.empty())
      detail::fail("rotary::gguf_lookup: parts has 0 views; it must have at least 1. Pass the files.");
  }

  /// All keys of the file, so that one that is not known can be refused.
  std::vector<std::string> keys() const {
    std::vector<std::string> keys;
    for (const auto& entry : parts_[0]->values()) keys.emplace_back(entry.first);
    return keys;
  }
  /// The elements of an array of numbers or booleans, or a single one; none where there is no such key. To throw where
  /// the value is a string, and better also where it is an array or a boolean and must be one number, as here.
  std::optional<std::vector<double>> numbers(const std::string& key) const {
    const gguf_value* const value = parts_[0]->find(key);
    if (value == nullptr) return std::nullopt;
    if (!detail::gguf_key_may_be_list(key)) return std::vector<double>{value->as<double>()};
    std::vector<double> numbers;
    if (value->type() == gguf_type::array) {
      for (const gguf_value element : value->as<gguf_array>()) numbers.push_back(number(element));
    } else {
      numbers.push_back(number(*value));
    }
    return numbers;
  }
  /// Whether the key's value is an array: one of a single number does not mean what the number alone does.
  bool is_array(const std::string& key) const {
    const gguf_value* const value = parts_[0]->find(key);
    return value != nullptr && value->type() == gguf_type::array;
  }
  /// A string; none where there is no such key. To throw where the value is no string.
  std::optional<std::string> string(const std::string& key) const {
    const gguf_value* const value = parts_[0]->find(key);
    if (value == nullptr) return std::nullopt;
    return std::string(value->as<std::string_view>());
  }
  /// All tensors, so that one that bears on the rotation and is not known can be refused.
  std::vector<std::string> tensor_names() const {
    std::vector<std::string> names;
    for (const gguf_view* const part : parts_) {
      for (const auto& entry : part->tensors()) names.emplace_back(entry.first);
    }
    return names;
  }
  /// The elements of a tensor; none where there is no such tensor. The names asked for are rope_freqs.weight,
  /// rope_factors_long.weight and rope_factors_short.weight. Here it throws where the tensor may be in a part of the
  /// model that was not passed.
  std::optional<std::vector<double>> tensor(const std::string& name) const {
    std::size_t tensors = 0;
    for (const gguf_view* const part : parts_) {
      if (part->find_tensor(name) != nullptr) return part->tensor_numbers(name);
      tensors += part->tensors().size();
    }
    const gguf_value* const all = parts_[0]->find("split.tensors.count");
    if (all == nullptr || all->as<std::uint64_t>() <= tensors) return std::nullopt;
    detail::fail(
        "rotary::gguf_lookup: \"split.tensors.count\" is %llu, but the parts have %zu tensors; \"%s\" may be in "
        "another part. Pass the views of all parts.",
        static_cast<unsigned long long>(all->as<std::uint64_t>()), tensors, name.c_str());
  }

 private:
  static double number(const gguf_value& value) {
    return value.type() == gguf_type::boolean ? (value.as<bool>() ? 1.0 : 0.0) : value.as<double>();
  }

  std::vector<const gguf_view*> parts_;
};

/// The rotation that the keys {architecture}.rope.* and the tensors rope_freqs, rope_factors_long and
/// rope_factors_short of a GGUF file describe, read as llama.cpp reads them, and computed as the model was trained
/// where the two differ (docs/gguf.md). `file` has the members of gguf_lookup.
///
/// The file does not state the pairing: that of general.architecture is looked up in a table, unless the caller states
/// the one for which the rows of q and k are stored. Types of layers are "all", or "full_attention" and
/// "sliding_attention", or "nope" and "all".
///
/// Throws error, naming the key, the value and the range, for an architecture that is not in the table if no pairing is
/// stated, for keys behind rope. and tensors of frequencies that are not known (one for each layer, for example:
/// llama.cpp knows one for all), and for what no policy of this library expresses. The only key that is read over is
/// rope.scaling.finetuned, which changes no angle but in the Granite family.
template <class Lookup>
rope from_gguf(const Lookup& file, std::optional<pairing> stated = std::nullopt) {
  const detail::gguf_settings settings = detail::read_gguf_settings(file);
  return detail::gguf_resolver(settings, stated).resolve();
}
inline rope from_gguf(const gguf_view& file, std::optional<pairing> stated = std::nullopt) {
  return from_gguf(gguf_lookup(file), stated);
}
/// Of a file on disk. Also throws error if it cannot be read, is no whole GGUF file, or is part of a model that is
/// split into several, for which a gguf_lookup of all is needed.
inline rope from_gguf_file(const char* path, std::optional<pairing> stated = std::nullopt) {
  return from_gguf(gguf_file(path).view(), stated);
}

}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
