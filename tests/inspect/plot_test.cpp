// Pictures, where Python has matplotlib.
#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>
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

// Of a file the limit stops the picture half-way, as a full disk would.
TEST(Plot, WhatStoodThereStaysWhereThePictureCannotBeWritten) {
  for (const char* const name : {"old.png", "old.svg"}) {
    const scratch files;
    const std::string path = files.file(name, std::string("an older picture"));
    expect_refused(config_file("llama-3-8b") + " --plot " + path, {"was not drawn"},
                   "ulimit -f 16; trap '' XFSZ; " + python);
    EXPECT_EQ(contents(path), "an older picture");
    const std::filesystem::directory_iterator all(std::filesystem::path(path).parent_path());
    EXPECT_EQ(std::distance(begin(all), end(all)), 1) << "nothing half-written is left";
    EXPECT_EQ(run(config_file("llama-3-8b") + " --plot " + path, python).status, 0);
    EXPECT_GT(contents(path).size(), 20000u);
  }
}

TEST(Plot, SaysWhatToInstallWhereThatIsMissingAlone) {
  const scratch files;
  files.file("matplotlib.py", std::string("raise ImportError('none here')"));
  const std::string to_picture = config_file("llama-3-8b") + " --plot ";
  expect_refused(to_picture + files / "x.svg", {"none here for ", "was not drawn", "python3-matplotlib"},
                 "PYTHONPATH=" + files / "" + " " + python);
  const auto got = run(to_picture + "/nowhere/x.svg", python);
  EXPECT_EQ(got.err.find("matplotlib"), std::string::npos) << got.err;
}

TEST(Plot, SaysWhyThereIsNone) {
  const scratch files;
  const std::string config = R"({"model_type": "llama", "head_dim": 8, "rope_theta": 10000.0})";
  expect_refused(files.file("config.json", config) + " --plot " + files / "x.svg", {"--context", "was not drawn"},
                 python);
  expect_refused(config_file("llama-3-8b") + " --plot /nowhere/x.png", {"/nowhere/x.png", "was not drawn"}, python);
}

}  // namespace
