#include <rotary/huggingface.hpp>

#include "readers.hpp"

namespace inspect {

rotary::rope read_config(const std::string& path, const reader_options& options) {
  return rotary::from_huggingface_file(path, {options.pairing, options.ignored_keys});
}

rotary::rope read_config_text(const std::string& text, const reader_options& options) {
  return rotary::from_huggingface_text(text, {options.pairing, options.ignored_keys});
}

}  // namespace inspect
