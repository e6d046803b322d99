// rotary-inspect on every recorded config.json and GGUF file, on malformed ones, and what it works out from them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "../gguf_from_json.hpp"
#include "../golden.hpp"
#include "../policy_reference.hpp"
#include "tool.hpp"

namespace {

using nlohmann::json;
using tool::config_file;
using tool::expect_refused;
using tool::json_of;
using tool::run;
using tool::scratch;

const json& type_named(const json& model, const std::string& name) {
  for (const json& type : model.at("types")) {
    if (type.at("name") == name) return type;
  }
  EXPECT_EQ(model.at("types").size(), 1u) << "no type of layer is called " << name;
  return model.at("types").at(0);
}

// ---- what was resolved

// The context that a variant is of: "seq=65536", or "short" and "long", or any.
std::string context_of(const json& variant) {
  std::int64_t context = 1000;
  if (variant.contains("seq_len")) context = variant.at("seq_len");
  if (variant.contains("which")) {
    context = variant.at("original_max_position_embeddings").get<std::int64_t>() + (variant.at("which") == "long");
  }
  return " --context " + std::to_string(context);
}

void expect_parameters(const json& got, const json& variant) {
  static const std::set<std::string> not_parameters = {"policy",         "head_dim",        "rotary_dim", "base",
                                                       "which",          "factors",         "seq_len",    "mscale",
                                                       "mscale_all_dim", "attention_factor"};
  for (const auto& expected : variant.items()) {
    if (not_parameters.count(expected.key()) != 0) continue;
    ASSERT_TRUE(got.contains(expected.key())) << expected.key();
    EXPECT_EQ(got.at(expected.key()), expected.value()) << expected.key();
  }
  if (variant.contains("which")) {
    EXPECT_EQ(got.at(variant.at("which").get<std::string>() + "_factor"), variant.at("factors"));
  }
}

void expect_spectrum(const json& type, const json& variant, long double relative) {
  const reference::policy_result expected = reference::policy_spectrum(variant);
  ASSERT_EQ(type.at("inv_freq").size(), expected.inv_freq.size());
  for (std::size_t j = 0; j < expected.inv_freq.size(); ++j) {
    const long double exact = expected.inv_freq[j], got = type.at("inv_freq").at(j).get<double>();
    EXPECT_LE(std::fabs(got - exact), exact * relative) << "pair " << j;
    EXPECT_NEAR(type.at("wavelength").at(j).get<double>() * static_cast<double>(got / (2.0L * reference::pi)), 1.0,
                1e-15);
  }
  EXPECT_NEAR(type.at("attention_factor").get<double>(), static_cast<double>(expected.magnitude), 1e-15);
}

void expect_layout(const json& type, const json& variant, const json& expected) {
  EXPECT_EQ(type.at("head_dim"), variant.at("head_dim"));
  EXPECT_EQ(type.at("rotary_dim"), variant.at("rotary_dim"));
  EXPECT_EQ(type.at("offset"), 0);
  EXPECT_EQ(type.at("rope_theta"), variant.at("base"));
  EXPECT_EQ(type.at("pairing"), expected.at("pairing"));
  ASSERT_EQ(type.at("axes").is_null(), expected.at("mrope").is_null());
  if (type.at("axes").is_null()) return;
  EXPECT_EQ(type.at("axes").at("section"), expected.at("mrope").at("section"));
  EXPECT_EQ(type.at("axes").at("layout"), "interleaved");
  EXPECT_EQ(type.at("axes").at("count"), 3);
  std::map<int, std::size_t> pairs_of_axis;
  for (const json& axis : type.at("axes").at("axis_of_pair")) ++pairs_of_axis[axis.get<int>()];
  for (int axis = 0; axis < 3; ++axis) {
    EXPECT_EQ(pairs_of_axis[axis], expected.at("mrope").at("section").at(static_cast<std::size_t>(axis)));
  }
}

TEST(Configs, EveryRecordedFileResolvesAsExpected) {
  const json configs = golden::load("configs/configs");
  std::size_t variants = 0;
  for (const json& record : configs.at("records")) {
    const std::string name = record.at("name");
    for (const auto& item : record.at("expected").at("variants").items()) {
      SCOPED_TRACE(name + "/" + item.key());
      const std::string ignored = name == "syn-unknown-extra-keys" ? " --ignore-key made_up" : "";
      const json model = json_of(config_file(name) + context_of(item.value()) + ignored);
      const json& type = type_named(model, item.key());
      EXPECT_EQ(type.at("policy"), item.value().at("policy"));
      expect_parameters(type.at("parameters"), item.value());
      expect_layout(type, item.value(), record.at("expected"));
      expect_spectrum(type, item.value(), 1e-13L);
      ++variants;
    }
  }
  EXPECT_GE(variants, 42u);
}

// GGUF files hold theta and factors in float, and llama3's scaling as a divisor of each pair.
TEST(Gguf, EveryRecordedFileResolvesAsExpected) {
  const scratch files;
  std::size_t records = 0;
  const json models = golden::load("configs/gguf");
  for (const json& record : models.at("records")) {
    SCOPED_TRACE(record.at("name").get<std::string>());
    const std::string path =
        files.file("model.gguf", gguf_writer::from_json(record.at("kv"), record.at("tensors"), false));
    const json model = json_of(path);
    EXPECT_EQ(model.at("model_type"), record.at("architecture"));
    const json& variant = record.at("expected").at("variants").at("all");
    expect_layout(model.at("types").at(0), variant, record.at("expected"));
    expect_spectrum(model.at("types").at(0), variant, 0x1p-24L);
    ++records;
  }
  EXPECT_GE(records, 6u);
}

TEST(Configs, DeepSeeksSoftmaxScaleMultiplier) {
  const json type = json_of(config_file("deepseek-v2-lite")).at("types").at(0);
  const long double g = reference::yarn_g(40.0L, 0.707L);
  EXPECT_NEAR(type.at("softmax_scale_multiplier").get<double>(), static_cast<double>(g * g), 1e-15);
  EXPECT_EQ(json_of(config_file("llama-3.1-8b")).at("types").at(0).at("softmax_scale_multiplier"), 1.0);
}

TEST(Configs, OfADirectory) {
  const scratch files;
  files.file("config.json", tool::contents(config_file("stablelm-3b-4e1t")));
  EXPECT_EQ(json_of(files / "").at("types").at(0).at("rotary_dim"), 20);
  expect_refused("/", {"/config.json", "no such file", "GGUF"});
}

// ROTARY_INSPECT is called through `bash`, which has process substitution, and by `timeout`, which ends with 124.
tool::result run_in_bash(const std::string& script) {
  const scratch files;
  const std::string text = "inspect() { timeout 20 '" + std::string(ROTARY_INSPECT) + "' \"$@\"; }\n" + script;
  const std::string command =
      "bash '" + files.file("script", text) + "' >" + files / "out" + " 2>" + files / "err" + " </dev/null";
  const int status = std::system(command.c_str());
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, tool::contents(files / "out"), tool::contents(files / "err")};
}

TEST(Pipes, OutOfWhichAConfigComes) {
  const scratch files;
  const std::string config = config_file("llama-3.1-8b"), wanted = run(config).out, fifo = files / "fifo";
  ASSERT_NE(wanted.find("rope_theta: 500000"), std::string::npos);
  for (const std::string& script :
       {"cat " + config + " | inspect /dev/stdin", "inspect <(cat " + config + ")", "inspect /dev/stdin <" + config,
        "(head -c 300 " + config + "; sleep 0.2; tail -c +301 " + config + ") | inspect /dev/stdin",
        "mkfifo " + fifo + "; (cat " + config + " >" + fifo + ") & sleep 0.2; inspect " + fifo}) {
    SCOPED_TRACE(script);
    const tool::result got = run_in_bash(script);
    EXPECT_EQ(got.status, 0) << got.err;
    EXPECT_EQ(got.out, wanted);
  }
  const tool::result two = run_in_bash("inspect <(cat " + config + ") --compare <(cat " + config + ")");
  EXPECT_NE(two.out.find("all settings are the same"), std::string::npos) << two.err;
}

TEST(Pipes, ThatAreRefused) {
  const scratch files;
  const std::string fifo = files / "fifo";
  const std::map<std::string, const char*> said = {
      {"(printf GGUF; head -c 100000 /dev/zero) | inspect /dev/stdin", "/dev/stdin: a GGUF file comes out"},
      {"(printf GG; sleep 0.1; printf UF) | inspect /dev/stdin", "save it on disk"},
      {"inspect /dev/stdin", "/dev/stdin: it is empty"},
      {"mkfifo " + fifo + "; inspect " + fifo, "it is empty: nothing was written"},
      {"inspect /dev/zero", "/dev/zero: more than 16 MiB"},
      {"printf '{\"a\": ' | inspect /dev/stdin", "must be complete JSON"}};
  for (const auto& [script, text] : said) {
    SCOPED_TRACE(script);
    const tool::result got = run_in_bash(script);
    EXPECT_EQ(got.status, 2);
    EXPECT_EQ(got.out, "");
    EXPECT_NE(got.err.find(text), std::string::npos) << got.err;
  }
}

// Neither file has blocks on disk.
TEST(Configs, FilesTooLargeToBeOne) {
  const scratch files;
  const std::string path = files.file("model.safetensors", std::string());
  std::filesystem::resize_file(path, std::uintmax_t{3} << 30);
  expect_refused(path, {"a file of 3221225472 bytes", "at most 16777216"});
#ifndef ROTARY_TESTS_SANITIZED  // which needs terabytes of addresses
  expect_refused(path, {"its 3221225472 bytes must fit into the address space"}, "ulimit -v 2000000;");
#endif
}

TEST(Configs, NamesThatAreNotUtf8) {
  const scratch files;
  const std::string path = files.file("a\xff.json", tool::contents(config_file("stablelm-3b-4e1t")));
  EXPECT_EQ(json_of("'" + path + "'").at("types").at(0).at("rotary_dim"), 20);
}

TEST(Configs, OutputThatCannotBeWritten) {
  if (!std::filesystem::exists("/dev/full")) GTEST_SKIP() << "no /dev/full";
  for (const char* const how : {"", " --json"}) {
    const scratch files;
    const std::string command =
        std::string("'") + ROTARY_INSPECT + "' " + config_file("llama-3.1-8b") + how + " >/dev/full 2>" + files / "err";
    const int status = std::system(command.c_str());
    ASSERT_TRUE(WIFEXITED(status));
    EXPECT_EQ(WEXITSTATUS(status), 2);
    EXPECT_NE(tool::contents(files / "err").find("standard output could not be written"), std::string::npos);
  }
}

TEST(Configs, MalformedOnesAreRefusedByKey) {
  const std::map<std::string, const char*> key = {{"bad-deep-nesting", "x is"},
                                                  {"bad-head_dim-fraction", "head_dim"},
                                                  {"bad-heads-zero", "num_attention_heads"},
                                                  {"bad-json-nan", "rope_theta"},
                                                  {"bad-json-truncated", "rope_theta"},
                                                  {"bad-linear-no-factor", "rope_scaling.factor"},
                                                  {"bad-llama3-bands-swapped", "rope_scaling.high_freq_factor"},
                                                  {"bad-longrope-missing-long", "rope_scaling.long_factor"},
                                                  {"bad-longrope-string-entry", "rope_scaling.short_factor[7]"},
                                                  {"bad-mrope-negative", "rope_scaling.mrope_section[0]"},
                                                  {"bad-ntk-alpha-negative", "rope_scaling.alpha"},
                                                  {"bad-partial-above-one", "partial_rotary_factor"},
                                                  {"bad-rotary_dim-above-head_dim", "rotary_dim"},
                                                  {"bad-theta-array", "rope_theta"},
                                                  {"bad-theta-overflow", "rope_theta"},
                                                  {"bad-type-not-string", "rope_scaling.rope_type"},
                                                  {"bad-yarn-attention-negative", "rope_scaling.attention_factor"},
                                                  {"bad-yarn-factor-below-one", "rope_scaling.factor"}};
  const scratch files;
  const json malformed = golden::load("configs/malformed");
  EXPECT_EQ(malformed.at("records").size(), key.size());
  for (const json& record : malformed.at("records")) {
    const std::string name = record.at("name");
    const std::string path = files.file(name + ".json", record.at("text").get<std::string>());
    ASSERT_EQ(key.count(name), 1u) << name;
    expect_refused(path, {(": rotary::from_huggingface: " + std::string(key.at(name))).c_str(), path.c_str()});
  }
}

// ---- what is worked out

std::string region_of(const json& type, std::size_t j) { return type.at("region").at(j); }

// Llama 3.1 keeps wavelengths below original / high_freq_factor and divides those above original / low_freq_factor.
TEST(Regions, OfLlama3ByWavelength) {
  const json type = json_of(config_file("llama-3.2-3b")).at("types").at(0);
  std::map<std::string, int> counts;
  for (std::size_t j = 0; j < 64; ++j) {
    const long double wavelength = 2.0L * reference::pi * std::pow(500000.0L, static_cast<long double>(j) / 64.0L);
    const char* const expected = wavelength < 2048.0L ? "kept" : wavelength > 8192.0L ? "interpolated" : "blended";
    EXPECT_EQ(region_of(type, j), expected) << "pair " << j;
    ++counts[expected];
  }
  EXPECT_EQ(counts.size(), 3u);
}

// YaRN with its ends rounded outwards: the pairs that turn 32 times and once within the original context.
TEST(Regions, OfYarnByTheRamp) {
  const json type = json_of(config_file("qwen3-0.6b-yarn4")).at("types").at(0);
  const auto pair_that_turns = [](long double times) {
    return 64.0L * std::log(32768.0L / (2.0L * reference::pi * times)) / std::log(1000000.0L);
  };
  const long double low = std::floor(pair_that_turns(32.0L)), high = std::ceil(pair_that_turns(1.0L));
  for (std::size_t j = 0; j < 64; ++j) {
    const long double pair = static_cast<long double>(j);
    EXPECT_EQ(region_of(type, j), pair <= low ? "kept" : pair >= high ? "interpolated" : "blended") << "pair " << j;
  }
}

TEST(Regions, OfLinearAndNoScaling) {
  const json gemma = json_of(config_file("gemma-3-12b"));
  for (const std::size_t j : {0u, 77u, 127u}) {
    EXPECT_EQ(region_of(type_named(gemma, "full_attention"), j), "interpolated");
    EXPECT_EQ(region_of(type_named(gemma, "sliding_attention"), j), "kept");
  }
}

TEST(Regions, OfFactorsAndOfPairsAtRest) {
  const scratch files;
  const json keys = {{"general.architecture", "llama"},
                     {"llama.context_length", 4096},
                     {"llama.embedding_length", 64},
                     {"llama.attention.head_count", 8},
                     {"llama.rope.dimension_count", 8}};
  const json factors = {{"rope_freqs.weight", {1.0, 0.5, 3.0, 6.0}}};
  const json type = json_of(files.file("factors.gguf", gguf_writer::from_json(keys, factors, true))).at("types").at(0);
  EXPECT_EQ(type.at("region"), json({"kept", "faster", "blended", "interpolated"}));
  EXPECT_EQ(type.at("policy"), "frequency_factors");
  EXPECT_EQ(type.at("parameters").at("factors"), factors.at("rope_freqs.weight"));

  const json block = {{"rope_type", "proportional"}, {"partial_rotary_factor", 0.5}, {"rope_theta", 1e6}};
  const json config = {{"model_type", "llama"}, {"head_dim", 8}, {"rope_parameters", block}};
  const json resting = json_of(files.file("resting.json", config.dump())).at("types").at(0);
  EXPECT_EQ(resting.at("region"), json({"kept", "kept", "at_rest", "at_rest"}));
  EXPECT_TRUE(resting.at("wavelength").at(3).is_null());
}

// By looking at one position after the other: does a pair that made no whole turn go beyond where it has been?
std::int64_t known_positions_by_search(const json& type) {
  const std::int64_t original = type.at("original_context");
  const std::vector<double> unscaled = type.at("unscaled_inv_freq"), inv_freq = type.at("inv_freq");
  for (std::int64_t positions = original;; ++positions) {
    for (std::size_t j = 0; j < inv_freq.size(); ++j) {
      const double reached = static_cast<double>(original) * unscaled[j];
      const double angle = static_cast<double>(positions) * inv_freq[j];
      if (reached < 6.283185307179586 && angle > reached * (1.0 + 1e-9)) return positions - 1;
    }
  }
}

TEST(TrainedRange, PositionsWhoseAnglesAreKnown) {
  for (const char* const name : {"llama-3.1-8b", "qwen3-0.6b-yarn4", "mistral-7b-v0.1", "ministral-3-3b"}) {
    SCOPED_TRACE(name);
    const json type = json_of(config_file(name)).at("types").at(0);
    EXPECT_EQ(type.at("positions_of_known_angles"), known_positions_by_search(type));
  }
  const json llama = json_of(config_file("llama-3.1-8b")).at("types").at(0);
  EXPECT_EQ(llama.at("original_context"), 8192);
  EXPECT_EQ(llama.at("positions_of_known_angles"), 65536);
  const json hunyuan = json_of(config_file("hunyuan-a13b")).at("types").at(0);
  EXPECT_TRUE(hunyuan.at("original_context").is_null());
  EXPECT_TRUE(hunyuan.at("positions_of_known_angles").is_null());
}

void expect_said(const std::string& arguments, std::initializer_list<const char*> parts) {
  const std::string text = run(arguments).out;
  for (const char* const part : parts) EXPECT_NE(text.find(part), std::string::npos) << part << "\n" << text;
}

TEST(TrainedRange, IsSaidInWords) {
  expect_said(config_file("llama-3.1-8b") + " --context 200000",
              {"  trained range before scaling: positions 0 to 8191\n",
               "  range that the files promise (max_position_embeddings): positions 0 to 131071\n",
               "  no pair meets an angle from beyond its trained range at positions 0 to 65535\n",
               "  OUTSIDE of max_position_embeddings: positions 131072 to 199999\n",
               "  pairs: 0 to 28 kept, 29 to 34 blended, 35 to 63 interpolated\n"});
  expect_said(config_file("mistral-7b-v0.1"),
              {"  trained range (max_position_embeddings): positions 0 to 32767\n  pairs: 0 to 63 kept\n"});
  expect_said(config_file("gemma-3-12b"), {"  trained range before scaling: not stated\n"});
}

TEST(TrainedRange, OfConfigsThatStateNoLength) {
  const scratch files;
  const json config = {{"model_type", "llama"}, {"head_dim", 8}, {"rope_theta", 1e4}};
  const std::string path = files.file("config.json", config.dump());
  expect_said(path, {"\nlayers of type all\n", "  trained range (max_position_embeddings): not stated\n"});
  EXPECT_TRUE(json_of(path).at("context").is_null());
  EXPECT_EQ(json_of(path).at("types").at(0).at("curves").at("score"), json::array());
  expect_refused(path + " --compare " + path, {"--context is missing"});
}

TEST(Text, SaysWhichLayersDoNotRotate) {
  const scratch files;
  const json config = {{"model_type", "smollm3"},       {"hidden_size", 2048},     {"num_attention_heads", 16},
                       {"num_hidden_layers", 4},        {"rope_theta", 5000000.0}, {"max_position_embeddings", 65536},
                       {"no_rope_layers", {1, 1, 0, 1}}};
  const std::string path = files.file("config.json", config.dump());
  expect_said(path,
              {"layers of type nope: 2\n", "\nlayers of type nope: no rotation\n", "layers of type all: 0-1, 3\n"});
  const json nope = json_of(path + " --layer 2").at("types").at(0);
  EXPECT_EQ(nope.at("rotary_dim"), 0);
  EXPECT_EQ(nope.at("inv_freq"), json::array());
  EXPECT_TRUE(nope.at("rope_theta").is_null());
}

TEST(Text, NamesTheKeyOfEachValueAndListsEachPair) {
  expect_said(config_file("llama-3.1-8b"),
              {"head_dim: 128  [hidden_size / num_attention_heads]\n", "rope_theta: 500000  [rope_theta]\n",
               "pairing: split_half  [model_type llama]\n", "attention_factor (magnitude of cos and sin): 1\n",
               "     0          6.3  1.00000000e+00      1.0000  kept\n",
               "    63   20473564.1  3.06892599e-07      8.0000  interpolated\n"});
  expect_said(config_file("qwen3-vl-8b"), {"  pair  axis   wavelength", "\n     4     1 "});
}

// Where the first `columns` numbers of each line that starts with the number of a pair end; one set a line.
std::set<std::vector<std::size_t>> column_ends(const std::string& text, std::size_t columns) {
  std::set<std::vector<std::size_t>> ends;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t number = line.find_first_not_of(' ');
    if (number == std::string::npos || number < 3 || line[number] < '0' || line[number] > '9') continue;
    std::vector<std::size_t> of_line;
    std::size_t at = number;
    while (of_line.size() < columns && at != std::string::npos) {
      of_line.push_back(line.find(' ', at));
      at = line.find_first_not_of(' ', of_line.back());
    }
    ends.insert(of_line);
  }
  return ends;
}

TEST(Text, ColumnsAreAlignedWhateverTheNumbers) {
  const scratch files;
  const auto config = [&](const std::string& name, double theta, double factor) {
    const json block = {{"rope_type", "linear"}, {"factor", factor}};
    const json all = {{"model_type", "llama"}, {"head_dim", 256}, {"rope_theta", theta}, {"rope_scaling", block}};
    return files.file(name, all.dump());
  };
  const std::string longest = " --context 1099511627776";
  const std::string huge = config("huge.json", 1e60, 1e58), tiny = config("tiny.json", 1e-60, 1.0);
  const std::string usual = config("usual.json", 1e9, 65536.0);
  for (const std::string& path : {huge, tiny, usual}) {
    SCOPED_TRACE(path);
    EXPECT_EQ(column_ends(run(path + longest).out, 4).size(), 1u);
    EXPECT_EQ(column_ends(run(path + longest).out, 4).begin()->size(), 4u);
    for (const std::string& other : {huge, tiny, usual}) {
      const std::string both = run(path + " --compare " + other + longest).out;
      EXPECT_EQ(column_ends(both + "\n", 4).size(), 1u) << both;
    }
  }
}

// The lines of the README's example follow each other in what is printed, except where it says that it left some out.
TEST(Text, IsAsTheReadmeShows) {
  const std::string readme = tool::contents(ROTARY_README), command = "$ rotary-inspect Llama-3.1-8B\n";
  ASSERT_NE(readme.find(command), std::string::npos);
  const std::size_t first = readme.find(command) + command.size();
  std::istringstream lines(readme.substr(first, readme.find("```", first) - first));
  const std::string text = run(config_file("llama-3.1-8b")).out;
  std::size_t at = 0, compared = 0;
  bool left_out = false;
  for (std::string line; std::getline(lines, line); left_out = line == "   …") {
    if (line == "   …") continue;
    line += "\n";
    const std::size_t found = text.find(line, at);
    ASSERT_NE(found, std::string::npos) << line;
    EXPECT_TRUE(left_out || found == at) << line;
    at = found + line.size();
    ++compared;
  }
  EXPECT_EQ(at, text.size());
  EXPECT_GE(compared, 20u);
}

// ---- curves

// The mean of cos over the bin and the pairs, by the midpoints of 4000 parts.
long double mean_score(const json& inv_freq, long double from, long double to) {
  long double sum = 0.0L;
  for (const json& w : inv_freq) {
    for (int i = 0; i < 4000; ++i) {
      sum += std::cos((from + (to - from) * (static_cast<long double>(i) + 0.5L) / 4000.0L) * w.get<double>());
    }
  }
  return sum / (4000.0L * static_cast<long double>(inv_freq.size()));
}

TEST(Curves, ScoresByDistance) {
  const json type = json_of(config_file("qwen3-0.6b-yarn4") + " --context 2000").at("types").at(0);
  const json& curves = type.at("curves");
  const std::size_t bins = curves.at("distance").size();
  ASSERT_GE(bins, 100u);
  const long double square = std::pow(reference::yarn_g(4.0L, 1.0L), 2.0L);
  for (const std::size_t i : {std::size_t{0}, bins / 2, bins - 1}) {
    const long double from = std::pow(2000.0L, static_cast<long double>(i) / static_cast<long double>(bins));
    const long double to = std::pow(2000.0L, static_cast<long double>(i + 1) / static_cast<long double>(bins));
    EXPECT_NEAR(curves.at("distance").at(i).get<double>(), static_cast<double>(std::sqrt(from * to)), 1e-9);
    EXPECT_NEAR(curves.at("score").at(i).get<double>(),
                static_cast<double>(square * mean_score(type.at("inv_freq"), from, to)), 1e-5);
    EXPECT_NEAR(curves.at("unscaled_score").at(i).get<double>(),
                static_cast<double>(mean_score(type.at("unscaled_inv_freq"), from, to)), 1e-5);
  }
}

// Positions below 2^24 are exact in float, a frequency is at most 1 and within 2^-24 of the exact one, and the product
// is rounded once more. Rotation by the exact table itself would have no error.
TEST(Curves, ErrorsOfFloatAngles) {
  const json curves = json_of(config_file("llama-3.1-8b")).at("types").at(0).at("curves");
  const std::size_t bins = curves.at("position").size();
  ASSERT_GE(bins, 50u);
  for (std::size_t i = 0; i < bins; ++i) {
    const double last = std::pow(131072.0, static_cast<double>(i + 1) / static_cast<double>(bins));
    const double product = curves.at("float32_angle_error").at(i);
    EXPECT_LE(product, last * 0x1p-23 * 1.001) << "around " << curves.at("position").at(i);
    if (last < 100.0) continue;
    EXPECT_GE(product, last * 1e-9);
    EXPECT_GE(curves.at("float32_recurrence_angle_error").at(i).get<double>(), product / 2.0);
  }
}

// ---- two models

TEST(Compare, LargestAngleDifference) {
  const std::string first = config_file("llama-3.1-8b"), second = config_file("llama-3-8b");
  const json both = json_of(first + " --compare " + second + " --context 10000");
  const json& a = both.at("types").at(0).at("inv_freq");
  const json& b = both.at("compared_with").at("types").at(0).at("inv_freq");
  const json& got = both.at("comparisons").at(0);
  long double largest = 0.0L;
  for (std::size_t j = 0; j < 64; ++j) {
    const long double difference = 10000.0L * std::fabs(a.at(j).get<long double>() - b.at(j).get<long double>());
    EXPECT_NEAR(got.at("angle_difference").at(j).get<double>(), static_cast<double>(difference), 1e-11);
    largest = std::max(largest, difference);
  }
  EXPECT_GT(largest, 1.0L);
  EXPECT_EQ(got.at("position"), 10000);
  EXPECT_NEAR(got.at("largest_angle_difference").at("radians").get<double>(), static_cast<double>(largest), 1e-11);
  const std::size_t worst = got.at("largest_angle_difference").at("pair");
  EXPECT_NEAR(got.at("angle_difference").at(worst).get<double>(), static_cast<double>(largest), 1e-11);
  EXPECT_EQ(got.at("different_settings").size(), 1u);
  EXPECT_EQ(got.at("different_settings").at("scaling").at(1), "none");
}

// The two differ in pair 0 alone, which turns by 1 and 1/2 a token.
TEST(Compare, AngleDifferencesAreInRadiansAndInTurnsAndNotReduced) {
  const scratch files;
  const auto config = [&](const char* name, const json& block) {
    return files.file(name, json({{"model_type", "llama"}, {"head_dim", 2}, {"rope_scaling", block}}).dump());
  };
  const std::string one = config("one.json", nullptr);
  const std::string half = config("half.json", {{"rope_type", "linear"}, {"factor", 2.0}});
  expect_said(one + " --compare " + half + " --context 70000",
              {"largest angle difference at position 70000: 35000 rad = 5570.42 turns, of pair 0; whole turns are",
               "angle difference, rad         turns\n", "35000       5570.42\n"});
}

TEST(Compare, SettingsInWordsAndOtherNumbersOfPairs) {
  expect_said(config_file("glm-4-9b-chat") + " --compare " + config_file("llama-3-8b"),
              {"rotary_dim: 64  |  128\n", "pairing: interleaved  |  split_half\n",
               "angles cannot be compared: 32 and 64 pairs\n"});
  const json gemma = json_of(config_file("gemma-3-12b") + " --compare " + config_file("gemma-2b"));
  ASSERT_EQ(gemma.at("comparisons").size(), 2u);
  EXPECT_EQ(gemma.at("comparisons").at(1).at("different_settings"), json::object());
  EXPECT_EQ(gemma.at("comparisons").at(1).at("largest_angle_difference").at("radians"), 0.0);
}

TEST(Compare, ListsOfTheSameLengthAndRangeThatDiffer) {
  const scratch files;
  const auto phi3 = [&](const char* name, const std::vector<double>& longs) {
    const json block = {{"rope_type", "longrope"}, {"short_factor", {1.0, 1.0, 1.5, 2.0}}, {"long_factor", longs}};
    const json config = {{"model_type", "phi3"},
                         {"head_dim", 8},
                         {"max_position_embeddings", 131072},
                         {"original_max_position_embeddings", 4096},
                         {"rope_scaling", block}};
    return files.file(name, config.dump());
  };
  const std::string a = phi3("a.json", {1.0, 2.0, 3.0, 64.25}), b = phi3("b.json", {1.0, 2.0, 4.0, 64.25});
  const json got = json_of(a + " --compare " + b + " --context 8192").at("comparisons").at(0).at("different_settings");
  ASSERT_EQ(got.size(), 1u) << got;
  for (const std::size_t side : {0u, 1u}) {
    const std::string text = got.at("scaling").at(side);
    EXPECT_NE(text.find(side == 0 ? "long_factor[2] 3" : "long_factor[2] 4"), std::string::npos) << text;
    EXPECT_NE(text.find("long_factor (4 from 1 to 64.25)"), std::string::npos) << text;
    EXPECT_EQ(text.find("short_factor["), std::string::npos) << text;
  }
  expect_said(a + " --compare " + a + " --context 8192", {"all settings are the same"});
}

// ---- options

TEST(Options, TheTypeOfOneLayer) {
  const scratch files;
  json config = json::parse(tool::contents(config_file("gemma-3-12b")));
  config["num_hidden_layers"] = 48;
  const std::string gemma = files.file("config.json", config.dump());
  const json sliding = json_of(gemma + " --layer 4").at("types"), full = json_of(gemma + " --layer 5").at("types");
  ASSERT_EQ(sliding.size(), 1u);
  ASSERT_EQ(full.size(), 1u);
  EXPECT_EQ(sliding.at(0).at("name"), "sliding_attention");
  EXPECT_EQ(full.at(0).at("name"), "full_attention");
  EXPECT_EQ(full.at(0).at("layers"), json({5, 11, 17, 23, 29, 35, 41, 47}));
  expect_refused(gemma + " --layer 48", {"--layer is 48", "below 48"});
  json one = json::parse(tool::contents(config_file("llama-3-8b")));
  one["num_hidden_layers"] = 32;
  const std::string llama = files.file("llama.json", one.dump());
  EXPECT_EQ(json_of(llama + " --layer 31").at("types").size(), 1u);
  expect_refused(llama + " --layer 32", {"--layer is 32", "below 32"});
  const json keys = {{"general.architecture", "llama"},
                     {"llama.attention.key_length", 8},
                     {"llama.block_count", 4},
                     {"llama.context_length", 64}};
  const std::string gguf = files.file("m.gguf", gguf_writer::from_json(keys, json::object(), false));
  EXPECT_EQ(json_of(gguf + " --layer 3").at("types").size(), 1u);
  expect_refused(gguf + " --layer 4", {"--layer is 4", "below 4"});
  for (const char* const layer : {" --layer -1", " --layer 1.5", " --layer 65536", " --layer 99999999999999999999"}) {
    expect_refused(gemma + layer, {"--layer"});
    expect_refused(config_file("llama-3.1-8b") + layer, {"--layer"});
  }
  expect_refused(config_file("gemma-3-12b") + " --layer 0", {"--layer is 0", "Leave it out"});
}

TEST(Options, PairingOfAModelTypeThatIsNotKnown) {
  const scratch files;
  const std::string path =
      files.file("config.json", json({{"model_type", "ours"}, {"head_dim", 64}, {"rope_theta", 1e5}}).dump());
  expect_refused(path, {"model_type is \"ours\"", "--pairing interleaved"});
  const json type = json_of(path + " --pairing interleaved").at("types").at(0);
  EXPECT_EQ(type.at("pairing"), "interleaved");
  EXPECT_EQ(type.at("origins").at("pairing"), "the caller");
}

TEST(Options, KeysThatAreIgnored) {
  const std::string path = config_file("syn-unknown-extra-keys");
  expect_refused(path, {"made_up", "--ignore-key"});
  const json model = json_of(path + " --ignore-key made_up");
  EXPECT_EQ(model.at("types").at(0).at("policy"), "linear");
  EXPECT_EQ(model.at("ignored_keys"), json({"rope_scaling.made_up"}));
  EXPECT_EQ(json_of(path + " --ignore-key rope_scaling.made_up"), model) << "as the refusal prints it";
  EXPECT_NE(run(path + " --ignore-key made_up").out.find("\nignored: rope_scaling.made_up\n"), std::string::npos);
  expect_refused(path + " --ignore-key made_up --ignore-key mode_up", {"--ignore-key is mode_up", "config.json"});
  expect_refused(path + " --ignore-key made_up --ignore-key rope_theta", {"--ignore-key is rope_theta"});
  const std::string other = config_file("llama-3-8b");
  for (const std::string& both : {path + " --compare " + other, other + " --compare " + path}) {
    EXPECT_EQ(run(both + " --ignore-key made_up").status, 0);
  }
  expect_refused(other + " --ignore-key made_up", {"--ignore-key is made_up"});
  const scratch files;
  const json keys = {{"general.architecture", "llama"}, {"llama.attention.key_length", 8}};
  expect_refused(files.file("m.gguf", gguf_writer::from_json(keys, json::object(), false)) + " --ignore-key x",
                 {"--ignore-key is x", "config.json"});
}

TEST(Options, PoliciesThatNeedALength) {
  const scratch files;
  const json block = {{"rope_type", "longrope"},
                      {"factor", 4.0},
                      {"original_max_position_embeddings", 512},
                      {"long_factor", {2.0, 3.0}},
                      {"short_factor", {1.0, 1.0}}};
  const json config = {{"model_type", "llama"}, {"head_dim", 4}, {"rope_theta", 1e4}, {"rope_scaling", block}};
  const std::string path = files.file("config.json", config.dump());
  expect_refused(path, {"--context is missing", "\"all\""});
  EXPECT_EQ(json_of(path + " --context 512").at("types").at(0).at("inv_freq").at(0), 1.0);
  EXPECT_EQ(json_of(path + " --context 513").at("types").at(0).at("inv_freq").at(0), 0.5);
}

TEST(Options, WrongOnes) {
  const std::string path = config_file("llama-3-8b");
  expect_refused("", {"model is required"});
  expect_refused(path + " --contxt 5", {"--contxt"});
  expect_refused(path + " --context 0", {"--context", "0 not in range"});
  expect_refused(path + " --pairing neox", {"--pairing: is neox; it must be split_half or interleaved\n"});
  expect_refused(path + " --plot out.pdf", {"--plot is out.pdf", ".svg or .png"});
  expect_refused("/nowhere/config.json", {"/nowhere/config.json", "no such file"});
  expect_refused(path + " --compare /nowhere/other.json", {"/nowhere/other.json", "no such file"});
  EXPECT_EQ(run("--help").status, 0);
}

TEST(Options, EmptyOnes) {
  const std::string path = config_file("llama-3-8b");
  for (const char* const option : {"--compare", "--plot", "--ignore-key"}) {
    for (const char* const how : {" ''", "="}) {
      expect_refused(path + " " + option + how, {option});
    }
  }
  expect_refused(path + " --compare ''", {"--compare", "empty", "leave the option out"});
  expect_refused("''", {"model", "empty"});
}

// By a Python that prints what it is called with.
TEST(Options, APlotWhosePathStartsWithADash) {
  const scratch files;
  const std::string python = files.file("python3", std::string("#!/bin/sh\nprintf '<%s>' \"$@\" >&2\nexit 1\n"));
  std::filesystem::permissions(python, std::filesystem::perms::owner_all);
  expect_refused(config_file("llama-3-8b") + " --plot=-o.svg", {"<./-o.svg>", "--plot -o.svg was not drawn"},
                 "PATH=" + files / "" + ":$PATH");
}

TEST(Options, APlotWithoutPythonSaysWhatToInstall) {
  const scratch files;
  expect_refused(config_file("llama-3-8b") + " --plot " + files / "x.svg", {"was not drawn", "python3-matplotlib"},
                 "PATH=/nowhere");
}

}  // namespace
