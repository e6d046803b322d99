// From what the user points at to a rope.
#ifndef ROTARY_EXAMPLES_INSPECT_MODEL_HPP
#define ROTARY_EXAMPLES_INSPECT_MODEL_HPP

#include <optional>
#include <rotary/rope.hpp>
#include <string>
#include <vector>

namespace inspect {

/// What the user knows and the files or the library do not.
struct reader_options {
  std::optional<rotary::pairing> pairing = std::nullopt;
  std::vector<std::string> ignored_keys = {};  ///< of config.json
};

/// `path` is a GGUF file, a config.json, a directory that holds a config.json, or a pipe that a config.json comes out
/// of. Throws std::runtime_error that starts
/// with the path and names the options of this program that would help.
rotary::rope read_model(const std::string& path, const reader_options& options);

}  // namespace inspect

#endif
