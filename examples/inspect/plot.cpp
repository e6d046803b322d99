#include "plot.hpp"

#include <sys/wait.h>

#include <csignal>
#include <cstdio>
#include <filesystem>
#include <stdexcept>

namespace inspect {
namespace {

constexpr int not_found = 127;    // the shell's status where there is no script, and env's where there is no python3
constexpr int no_matplotlib = 3;  // the script's own

std::filesystem::path script_beside(const char* argv0) {
  std::error_code unknown;
  std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", unknown);
  if (unknown) self = argv0;
  return self.parent_path() / "rotary-inspect-plot";
}

/// For the shell, whatever the name holds.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) result += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return result + "'";
}

}  // namespace

void plot(const std::string& json, const std::string& output, const char* argv0) {
  const std::filesystem::path script = script_beside(argv0);
  const std::string path = output.rfind('-', 0) == 0 ? "./" + output : output;  // not an option of the script's
  std::signal(SIGPIPE, SIG_IGN);  // a script that ends early has said why; its status counts
  std::FILE* const pipe = popen((quoted(script.string()) + " " + quoted(path)).c_str(), "w");
  if (pipe == nullptr) throw std::runtime_error("--plot: cannot start a shell to run " + script.string() + ".");
  std::fwrite(json.data(), 1, json.size(), pipe);
  const int status = pclose(pipe);
  if (status == 0) return;
  std::string text = "--plot " + output + " was not drawn, as said above.";
  if (WIFEXITED(status) && (WEXITSTATUS(status) == not_found || WEXITSTATUS(status) == no_matplotlib)) {
    text +=
        " It needs a python3 with matplotlib (Debian: python3-matplotlib); with another Python, pipe --json into "
        "<python> " +
        script.string() + " " + path + ".";
  }
  throw std::runtime_error(text);
}

}  // namespace inspect
