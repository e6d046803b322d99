// The bytes of a GGUF file whose keys and tensors are given as in tests/data/golden/configs/gguf.json.
#ifndef ROTARY_TESTS_GGUF_FROM_JSON_HPP
#define ROTARY_TESTS_GGUF_FROM_JSON_HPP

#include <nlohmann/json.hpp>

#include "gguf_writer.hpp"

namespace gguf_writer {

inline bytes from_json(const nlohmann::json& values, const nlohmann::json& tensors, bool big) {
  file out(big);
  for (const auto& entry : values.items()) {
    const nlohmann::json& value = entry.value();
    if (value.is_string()) {
      out.key(entry.key(), type_string).text(value);
    } else if (value.is_boolean()) {
      out.key(entry.key(), type_bool).number(value.get<bool>() ? 1 : 0, 1);
    } else if (value.is_number_integer()) {
      out.key(entry.key(), type_u32).number(value.get<std::uint32_t>(), 4);
    } else if (value.is_number()) {
      out.key(entry.key(), type_f32).float32(value.get<float>());
    } else {
      out.key(entry.key(), type_array).array(type_i32, value.size());
      for (const nlohmann::json& element : value) out.number(element.get<std::uint32_t>(), 4);
    }
  }
  for (const auto& entry : tensors.items()) out.f32_tensor(entry.key(), entry.value());
  return out.all();
}

}  // namespace gguf_writer

#endif
