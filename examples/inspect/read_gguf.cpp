#include <rotary/gguf.hpp>

#include "readers.hpp"

namespace inspect {

rotary::rope read_gguf(const std::string& path, const reader_options& options) {
  return rotary::from_gguf_file(path.c_str(), options.pairing);
}

}  // namespace inspect
