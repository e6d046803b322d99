#include "model.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
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

/// What comes out of a pipe, which can be read only once. Waits for its writer, but not for one to appear.
std::string read_pipe(const std::filesystem::path& path) {
  constexpr std::size_t most = std::size_t{1} << 24;
  const int pipe = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (pipe < 0 || ::fcntl(pipe, F_SETFL, 0) != 0) throw std::runtime_error("it cannot be opened. Check permissions.");
  std::string text;
  std::array<char, 65536> part;
  ssize_t size = 0;
  do {
    size = ::read(pipe, part.data(), part.size());
    if (size > 0) text.append(part.data(), static_cast<std::size_t>(size));
  } while (size > 0 && text.size() <= most && text.compare(0, 4, "GGUF") != 0);
  ::close(pipe);
  if (size < 0) throw std::runtime_error("it cannot be read: " + std::string(std::strerror(errno)) + ".");
  if (text.compare(0, 4, "GGUF") == 0) {
    throw std::runtime_error("a GGUF file comes out of this pipe; it must be mapped, so save it on disk first.");
  }
  if (text.empty()) throw std::runtime_error("it is empty: nothing was written into it.");
  if (text.size() > most) throw std::runtime_error("more than 16 MiB come out of it; this is no config.json.");
  return text;
}

rotary::rope read_file(const std::filesystem::path& path, const reader_options& options) {
  if (!std::filesystem::is_regular_file(path)) return read_config_text(read_pipe(path), options);
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
