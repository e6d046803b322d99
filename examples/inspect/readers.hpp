// The library's readers, each compiled in a file of its own. All throw rotary::error.
#ifndef ROTARY_EXAMPLES_INSPECT_READERS_HPP
#define ROTARY_EXAMPLES_INSPECT_READERS_HPP

#include <string>

#include "model.hpp"

namespace inspect {

rotary::rope read_config(const std::string& path, const reader_options& options);
rotary::rope read_config_text(const std::string& text, const reader_options& options);
rotary::rope read_gguf(const std::string& path, const reader_options& options);

}  // namespace inspect

#endif
