// Running rotary-inspect as a user does.
#ifndef ROTARY_TESTS_INSPECT_TOOL_HPP
#define ROTARY_TESTS_INSPECT_TOOL_HPP

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>

namespace tool {

struct result {
  int status;
  std::string out, err;
};

/// A new directory, gone when its owner is.
class scratch {
 public:
  scratch() {
    std::string name = (std::filesystem::temp_directory_path() / "rotary-inspect.XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("cannot make " + name);
    path_ = name;
  }
  ~scratch() { std::filesystem::remove_all(path_); }
  scratch(const scratch&) = delete;
  scratch& operator=(const scratch&) = delete;

  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  /// Makes a file of `bytes` and returns its path.
  template <class Bytes>
  std::string file(const std::string& name, const Bytes& bytes) const {
    std::ofstream(path_ / name, std::ios::binary)
        .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return *this / name;
  }

 private:
  std::filesystem::path path_;
};

inline std::string contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw std::runtime_error("cannot open " + path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

/// `arguments` as one writes them in a shell; `environment` too, "PATH=/nowhere".
inline result run(const std::string& arguments, const std::string& environment = "") {
  const scratch files;
  const std::string command = environment + " '" + ROTARY_INSPECT + "' " + arguments + " >" + files / "out" + " 2>" +
                              files / "err" + " </dev/null";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, contents(files / "out"), contents(files / "err")};
}

/// What it prints as JSON.
inline nlohmann::json json_of(const std::string& arguments) {
  const result got = run("--json " + arguments);
  if (got.status != 0) throw std::runtime_error("rotary-inspect --json " + arguments + ": " + got.err);
  return nlohmann::json::parse(got.out);
}

/// It must end with status 2, say every one of `parts` on stderr, and nothing on stdout.
inline void expect_refused(const std::string& arguments, std::initializer_list<const char*> parts,
                           const std::string& environment = "") {
  SCOPED_TRACE(arguments);
  const result got = run(arguments, environment);
  EXPECT_EQ(got.status, 2);
  EXPECT_EQ(got.out, "");
  for (const char* part : parts) {
    EXPECT_NE(got.err.find(part), std::string::npos) << "no \"" << part << "\" in: " << got.err;
  }
}

/// A recorded config.json.
inline std::string config_file(const std::string& name) {
  const char* directory = std::getenv("ROTARY_GOLDEN_DIR");
  return std::string(directory != nullptr ? directory : ROTARY_GOLDEN_DIR_DEFAULT) + "/configs/files/" + name + ".json";
}

}  // namespace tool

#endif
