// Pictures, where Python has matplotlib.
#include <gtest/gtest.h>

#include <string>

#include "tool.hpp"

namespace {

using tool::config_file;
using tool::contents;
using tool::expect_refused;
using tool::run;
using tool::scratch;

const std::string python = std::string("PATH=") + ROTARY_PLOT_PYTHON_DIRECTORY + ":$PATH";

TEST(Plot, SvgHasAllPanelsWithTheirUnits) {
  const scratch files;
  const std::string path = files / "it's a plot.svg";
  const auto got = run(config_file("gemma-3-12b") + " --context 200000 --plot \"" + path + "\"", python);
  ASSERT_EQ(got.status, 0) << got.err;
  const std::string svg = contents(path);
  for (const char* const part :
       {"<svg", "wavelength (tokens per turn)", "distance of query and key (tokens)", "position (tokens)",
        "largest error of an angle (radians)", "full_attention, linear scaling", "sliding_attention, no scaling",
        "original context: 128K", "context: 200,000"}) {
    EXPECT_NE(svg.find(part), std::string::npos) << part;
  }
}

TEST(Plot, PngOfTwoModels) {
  const scratch files;
  const std::string path = files / "two.png";
  const auto got =
      run(config_file("llama-3.1-8b") + " --compare " + config_file("llama-3-8b") + " --plot " + path, python);
  ASSERT_EQ(got.status, 0) << got.err;
  EXPECT_EQ(contents(path).substr(0, 8), "\x89PNG\r\n\x1a\n");
  EXPECT_NE(got.out.find("largest angle difference"), std::string::npos) << "the text is printed, too";
}

TEST(Plot, SaysWhyThereIsNone) {
  const scratch files;
  const std::string config = R"({"model_type": "llama", "head_dim": 8, "rope_theta": 10000.0})";
  expect_refused(files.file("config.json", config) + " --plot " + files / "x.svg", {"--context", "was not drawn"},
                 python);
  expect_refused(config_file("llama-3-8b") + " --plot /nowhere/x.png", {"/nowhere/x.png", "was not drawn"}, python);
}

}  // namespace
