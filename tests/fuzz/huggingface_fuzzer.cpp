// Any text as a config.json: it must be resolved to a rope that can be used, or refused by rotary::error.
#include <rotary/huggingface.hpp>
#include <rotary/rope_summary.hpp>

#include "refuse_or_run.hpp"

namespace {

void use_and_print(const rotary::rope& rope) {
  use(rope);
  rotary::summary(rope);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  refuse_or_run([&] { use_and_print(rotary::from_huggingface_text(text)); });
  rotary::huggingface_options options;
  options.pairing = rotary::pairing::interleaved;
  options.ignored_keys = {"made_up", "rope_theta", "beta_fast"};
  refuse_or_run([&] { use_and_print(rotary::from_huggingface_text(text, options)); });
  return 0;
}
