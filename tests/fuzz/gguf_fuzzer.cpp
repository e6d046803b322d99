// Any bytes as a GGUF file: whatever is read must lie inside them, and all else must be refused by rotary::error.
#include <rotary/gguf.hpp>

#include "refuse_or_run.hpp"

namespace {

// Everything that a value offers, so that the address sanitizer sees where it is read from.
unsigned long long sum_of(const rotary::gguf_value& value) {
  unsigned long long sum = 0;
  refuse_or_run([&] { sum += value.as<bool>() ? 1 : 0; });
  refuse_or_run([&] { sum += static_cast<unsigned long long>(value.as<std::int64_t>()); });
  refuse_or_run([&] { sum += value.as<double>() > 0.0 ? 1 : 0; });
  if (value.type() == rotary::gguf_type::string) {
    for (const char c : value.as<std::string_view>()) sum += static_cast<unsigned char>(c);
  }
  return sum;
}

unsigned long long sum_of(const rotary::gguf_view& view) {
  unsigned long long sum = 0;
  for (const auto& entry : view.values()) {
    if (entry.second.type() != rotary::gguf_type::array) {
      sum += sum_of(entry.second);
      continue;
    }
    for (const rotary::gguf_value element : entry.second.as<rotary::gguf_array>()) sum += sum_of(element);
  }
  for (const auto& entry : view.tensors()) {
    for (std::size_t i = 0; i < entry.second.bytes; ++i) sum += entry.second.data[i];
  }
  return sum;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  refuse_or_run([&] {
    const rotary::gguf_view view(data, size);
    volatile unsigned long long sum = sum_of(view);
    static_cast<void>(sum);
    refuse_or_run([&] { use(rotary::from_gguf(view)); });
    refuse_or_run([&] { use(rotary::from_gguf(view, rotary::pairing::interleaved)); });
  });
  return 0;
}
