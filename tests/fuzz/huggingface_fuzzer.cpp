// Any text as a config.json: it must be resolved to a rope that can be used, or refused by rotary::error.
#include <rotary/huggingface.hpp>
#include <rotary/rope_summary.hpp>

#include "refuse_or_run.hpp"

namespace {

// What the reader let through must work at any length.
void use(const rotary::rope& rope) {
  for (const rotary::layer_rope& type : rope.types) {
    type.spectrum(1);
    type.spectrum(1000000);
    type.axes();
    if (type.query_temperature) type.query_temperature->multiplier(1000000);
  }
  if (!rope.type_of_layer.empty()) rope.layer(rope.type_of_layer.size() - 1);
  rotary::summary(rope);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  refuse_or_run([&] { use(rotary::from_huggingface_text(text)); });
  rotary::huggingface_options options;
  options.pairing = rotary::pairing::interleaved;
  options.ignored_keys = {"made_up", "rope_theta", "beta_fast"};
  refuse_or_run([&] { use(rotary::from_huggingface_text(text, options)); });
  return 0;
}
