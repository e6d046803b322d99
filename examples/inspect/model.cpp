#include "model.hpp"

#include <array>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include "readers.hpp"

namespace inspect {
namespace {

bool is_gguf(const std::filesystem::path& path) {
  std::array<char, 4> magic{};
  std::ifstream(path, std::ios::binary).read(magic.data(), magic.size());
  return std::memcmp(magic.data(), "GGUF", magic.size()) == 0 || path.extension() == ".gguf";
}

rotary::rope read_file(const std::filesystem::path& path, const reader_options& options) {
  return is_gguf(path) ? read_gguf(path.string(), options) : read_config(path.string(), options);
}

/// The library's texts name the arguments of its functions.
std::string in_words_of_the_command_line(std::string text) {
  const auto contains = [&](const char* part) { return text.find(part) != std::string::npos; };
  if (contains("huggingface_options::pairing") || contains("Pass the pairing")) {
    text += " Here: --pairing split_half, or --pairing interleaved.";
  }
  if (contains("ignored_keys")) text += " Here: --ignore-key <key>.";
  return text;
}

}  // namespace

rotary::rope read_model(const std::string& path, const reader_options& options) {
  std::filesystem::path file = path;
  if (std::filesystem::is_directory(file)) file /= "config.json";
  if (!std::filesystem::exists(file)) {
    throw std::runtime_error(file.string() + ": there is no such file. Give a config.json, a directory that holds " +
                             "one, or a GGUF file.");
  }
  try {
    return read_file(file, options);
  } catch (const std::exception& refused) {
    throw std::runtime_error(file.string() + ": " + in_words_of_the_command_line(refused.what()));
  }
}

}  // namespace inspect
