// config.json -> rope: every recorded config, every recorded malformed one, the styles of writing one thing, and the
// published settings of models.
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <rotary/huggingface.hpp>
#include <set>
#include <string>
#include <variant>
#include <vector>

#include "golden.hpp"
#include "policy_reference.hpp"
#include "refusals.hpp"

namespace {

using nlohmann::json;
using refusals::expect_refused;
using rotary::axis_map;
using rotary::from_huggingface;
using rotary::from_huggingface_file;
using rotary::from_huggingface_text;
using rotary::huggingface_options;
using rotary::layer_rope;
using rotary::mrope_layout;
using rotary::pairing;
using rotary::rope;

// ---- the recorded configs

// syn-unknown-extra-keys has a made-up key, which is refused unless the caller names it.
huggingface_options options_of(const json& record) {
  huggingface_options options;
  if (record.at("name") == "syn-unknown-extra-keys") options.ignored_keys = {"made_up"};
  return options;
}

template <class Body>
void for_each_config(const Body& body) {
  const json file = golden::load("configs/configs");
  for (const json& record : file.at("records")) {
    SCOPED_TRACE(record.at("name").get<std::string>());
    body(record);
  }
}

const layer_rope& type_of(const rope& model, const std::string& variant) {
  for (const layer_rope& type : model.types) {
    if (type.name == variant) return type;
  }
  EXPECT_EQ(model.types.size(), 1u) << "no type of layer is called " << variant;
  return model.types[0];
}

// What a variant's parameters say of the length of the sequence.
std::int64_t length_of(const json& parameters) {
  if (parameters.contains("seq_len")) return parameters.at("seq_len");
  const std::int64_t original = parameters.value("original_max_position_embeddings", std::int64_t{1});
  return parameters.value("which", "short") == "long" ? original + 1 : original;
}

// Relative to the exact value: 4 units in the last place, and what llama3's ramp loses (scaling.hpp).
void expect_spectrum(const rotary::spectrum& got, const reference::policy_result& expected) {
  ASSERT_EQ(got.pairs(), expected.inv_freq.size());
  for (std::size_t j = 0; j < got.pairs(); ++j) {
    const long double exact = expected.inv_freq[j];
    EXPECT_NEAR(static_cast<double>(got.inv_freq()[j] - exact), 0.0, static_cast<double>(exact) * 1e-13)
        << "pair " << j;
  }
  EXPECT_NEAR(got.magnitude(), static_cast<double>(expected.magnitude), 1e-15);
}

TEST(Configs, LayoutThetaAndSpectrumAsRecorded) {
  std::size_t variants = 0;
  for_each_config([&](const json& record) {
    const rope model = from_huggingface(record.at("config"), options_of(record));
    for (const auto& item : record.at("expected").at("variants").items()) {
      SCOPED_TRACE(item.key());
      const json& p = item.value();
      const layer_rope& layer = type_of(model, item.key());
      EXPECT_EQ(layer.head_dim, p.at("head_dim").get<std::size_t>());
      EXPECT_EQ(layer.rotary_dim, p.at("rotary_dim").get<std::size_t>());
      EXPECT_EQ(layer.offset, 0u);
      EXPECT_EQ(layer.rope_theta, p.at("base").get<double>());
      const bool interleaved = record.at("expected").at("pairing") == "interleaved";
      EXPECT_EQ(layer.layout().pairing, interleaved ? pairing::interleaved : pairing::split_half);
      expect_spectrum(layer.spectrum(length_of(p)), reference::policy_spectrum(p));
      ++variants;
    }
  });
  EXPECT_GE(variants, 42u);
}

// The parameters of a policy, under the names of the reference data.
struct parameters_of {
  json operator()(const rotary::none&) const { return {{"policy", "none"}}; }
  json operator()(const rotary::linear& p) const { return {{"policy", "linear"}, {"factor", p.factor}}; }
  json operator()(const rotary::ntk& p) const { return {{"policy", "ntk"}, {"alpha", p.alpha}}; }
  json operator()(const rotary::dynamic_ntk& p) const {
    return {{"policy", "dynamic_ntk"}, {"factor", p.factor}, {"max_position_embeddings", p.max_position_embeddings}};
  }
  json operator()(const rotary::yarn& p) const {
    return {{"policy", "yarn"},         {"factor", p.factor},
            {"beta_fast", p.beta_fast}, {"beta_slow", p.beta_slow},
            {"truncate", p.truncate},   {"original_max_position_embeddings", p.original_max_position_embeddings}};
  }
  json operator()(const rotary::llama3& p) const {
    return {{"policy", "llama3"},
            {"factor", p.factor},
            {"low_freq_factor", p.low_freq_factor},
            {"high_freq_factor", p.high_freq_factor},
            {"original_max_position_embeddings", p.original_max_position_embeddings}};
  }
  json operator()(const rotary::longrope& p) const {
    return {{"policy", "longrope"},
            {"factor", p.factor},
            {"original_max_position_embeddings", p.original_max_position_embeddings},
            {"short", std::vector<double>(p.short_factor)},
            {"long", std::vector<double>(p.long_factor)}};
  }
  template <class Other>
  json operator()(const Other&) const {
    return {{"policy", "another"}};
  }
};

TEST(Configs, PolicyAndParametersAsRecorded) {
  for_each_config([&](const json& record) {
    const rope model = from_huggingface(record.at("config"), options_of(record));
    for (const auto& item : record.at("expected").at("variants").items()) {
      SCOPED_TRACE(item.key());
      const json got = std::visit(parameters_of(), type_of(model, item.key()).scaling);
      for (const auto& parameter : got.items()) {
        const bool of_regime = parameter.key() == "short" || parameter.key() == "long";
        if (of_regime && item.value().at("which") != parameter.key()) continue;
        EXPECT_EQ(parameter.value(), item.value().at(of_regime ? "factors" : parameter.key())) << parameter.key();
      }
    }
  });
}

TEST(Configs, SpectraAreThoseOfTheSpectrumData) {
  const json spectra = golden::load("spectra");
  std::size_t compared = 0;
  const auto spectrum_named = [&](const std::string& name) -> const json* {
    for (const json& record : spectra.at("records")) {
      if (record.at("name") == name) return &record;
      for (const json& other : record.at("same_spectrum_as")) {
        if (other == name) return &record;
      }
    }
    return nullptr;
  };
  for_each_config([&](const json& record) {
    const rope model = from_huggingface(record.at("config"), options_of(record));
    for (const auto& item : record.at("expected").at("variants").items()) {
      const std::string name = record.at("name").get<std::string>() + (item.key() == "all" ? "" : "/" + item.key());
      const json* const recorded = spectrum_named(name);
      if (recorded == nullptr) continue;
      SCOPED_TRACE(name);
      reference::policy_result expected;
      for (const json& w : recorded->at("inv_freq")) expected.inv_freq.push_back(w.get<double>());
      expected.magnitude = recorded->at("attention_factor").get<double>();
      expect_spectrum(type_of(model, item.key()).spectrum(length_of(item.value())), expected);
      ++compared;
    }
  });
  EXPECT_GE(compared, 25u);
}

TEST(Configs, SectionsOfSeveralAxesAsRecorded) {
  for_each_config([&](const json& record) {
    const layer_rope layer = from_huggingface(record.at("config"), options_of(record)).types[0];
    const json& expected = record.at("expected").at("mrope");
    ASSERT_EQ(layer.mrope.has_value(), !expected.is_null());
    if (!layer.mrope) return;
    EXPECT_EQ(json(layer.mrope->section), expected.at("section"));
    ASSERT_EQ(expected.at("layout"), "interleaved_thw");
    EXPECT_EQ(layer.mrope->layout, mrope_layout::interleaved);
    EXPECT_EQ(layer.axes(), rotary::mrope_interleaved(expected.at("section").get<std::vector<std::size_t>>()));
  });
}

// Where transformers' sources and the recorded default differ, the reader wants the value stated. Gemma-3 has two.
TEST(Configs, DefaultThetaOfTheModelTypeAsRecorded) {
  std::size_t compared = 0;
  for_each_config([&](const json& record) {
    json config = record.at("config");
    for (const char* key : {"rope_theta", "rotary_emb_base", "rope_ratio"}) config.erase(key);
    if (config.contains("rope_parameters")) config["rope_parameters"].erase("rope_theta");
    const std::string type = config.at("model_type");
    const std::set<std::string> in_dispute = {"apertus", "cohere",        "minimax_m2", "ministral3",
                                              "mixtral", "qwen3_vl_text", "persimmon"};
    if (in_dispute.count(type) != 0) {
      expect_refused([&] { from_huggingface(config); }, "from_huggingface", {"rope_theta is missing"});
      return;
    }
    const double expected =
        type == "gemma3_text" ? 1e6 : record.at("expected").at("default_theta_of_model_type").get<double>();
    EXPECT_EQ(from_huggingface(config, options_of(record)).types[0].rope_theta, expected);
    ++compared;
  });
  EXPECT_GE(compared, 30u);
}

std::filesystem::path files_directory() {
  const char* directory = std::getenv("ROTARY_GOLDEN_DIR");
  return std::filesystem::path(directory != nullptr ? directory : ROTARY_GOLDEN_DIR_DEFAULT) / "configs" / "files";
}

TEST(Configs, FilesSayTheSame) {
  std::size_t files = 0;
  for_each_config([&](const json& record) {
    const std::string path = (files_directory() / (record.at("name").get<std::string>() + ".json")).string();
    const rope of_file = from_huggingface_file(path, options_of(record));
    const rope of_json = from_huggingface(record.at("config"), options_of(record));
    ASSERT_EQ(of_file.types.size(), of_json.types.size());
    for (std::size_t i = 0; i < of_file.types.size(); ++i) {
      const auto a = of_file.types[i].spectrum(5000), b = of_json.types[i].spectrum(5000);
      EXPECT_EQ(a.inv_freq(), b.inv_freq());
    }
    ++files;
  });
  EXPECT_GE(files, 38u);
}

TEST(Configs, PathsThatAreNoFile) {
  const std::string directory = files_directory().string();
  ASSERT_TRUE(std::filesystem::is_directory(directory));
  expect_refused([&] { from_huggingface_file(directory); }, "from_huggingface_file",
                 {("path is \"" + directory.substr(0, 190)).c_str(), "must be a file"});
  const std::string missing = (files_directory() / "no-such-config.json").string();
  expect_refused([&] { from_huggingface_file(missing); }, "from_huggingface_file",
                 {("path is \"" + missing.substr(0, 190)).c_str(), "must be a file"});
  const std::string empty = testing::TempDir() + "huggingface_test_empty.json";
  std::ofstream(empty, std::ios::binary).flush();
  expect_refused([&] { from_huggingface_file(empty); }, "from_huggingface", {"JSON"});
  std::filesystem::remove(empty);
}

// ---- the recorded malformed ones

TEST(Malformed, RefusedWithKeyValueAndReason) {
  const std::map<std::string, std::vector<const char*>> expected = {
      {"bad-deep-nesting", {"x is nested deeper than 64 levels"}},
      {"bad-head_dim-fraction", {"head_dim is 64.5", "whole number"}},
      {"bad-heads-zero", {"num_attention_heads is 0", "[1, 65536]"}},
      {"bad-json-nan", {"rope_theta is \"NaN\"", "JSON"}},
      {"bad-json-truncated", {"rope_theta is cut off at byte 80", "complete JSON"}},
      {"bad-linear-no-factor", {"rope_scaling.factor is missing"}},
      {"bad-llama3-bands-swapped", {"rope_scaling.high_freq_factor is 1.0", "at least low_freq_factor, 4"}},
      {"bad-longrope-missing-long", {"rope_scaling.long_factor is missing"}},
      {"bad-longrope-string-entry", {"rope_scaling.short_factor[7] is \"1.0\"", "number"}},
      {"bad-mrope-negative", {"rope_scaling.mrope_section[0] is -16", "whole number from 0"}},
      {"bad-ntk-alpha-negative", {"rope_scaling.alpha is -3.0", "greater than 0"}},
      {"bad-partial-above-one", {"partial_rotary_factor is 1.5", "[0, 1]"}},
      {"bad-rotary_dim-above-head_dim", {"rotary_dim is 128", "head_dim, 64"}},
      {"bad-theta-array", {"rope_theta is [10000.0]", "number"}},
      {"bad-theta-overflow", {"rope_theta is \"1e999\"", "that a double can hold"}},
      {"bad-type-not-string", {"rope_scaling.rope_type is 3", "string"}},
      {"bad-yarn-attention-negative", {"rope_scaling.attention_factor is -1.0", "greater than 0"}},
      {"bad-yarn-factor-below-one", {"rope_scaling.factor is 0.5", "at least 1"}}};
  const json file = golden::load("configs/malformed");
  EXPECT_EQ(file.at("records").size(), expected.size());
  for (const json& record : file.at("records")) {
    const std::string name = record.at("name");
    SCOPED_TRACE(name);
    ASSERT_EQ(expected.count(name), 1u);
    const auto call = [&] { from_huggingface_text(record.at("text").get<std::string>()); };
    for (const char* part : expected.at(name)) expect_refused(call, "from_huggingface", {part});
  }
}

// ---- one thing, written in many ways

json llama(const json& more = json::object()) {
  json config = {{"model_type", "llama"},
                 {"hidden_size", 640},
                 {"num_attention_heads", 8},
                 {"max_position_embeddings", 4096},
                 {"rope_theta", 250000.0}};
  config.update(more);
  return config;
}

json without(json config, const char* key) {
  config.erase(key);
  return config;
}

// A safetensors file beside the config, say: its size is enough to refuse it. The file has no blocks on disk.
TEST(Configs, FilesThatAreNoConfigBySize) {
  const std::string path = testing::TempDir() + "huggingface_test_large.json";
  const auto resize = [&](std::uintmax_t size) {
    std::ofstream(path, std::ios::binary).flush();
    std::filesystem::resize_file(path, size);
  };
  resize((std::uintmax_t{1} << 24) + 1);
  expect_refused([&] { from_huggingface_file(path); }, "from_huggingface_file",
                 {"a file of 16777217 bytes", "at most 16777216", "config.json"});
  std::ofstream(path, std::ios::binary) << llama().dump();
  const std::uintmax_t written = std::filesystem::file_size(path);
  std::ofstream(path, std::ios::binary | std::ios::app) << std::string((std::size_t{1} << 24) - written, ' ');
  EXPECT_EQ(from_huggingface_file(path).layer().head_dim, 80u) << "16 MiB are permitted";
  std::filesystem::remove(path);
}

const layer_rope layer_of(const json& config, const huggingface_options& options = {}) {
  const rope model = from_huggingface(config, options);
  EXPECT_EQ(model.types.size(), 1u);
  return model.types[0];
}

void expect_same(const json& config, const json& other) {
  const layer_rope a = layer_of(config), b = layer_of(other);
  EXPECT_EQ(a.head_dim, b.head_dim);
  EXPECT_EQ(a.rotary_dim, b.rotary_dim);
  EXPECT_EQ(a.pairing, b.pairing);
  for (const std::int64_t length : {1, 2048, 2049, 100000}) {
    EXPECT_EQ(a.spectrum(length).inv_freq(), b.spectrum(length).inv_freq());
    EXPECT_EQ(a.spectrum(length).magnitude(), b.spectrum(length).magnitude());
  }
}

TEST(Styles, NumbersMayBeIntegersFloatsOrStrings) {
  const json scaling = {{"type", "linear"}, {"factor", 4}};
  const json plain = llama({{"rope_scaling", scaling}});
  expect_same(plain, llama({{"rope_theta", 250000}, {"hidden_size", 640.0}, {"rope_scaling", scaling}}));
  expect_same(plain, llama({{"rope_theta", "250000.0"}, {"hidden_size", "640"}, {"rope_scaling", scaling}}));
  expect_same(plain, llama({{"rope_scaling", {{"type", "linear"}, {"factor", "4.0"}}}}));
  EXPECT_EQ(layer_of(plain).spectrum().inv_freq()[0], 0.25);
}

TEST(Styles, BlocksUnderEitherNameAndAsText) {
  const json old = llama({{"rope_scaling", {{"type", "dynamic"}, {"factor", 3.0}}}});
  const json parameters = {{"rope_type", "dynamic"}, {"factor", 3.0}, {"rope_theta", 250000.0}};
  expect_same(old, llama({{"rope_scaling", {{"rope_type", "dynamic"}, {"factor", 3.0}}}}));
  expect_same(old, without(llama({{"rope_parameters", parameters}}), "rope_theta"));
  expect_same(old, llama({{"rope_parameters", parameters}}));  // theta stands in both
  expect_refused(
      [&] {
        from_huggingface(llama({{"rope_theta", 10000.0}, {"rope_parameters", parameters}}));
      },
      "from_huggingface", {"rope_theta is 10000.0", "must equal rope_parameters.rope_theta"});
  expect_same(old, llama({{"rope_parameters", parameters}, {"rope_scaling", parameters}}));
  expect_same(old, llama({{"rope_parameters", parameters}, {"rope_scaling", nullptr}}));
  expect_same(old, llama({{"rope_scaling", "{\"type\": \"dynamic\", \"factor\": 3.0}"}}));
  EXPECT_TRUE(layer_of(old).needs_sequence_length());
}

TEST(Styles, NullsAreAbsent) {
  expect_same(llama(), llama({{"rope_scaling", nullptr}, {"head_dim", nullptr}, {"partial_rotary_factor", nullptr}}));
}

TEST(Styles, ThetaUnderTwoNames) {
  const json neox = {
      {"model_type", "gpt_neox"}, {"hidden_size", 640}, {"num_attention_heads", 8}, {"rotary_emb_base", 2e4}};
  json both = neox;
  both["rope_theta"] = 2e4;
  expect_same(neox, both);
  EXPECT_EQ(layer_of(neox).rope_theta, 2e4);
  both["rope_theta"] = 1e4;
  expect_refused([&] { from_huggingface(both); }, "from_huggingface",
                 {"rotary_emb_base is 20000.0", "it must equal rope_theta"});
}

TEST(Styles, PartOfTheHeadThatRotates) {
  const json half = llama({{"partial_rotary_factor", 0.4}});
  EXPECT_EQ(layer_of(half).rotary_dim, 32u);
  for (const char* key : {"rotary_pct", "rotary_emb_fraction", "rope_pct", "rope_percent"}) {
    expect_same(half, llama({{key, 0.4}}));
  }
  expect_refused(
      [] {
        from_huggingface(llama({{"rope_pct", 0.5}, {"partial_rotary_factor", 0.4}}));
      },
      "from_huggingface", {"partial_rotary_factor makes 32", "rope_pct 40", "must agree"});
  expect_same(half, llama({{"rotary_dim", 32}}));
  expect_same(half, llama({{"rotary_dim", 32}, {"partial_rotary_factor", 0.4}}));
  const json block = {{"rope_type", "default"}, {"partial_rotary_factor", 0.4}};
  expect_same(half, llama({{"rope_parameters", block}}));
  expect_same(half, llama({{"rope_parameters", block}, {"partial_rotary_factor", 0.4}}));
  expect_refused(
      [&] {
        from_huggingface(llama({{"rope_parameters", block}, {"partial_rotary_factor", 1.0}}));
      },
      "from_huggingface", {"rope_parameters.partial_rotary_factor makes 32", "partial_rotary_factor 80", "agree"});
  EXPECT_EQ(layer_of(half).spectrum().inv_freq()[1], layer_of(llama({{"head_dim", 32}})).spectrum().inv_freq()[1]);
  expect_refused(
      [] {
        from_huggingface(llama({{"rotary_dim", 40}, {"partial_rotary_factor", 0.4}}));
      },
      "from_huggingface", {"partial_rotary_factor makes 32", "rotary_dim 40", "must agree"});
  expect_refused(
      [] {
        from_huggingface(llama({{"rotary_dim", 31}}));
      },
      "from_huggingface", {"rotary_dim is 31", "even"});
}

TEST(Styles, SuIsLongrope) {
  json block = {{"type", "longrope"},
                {"short_factor", std::vector<double>(40, 1.25)},
                {"long_factor", std::vector<double>(40, 8.5)}};
  const json config = llama({{"original_max_position_embeddings", 2048}, {"rope_scaling", block}});
  block["type"] = "su";
  json su = config;
  su["rope_scaling"] = block;
  expect_same(config, su);
  EXPECT_NEAR(layer_of(config).spectrum(2048).inv_freq()[0], 1.0 / 1.25, 1e-16);
  EXPECT_NEAR(layer_of(config).spectrum(2049).inv_freq()[0], 1.0 / 8.5, 1e-16);
  // sqrt(1 + ln(4096 / 2048) / ln 2048)
  EXPECT_NEAR(layer_of(config).spectrum(1).magnitude(), std::sqrt(12.0 / 11.0), 1e-15);
  // Early Phi-3 configs call it yarn.
  block["type"] = "yarn";
  su["rope_scaling"] = block;
  su["model_type"] = "phi3";
  expect_same(config, su);
}

TEST(Styles, LongropeMagnitudesOfEachRegime) {
  const json block = {{"type", "longrope"},
                      {"short_mscale", 1.1},
                      {"long_mscale", 1.3},
                      {"original_max_position_embeddings", 2048},
                      {"short_factor", std::vector<double>(40, 1.0)},
                      {"long_factor", std::vector<double>(40, 2.0)}};
  const layer_rope layer = layer_of(llama({{"model_type", "phimoe"}, {"rope_scaling", block}}));
  EXPECT_EQ(layer.spectrum(2048).magnitude(), 1.1);
  EXPECT_EQ(layer.spectrum(2049).magnitude(), 1.3);
}

TEST(Styles, TextPartOfMultimodalConfigs) {
  const json text = llama({{"rope_scaling", {{"type", "linear"}, {"factor", 2.0}}}});
  expect_same(text, {{"model_type", "llava"}, {"vision_config", {{"rope_theta", 100.0}}}, {"text_config", text}});
  expect_same(text, {{"model_type", "qwen3_omni_moe"}, {"thinker_config", {{"text_config", text}}}});
  expect_same(text, {{"model_type", "llama"}, {"text_config", without(text, "model_type")}});
  expect_same(text, {{"model_type", "llava"}, {"text_config", text}, {"rope_theta", 250000.0}});  // says the same
  expect_same(text, {{"model_type", "llava"}, {"text_config", text.dump()}});
  expect_refused(
      [&] {
        from_huggingface({{"text_config", text}, {"rope_theta", 10000.0}});
      },
      "from_huggingface", {"rope_theta is 10000.0", "text_config"});
  expect_refused(
      [&] {
        from_huggingface({{"model_type", "llava"}, {"text_config", text}, {"llm_config", llama()}});
      },
      "from_huggingface", {"llm_config is ", "it stands beside text_config"});
  expect_same(text, {{"model_type", "llava"}, {"text_config", text}, {"llm_config", nullptr}});
}

TEST(Styles, HeadDimStatedOrDerived) {
  EXPECT_EQ(layer_of(llama()).head_dim, 80u);
  EXPECT_EQ(layer_of(llama({{"head_dim", 96}})).head_dim, 96u);
  EXPECT_EQ(layer_of(llama({{"attention_head_dim", 48}})).head_dim, 48u);
  expect_refused(
      [] {
        from_huggingface(llama({{"hidden_size", 641}}));
      },
      "from_huggingface", {"hidden_size is 641", "num_attention_heads, 8"});
  expect_refused([] { from_huggingface(without(llama(), "hidden_size")); }, "from_huggingface",
                 {"head_dim is missing"});
  // LLaVA-1.5 leaves out what transformers' class has for default.
  for (const char* type : {"llama", "mistral"}) {
    EXPECT_EQ(layer_of({{"model_type", "llava"}, {"text_config", {{"model_type", type}}}}).head_dim, 128u);
  }
  expect_refused([] { from_huggingface({{"model_type", "qwen2"}}); }, "from_huggingface", {"head_dim is missing"});
  expect_refused(
      [] {
        from_huggingface(llama({{"head_dim", 4000000000u}}));
      },
      "from_huggingface", {"head_dim is 4000000000", "65536"});
}

// ---- yarn's many magnitudes

json yarn(const json& more) {
  json block = {{"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 1024}};
  block.update(more);
  return llama({{"rope_scaling", block}});
}

TEST(Yarn, Magnitude) {
  const double paper = 1.1386294361119891;  // 0.1 ln 4 + 1
  const auto magnitude = [](const json& more) { return layer_of(yarn(more)).spectrum().magnitude(); };
  EXPECT_NEAR(magnitude(json::object()), paper, 1e-15);
  EXPECT_EQ(magnitude({{"attention_factor", 1.0}}), 1.0);
  EXPECT_EQ(magnitude({{"attention_factor", 1.5}, {"mscale", 1.0}}), 1.5);
  EXPECT_NEAR(magnitude({{"mscale", 1.0}, {"mscale_all_dim", 0.5}}), paper / 1.0693147180559945, 1e-15);
  EXPECT_NEAR(magnitude({{"mscale", 0.0}, {"mscale_all_dim", 0.0}}), paper, 1e-15);
  EXPECT_NEAR(magnitude({{"mscale", 1.0}}), paper, 1e-15);
  EXPECT_NEAR(magnitude({{"mscale", 1.0}, {"mscale_all_dim", 0.0}}), paper, 1e-15);
  EXPECT_NEAR(magnitude({{"attn_factor", 0.8782488562869419}}), 1.0, 1e-15);  // written to cancel the paper's
  EXPECT_EQ(magnitude({{"apply_yarn_scaling", false}}), 1.0);
  EXPECT_EQ(magnitude({{"attention_factor", 1.5}, {"attn_factor", 1.5}}), 1.5);
  expect_refused(
      [&] {
        magnitude({{"attention_factor", 1.5}, {"attn_factor", 1.0}});
      },
      "from_huggingface", {"rope_scaling.attn_factor is 1.0", "must equal attention_factor"});
  expect_refused(
      [&] {
        magnitude({{"mscale", 0.707}});
      },
      "from_huggingface", {"rope_scaling.mscale is 0.707", "mscale_all_dim", "state attention_factor"});
  expect_refused(
      [&] {
        magnitude({{"mscale_all_dim", 1.0}});
      },
      "from_huggingface", {"mscale", "state attention_factor"});
}

TEST(Yarn, FactorAndLengthNotStated) {
  const layer_rope of_null = layer_of(yarn({{"factor", nullptr}}));
  EXPECT_EQ(std::get<rotary::yarn>(of_null.scaling).factor, 4.0);  // 4096 / 1024
  const layer_rope no_length = layer_of(yarn({{"original_max_position_embeddings", nullptr}}));
  EXPECT_EQ(std::get<rotary::yarn>(no_length.scaling).original_max_position_embeddings, 4096);
  const json config = yarn(json::object());
  expect_refused(
      [&] {
        json bare = without(config, "max_position_embeddings");
        bare["rope_scaling"].erase("original_max_position_embeddings");
        from_huggingface(bare);
      },
      "from_huggingface", {"max_position_embeddings is missing", "rope_scaling"});
}

TEST(Yarn, TruncateAndBetas) {
  // gpt-oss: low 8.09, high 17.40, so pair 9 is a little slowed and pair 8 not (hand-checked in float64).
  const json block = {{"rope_type", "yarn"}, {"factor", 32.0},    {"beta_fast", 32.0},
                      {"beta_slow", 1.0},    {"truncate", false}, {"original_max_position_embeddings", 4096}};
  const rotary::spectrum s =
      layer_of({{"model_type", "gpt_oss"}, {"head_dim", 64}, {"rope_theta", 150000}, {"rope_scaling", block}})
          .spectrum();
  EXPECT_NEAR(s.inv_freq()[9], 0.031705696184663766, 1e-16);
  EXPECT_NEAR(s.inv_freq()[12], 0.0067949594897322178, 1e-16);
  EXPECT_NEAR(s.magnitude(), 1.3465735902799727, 1e-15);
  const auto zero = std::get<rotary::yarn>(layer_of(yarn({{"beta_fast", 0}, {"beta_slow", 0}})).scaling);
  EXPECT_EQ(zero.beta_fast, 32.0);
  EXPECT_EQ(zero.beta_slow, 1.0);
  expect_refused(
      [] {
        from_huggingface(yarn({{"extrapolation_factor", 0.5}}));
      },
      "from_huggingface", {"rope_scaling.extrapolation_factor is 0.5", "must be 1"});
}

TEST(Yarn, SoftmaxScaleMultiplierOfDeepSeekAlone) {
  const auto multiplier = [](const char* type, double mscale) {
    const json block = {{"type", "yarn"},
                        {"factor", 40},
                        {"original_max_position_embeddings", 4096},
                        {"mscale", mscale},
                        {"mscale_all_dim", mscale}};
    return layer_of({{"model_type", type}, {"rope_theta", 10000}, {"rope_scaling", block}}).softmax_scale_multiplier;
  };
  EXPECT_NEAR(multiplier("deepseek_v2", 0.707), 1.5896261651208735, 1e-15);
  EXPECT_NEAR(multiplier("deepseek_v3", 1.0), 1.8738542070926266, 1e-15);
  EXPECT_EQ(multiplier("ministral3", 1.0), 1.0);
}

// ---- what is refused rather than ignored

TEST(Refusals, UnknownScalingTypesAndKeys) {
  expect_refused(
      [] {
        from_huggingface(llama({{"rope_scaling", {{"type", "banana"}, {"factor", 2.0}}}}));
      },
      "from_huggingface", {"rope_scaling.type is \"banana\"", "longrope"});
  const json config = llama({{"rope_scaling", {{"type", "linear"}, {"factor", 2.0}, {"beta_fast", 32}}}});
  expect_refused([&] { from_huggingface(config); }, "from_huggingface",
                 {"rope_scaling.beta_fast is 32", "rope_type linear", "ignored_keys"});
  huggingface_options ignoring;
  ignoring.ignored_keys = {"beta_fast"};
  EXPECT_EQ(layer_of(config, ignoring).spectrum().inv_freq()[0], 0.5);
  expect_refused(
      [] {
        from_huggingface(llama({{"rope_scaling", {{"factor", 2.0}}}}));
      },
      "from_huggingface", {"rope_scaling.factor is 2.0", "rope_type default"});
  EXPECT_NO_THROW(
      from_huggingface(llama({{"rope_scaling", {{"type", "linear"}, {"factor", 2.0}, {"finetuned", true}}}})));
}

TEST(Refusals, KeysBesideTheBlockThatNameRope) {
  for (const char* key : {"rope_ratio",       "rope_local_base_freq",
                          "rotary_emb_scale", "no_rope_layers",
                          "swa_rope_theta",   "dual_chunk_attention_config",
                          "use_dynamic_ntk",  "rope_interleave",
                          "ropeTheta",        "RoPE_theta",
                          "rope-theta",       "useRoPE",
                          "ROPE_BASE",        "theta.rope",
                          "ntk_alpha",        "yarn",
                          "YarnFactor",       "alibi_bias",
                          "pos_emb",          "positional_embedding",
                          "nope_layers",      "nope_layer_interval",
                          "use_nope",         "rotaryDim",
                          "rotarydim",        "ropetheta",
                          "ropescaling",      "longrope",
                          "xpos_scale_base",  "longrope_factor"}) {
    SCOPED_TRACE(key);
    expect_refused(
        [&] {
          from_huggingface(llama({{key, 7}}));
        },
        "from_huggingface", {(std::string(key) + " is 7").c_str(), "model_type llama", "ignored_keys"});
    huggingface_options ignoring;
    ignoring.ignored_keys = {key};
    EXPECT_NO_THROW(from_huggingface(llama({{key, 7}}), ignoring));
  }
  EXPECT_NO_THROW(from_huggingface(llama({{"property_tax", 7},
                                          {"europe", 1},
                                          {"qk_nope_head_dim", 128},
                                          {"max_position_embeddings", 4096},
                                          {"sliding_window", 4096}})));
}

TEST(Refusals, OtherKindsOfPositions) {
  expect_refused(
      [] {
        from_huggingface(llama({{"model_type", "falcon"}, {"alibi", true}}));
      },
      "from_huggingface", {"alibi is true", "false"});
  expect_refused(
      [] {
        from_huggingface(llama({{"position_embedding_type", "absolute"}}));
      },
      "from_huggingface", {"position_embedding_type is \"absolute\"", "rope"});
  expect_refused(
      [] {
        from_huggingface(llama({{"model_type", "esm"}}));
      },
      "from_huggingface", {"position_embedding_type is missing"});
  expect_refused(
      [] {
        from_huggingface({{"model_type", "chatglm"}, {"head_dim", 64}, {"position_encoding_2d", true}});
      },
      "from_huggingface", {"position_encoding_2d is true"});
  expect_refused(
      [] {
        from_huggingface(llama({{"model_type", "granitemoehybrid"}}));
      },
      "from_huggingface", {"position_embedding_type is missing"});
  for (const char* key : {"xpos", "use_xpos"}) {
    expect_same(llama(), llama({{key, false}}));
    expect_refused(
        [&] {
          from_huggingface(llama({{key, true}}));
        },
        "from_huggingface", {(std::string(key) + " is true").c_str(), "false"});
  }
  for (const char* key : {"rotary", "use_rotary_pos_emb"}) {
    expect_same(llama(), llama({{key, true}}));
    expect_refused(
        [&] {
          from_huggingface(llama({{key, false}}));
        },
        "from_huggingface", {(std::string(key) + " is false").c_str(), "true"});
  }
  EXPECT_TRUE(layer_of(llama({{"model_type", "granitemoehybrid"}, {"position_embedding_type", "rope"}})).rotates());
  EXPECT_FALSE(layer_of(llama({{"model_type", "granitemoehybrid"}, {"position_embedding_type", "nope"}})).rotates());
}

// Command-R7B says rope_gptj, ModernBERT-base absolute.
TEST(Refusals, PositionsThatNameThePairing) {
  const auto with = [](const char* type, const char* positions) {
    return llama({{"model_type", type}, {"position_embedding_type", positions}});
  };
  EXPECT_EQ(layer_of(with("cohere", "rope_gptj")).pairing, pairing::interleaved);
  EXPECT_EQ(layer_of(with("llama", "rope_gpt_neox")).pairing, pairing::split_half);
  expect_refused([&] { from_huggingface(with("llama", "rope_gptj")); }, "from_huggingface",
                 {"position_embedding_type is \"rope_gptj\"", "model_type llama"});
  expect_refused([&] { from_huggingface(with("cohere", "rope_gpt_neox")); }, "from_huggingface",
                 {"position_embedding_type is \"rope_gpt_neox\"", "model_type cohere"});
  json bert = without(with("modernbert", "absolute"), "rope_theta");
  bert["global_rope_theta"] = 160000.0;
  EXPECT_TRUE(from_huggingface(bert).types[1].rotates());
}

TEST(Refusals, CallersMayIgnoreWhatWouldStopTheRotation) {
  const json settings = {{"alibi", true}, {"rotary", false}, {"position_embedding_type", "x"}, {"mla_use_nope", true}};
  huggingface_options ignoring;
  for (const auto& setting : settings.items()) {
    const json config = llama({{setting.key(), setting.value()}});
    EXPECT_THROW(from_huggingface(config), rotary::error) << setting.key();
    ignoring.ignored_keys = {setting.key()};
    EXPECT_TRUE(layer_of(config, ignoring).rotates()) << setting.key();
  }
}

// One list serves many models, so what a model lacks is no error; the caller sees what it had.
TEST(Refusals, TheCallerLearnsWhichIgnoredKeysThereWere) {
  huggingface_options ignoring;
  ignoring.ignored_keys = {"absent", "made_up", "rope_theta", "rope_extra", "alibi", "rope_null"};
  const auto ignored = [&](const json& config) { return from_huggingface(config, ignoring).ignored_keys; };
  using paths = std::vector<std::string>;
  EXPECT_EQ(ignored(llama()), paths());
  const json block = {{"rope_type", "linear"}, {"factor", 2.0}, {"made_up", 1}};
  const json extra = {{"rope_scaling", block}, {"rope_extra", 3}, {"rope_null", nullptr}};
  EXPECT_EQ(ignored(llama(extra)), paths({"rope_extra", "rope_null", "rope_scaling.made_up"}));
  EXPECT_EQ(ignored(llama({{"rope_parameters", {{"full_attention", block}}}})),
            paths({"rope_parameters.full_attention.made_up"}));
  EXPECT_EQ(ignored(llama({{"position_embedding_type", "nope"}, {"alibi", true}})), paths({"alibi", "rope_theta"}));

  const json beside = {{"model_type", "llava"}, {"rope_extra", 3}, {"text_config", llama({{"rope_extra", 4}})}};
  EXPECT_EQ(ignored(beside), paths({"rope_extra", "text_config.rope_extra"}));
}

// As an error's text has just named them.
TEST(Refusals, IgnoredKeysMayHaveTheirPath) {
  const json block = {{"rope_type", "linear"}, {"factor", 2.0}, {"made_up", 1}};
  const auto ignored = [](const json& config, const char* path) {
    huggingface_options ignoring;
    ignoring.ignored_keys = {path};
    return from_huggingface(config, ignoring).ignored_keys;
  };
  using paths = std::vector<std::string>;
  const json flat = llama({{"rope_scaling", block}}),
             nested = llama({{"rope_parameters", {{"full_attention", block}}}});
  for (const char* path : {"made_up", "rope_scaling.made_up"}) {
    EXPECT_EQ(ignored(flat, path), paths({"rope_scaling.made_up"}));
  }
  EXPECT_EQ(ignored(nested, "rope_parameters.full_attention.made_up"),
            paths({"rope_parameters.full_attention.made_up"}));
  const json inner = {{"model_type", "llava"}, {"text_config", llama({{"rope_extra", 4}})}};
  EXPECT_EQ(ignored(inner, "text_config.rope_extra"), paths({"text_config.rope_extra"}));
  expect_refused([&] { ignored(flat, "rope_parameters.made_up"); }, "from_huggingface", {"rope_scaling.made_up is 1"});
}

TEST(Refusals, TwoSpellingsThatDiffer) {
  const auto refused = [](const json& more, std::initializer_list<const char*> parts) {
    expect_refused([&] { from_huggingface(llama(more)); }, "from_huggingface", parts);
  };
  refused({{"n_embd", 320}}, {"n_embd is 320", "hidden_size, 640"});
  refused({{"d_model", 320}}, {"d_model is 320", "hidden_size, 640"});
  refused({{"n_head", 16}}, {"n_head is 16", "num_attention_heads, 8"});
  refused({{"n_positions", 2048}}, {"n_positions is 2048", "max_position_embeddings, 4096"});
  refused({{"seq_length", 2048}}, {"seq_length is 2048", "max_position_embeddings, 4096"});
  refused({{"head_dim", 80}, {"kv_channels", 64}}, {"kv_channels is 64", "head_dim, 80"});
  expect_same(llama(), llama({{"n_embd", 640}, {"n_head", 8}, {"n_positions", 4096}, {"seq_length", 4096}}));
  // Qwen-7B's two lengths mean different things.
  const rope qwen = from_huggingface(llama({{"model_type", "qwen"}, {"seq_length", 2048}, {"rope_theta", nullptr}}));
  EXPECT_EQ(qwen.max_position_embeddings, 4096);
}

TEST(Refusals, RotaryScalingFactorOtherThanOne) {
  expect_same(llama(), llama({{"rotary_scaling_factor", 1.0}}));
  expect_refused(
      [] {
        from_huggingface(llama({{"rotary_scaling_factor", 2.0}}));
      },
      "from_huggingface", {"rotary_scaling_factor is 2.0", "model_type llama"});
}

TEST(Refusals, UnknownModelTypes) {
  expect_refused(
      [] {
        from_huggingface(llama({{"model_type", "baichuan"}}));
      },
      "from_huggingface", {"model_type is \"baichuan\"", "pairing"});
  expect_refused([] { from_huggingface(without(llama(), "model_type")); }, "from_huggingface",
                 {"model_type is missing", "pairing"});
  huggingface_options interleaved;
  interleaved.pairing = pairing::interleaved;
  const layer_rope layer = layer_of(llama({{"model_type", "brand_new"}}), interleaved);
  EXPECT_EQ(layer.pairing, pairing::interleaved);
  EXPECT_EQ(layer.rope_theta, 250000.0);
  expect_refused(
      [&] {
        from_huggingface(without(llama({{"model_type", "brand_new"}}), "rope_theta"), interleaved);
      },
      "from_huggingface", {"rope_theta is missing"});
}

TEST(Refusals, TwoBlocksThatDiffer) {
  expect_refused(
      [] {
        from_huggingface(llama({{"rope_parameters", {{"rope_type", "linear"}, {"factor", 2.0}}},
                                {"rope_scaling", {{"rope_type", "linear"}, {"factor", 4.0}}}}));
      },
      "from_huggingface", {"rope_scaling is an object", "rope_parameters that differs"});
}

TEST(Styles, BlocksOfNulls) {
  for (const char* key : {"type", "rope_type", "rope_theta", "factor", "beta_fast"}) {
    expect_same(llama(), llama({{"rope_scaling", {{key, nullptr}}}}));
  }
  expect_refused(
      [] {
        from_huggingface(llama({{"rope_scaling", {{"type", json::object()}}}}));
      },
      "from_huggingface", {"rope_scaling.type is an object", "string"});
}

TEST(Refusals, ValuesOfTheWrongKind) {
  for (const char* text : {"linear", " true", "null"}) {
    expect_refused(
        [&] {
          from_huggingface(llama({{"rope_scaling", text}}));
        },
        "from_huggingface", {"rope_scaling is \"", "an object, or the JSON text of one"});
  }
  expect_refused([] { from_huggingface(json::array({1, 2})); }, "from_huggingface", {"the config is [1, 2]", "object"});
  expect_refused(
      [] {
        from_huggingface(llama({{"rope_scaling", 4}}));
      },
      "from_huggingface", {"rope_scaling is 4", "object"});
  expect_refused([] { from_huggingface(llama({{"rope_theta", true}})); }, "from_huggingface", {"rope_theta is true"});
  expect_refused(
      [] {
        from_huggingface(llama({{"rope_theta", "fast"}}));
      },
      "from_huggingface", {"rope_theta is \"fast\""});
  expect_refused(
      [] {
        from_huggingface(llama({{"rope_theta", -1}}));
      },
      "from_huggingface", {"rope_theta is -1", "greater"});
  expect_refused(
      [] {
        from_huggingface(llama({{"rope_theta", std::nan("")}}));
      },
      "from_huggingface", {"rope_theta is not finite"});
  expect_refused([] { from_huggingface(llama({{"rope_theta", 0.0}})); }, "from_huggingface", {"rope_theta is 0.0"});
  expect_refused(
      [] {
        from_huggingface(yarn({{"truncate", "no"}}));
      },
      "from_huggingface", {"rope_scaling.truncate is \"no\"", "true or false"});
  expect_refused(
      [] {
        from_huggingface(llama({{"max_position_embeddings", 0}}));
      },
      "from_huggingface", {"max_position_embeddings is 0"});
}

// Beyond it frequencies would be infinite, 0 or subnormal, or a policy would refuse what no key says.
TEST(Refusals, NumbersOfAbsurdSize) {
  for (const double absurd : {1e300, 1.1e60, 0.9e-60, 1e-320}) {
    const json block = {{"rope_type", "longrope"},
                        {"factor", 2.0},
                        {"original_max_position_embeddings", 64},
                        {"short_factor", {1.0, absurd}},
                        {"long_factor", {1.0, 1.0}}};
    const std::vector<std::pair<json, const char*>> configs = {
        {{{"rope_theta", absurd}}, "rope_theta"},
        {{{"rope_theta", -absurd}}, "rope_theta"},
        {{{"head_dim", 4}, {"rope_scaling", block}}, "rope_scaling.short_factor[1]"},
        {{{"rope_parameters", {{"rope_type", "ntk"}, {"factor", absurd}}}}, "rope_parameters.factor"},
        {{{"rope_scaling", {{"rope_type", "dynamic"}, {"alpha", absurd}}}}, "rope_scaling.alpha"},
        {{{"rope_scaling", {{"rope_type", "yarn"}, {"factor", 4}, {"mscale", absurd}}}}, "rope_scaling.mscale"}};
    for (const auto& [config, key] : configs) {
      SCOPED_TRACE(config.dump());
      const auto read = [with = llama(config)] { from_huggingface(with); };
      expect_refused(read, "from_huggingface", {(std::string(key) + " is ").c_str(), "1e-60 to 1e60"});
    }
  }
  const json slower = {{"rope_type", "ntk"}, {"factor", 2.0}, {"mixed_b", -1.0}};
  expect_refused(
      [&] {
        from_huggingface(llama({{"rope_scaling", slower}}));
      },
      "from_huggingface", {"rope_scaling.mixed_b is -1.0", "at least 0"});
}

// The least and the most that is let through, with the head that makes the steepest powers of it.
TEST(Refusals, NumbersAtTheirLimitsGiveNormalFrequencies) {
  for (const double limit : {1e-60, 1e60}) {
    const double factor = limit < 1.0 ? 1.0 : limit;
    const json longrope = {{"rope_type", "longrope"},
                           {"factor", factor},
                           {"original_max_position_embeddings", 2},
                           {"short_factor", {limit, limit}},
                           {"long_factor", {limit, limit}}};
    const json llama3 = {{"rope_type", "llama3"},
                         {"factor", factor},
                         {"low_freq_factor", 1.0},
                         {"high_freq_factor", 4.0},
                         {"original_max_position_embeddings", 64}};
    for (const json& block :
         {json{{"rope_type", "default"}}, json{{"rope_type", "linear"}, {"factor", factor}},
          json{{"rope_type", "dynamic"}, {"factor", factor}}, json{{"rope_type", "dynamic"}, {"alpha", limit}},
          json{{"rope_type", "ntk"}, {"factor", limit}}, json{{"rope_type", "ntk"}, {"factor", limit}, {"mixed_b", 0}},
          json{{"rope_type", "proportional"}, {"factor", limit}}, json{{"rope_type", "yarn"}, {"factor", factor}},
          longrope, llama3}) {
      SCOPED_TRACE(block.dump());
      const bool yarn = block.at("rope_type") == "yarn";  // which wants a theta above 1
      const json config = {{"head_dim", 4},
                           {"rope_theta", yarn && limit < 1.0 ? 2.0 : limit},
                           {"max_position_embeddings", 1},
                           {"rope_scaling", block}};
      const layer_rope layer = layer_of(llama(config));
      for (const std::int64_t length : {std::int64_t{1}, std::int64_t{1} << 40}) {
        const rotary::spectrum spectrum = layer.spectrum(length);
        for (const double w : spectrum.inv_freq()) EXPECT_TRUE(std::isnormal(w)) << w;
        EXPECT_TRUE(std::isnormal(spectrum.magnitude())) << spectrum.magnitude();
      }
    }
  }
}

TEST(Refusals, TextThatIsNotOneConfig) {
  expect_refused([] { from_huggingface_text(""); }, "from_huggingface", {"the text is", "JSON"});
  expect_refused([] { from_huggingface_text("{\"a\":1}{"); }, "from_huggingface", {"\"{\" at byte 7"});
  expect_refused([] { from_huggingface_text(R"({"rope_theta":1e4,"b":{"rope_theta":1},"rope_theta":1e6})"); },
                 "from_huggingface", {"rope_theta is stated twice"});
  expect_refused([] { from_huggingface_text(R"({"rope_scaling":{"factor":2,"factor":4}})"); }, "from_huggingface",
                 {"rope_scaling.factor is stated twice"});
  const std::string deep(200000, '[');
  expect_refused([&] { from_huggingface_text(deep); }, "from_huggingface", {"deeper than 64"});
  expect_refused([&] { from_huggingface(llama({{"rope_scaling", deep}})); }, "from_huggingface", {"deeper than 64"});
  expect_refused([] { from_huggingface_file("/no/such/config.json"); }, "from_huggingface_file",
                 {"/no/such/config.json"});
}

TEST(Refusals, TextsHoldNothingThatATerminalWouldObey) {
  huggingface_options half;
  half.pairing = pairing::split_half;
  const json named = llama({{"model_type", "a\x1b[2Jb"}, {"rope_ratio", 2}});
  const json nested = {{"x\x1by", {{"partial_rotary_factor", 0.5}}}};
  const std::string texts[] = {
      refusals::text_of([&] { from_huggingface(named); }),
      refusals::text_of([&] { from_huggingface(named, half); }),
      refusals::text_of([] {
        from_huggingface(llama({{"rope_\x1b\x7f", 2}}));
      }),
      refusals::text_of([] {
        from_huggingface(llama({{"rope_\xc2\x9b", "\xc2\x9b"}}));
      }),
      refusals::text_of([&] {
        from_huggingface(llama({{"rotary_dim", 16}, {"rope_parameters", nested}}));
      }),
      refusals::text_of([] { from_huggingface_text("{\"rope_theta\": \x1b[2J}"); }),
  };
  for (const std::string& text : texts) {
    EXPECT_NE(text.find('?'), std::string::npos) << text;
    for (const char c : text) EXPECT_TRUE(c >= ' ' && c <= '~') << text;
  }
}

TEST(Refusals, TextThatDoesNotEndWhereItShould) {
  const std::string whole = R"({"model_type": "llama", "head_dim": 8})";
  expect_refused([] { from_huggingface_text(R"({"a}\"]": [1]} "]})"); }, "from_huggingface",
                 {"followed by \"\"]}\" at byte 15"});
  ASSERT_NO_THROW(from_huggingface_text("\xef\xbb\xbf" + whole + "\n\t\r\n"));  // after a byte order mark
  for (const char* more : {"trailing", "{\"a\": 1}", ",", "}", "]", "\"", "8", "\xff"}) {
    const std::string text = whole + " \n" + more;
    std::string shown = std::string(more) == "\xff" ? "?" : more;
    expect_refused([&] { from_huggingface_text(text); }, "from_huggingface",
                   {("the text is followed by \"" + shown + "\" at byte 40").c_str(), "nothing behind its end"});
  }
  expect_refused([&] { from_huggingface_text(whole.substr(0, 36)); }, "from_huggingface",
                 {"head_dim is cut off at byte 36"});
  expect_refused([&] { from_huggingface_text(whole.substr(0, 37)); }, "from_huggingface",
                 {"head_dim is cut off at byte 37"});
  for (const char* blank : {"", " \n"}) {
    expect_refused([&] { from_huggingface_text(blank); }, "from_huggingface", {"the text is empty"});
  }
  const std::string nul(1, '\0');
  expect_refused([&] { from_huggingface_text(whole + nul + "rope_theta"); }, "from_huggingface",
                 {"the text is no UTF-8: it has a NUL at byte 38"});
  expect_refused([&] { from_huggingface_text("\xff\xfe{" + nul + "\"" + nul); }, "from_huggingface",
                 {"NUL at byte 3", "UTF-8"});
  expect_refused(
      [&] {
        from_huggingface(llama({{"head_dim", "8" + nul + "x"}}));
      },
      "from_huggingface", {"head_dim is", "finite number"});
}

// Errors in a block that is written as a string name it, and the keys in it.
TEST(Refusals, TextInsideTheConfig) {
  const auto block = [](const std::string& text) { return [=] { from_huggingface(llama({{"rope_scaling", text}})); }; };
  expect_refused(block(R"({"factor": })"), "from_huggingface", {"rope_scaling.factor is", "at byte 10 of the string"});
  expect_refused(block(R"({"factor": 2, "factor": 3})"), "from_huggingface", {"rope_scaling.factor is stated twice"});
  expect_refused(block(R"({"factor": 2} x)"), "from_huggingface",
                 {"rope_scaling is followed by \"x\" at byte 14 of the string"});
  expect_refused(block("linear"), "from_huggingface", {"rope_scaling is \"linear\"; it must be an object"});
  expect_refused(block(""), "from_huggingface", {"rope_scaling is empty"});
  expect_refused(block(std::string(1, '\0')), "from_huggingface", {"rope_scaling is no UTF-8"});
  expect_refused(block(std::string(100, '[')), "from_huggingface", {"rope_scaling is nested deeper than 64 levels"});
  const json text = {{"model_type", "llama"}, {"rope_scaling", R"({"factor": })"}};
  expect_refused(
      [&] {
        from_huggingface({{"text_config", text.dump()}});
      },
      "from_huggingface", {"text_config.rope_scaling.factor is", "of the string"});
}

TEST(Refusals, TextsWithoutAKeyNameTheText) {
  expect_refused([] { from_huggingface_text(std::string(100, '[')); }, "from_huggingface",
                 {"the text is nested deeper than 64 levels"});
  expect_refused([] { from_huggingface_text(R"({"":1,"":2})"); }, "from_huggingface", {"the text is stated twice"});
}

// The names of types that a rope holds are printed, to terminals too.
TEST(Refusals, NamesThatAreNotPrintable) {
  huggingface_options half;
  half.pairing = pairing::split_half;
  for (const char* name : {"\x1b[31m", "a\nb", "caf\xc3\xa9"}) {
    const json block = {{name, {{"rope_type", "linear"}, {"factor", 2.0}}}};
    expect_refused(
        [&] {
          from_huggingface(llama({{"rope_parameters", block}}));
        },
        "from_huggingface", {"rope_parameters.", "printable ASCII"});
    expect_refused(
        [&] {
          from_huggingface(llama({{"model_type", name}}), half);
        },
        "from_huggingface", {"model_type is", "printable ASCII"});
  }
  const json unnamed = {{"", {{"rope_type", "linear"}, {"factor", 2.0}}}};
  expect_refused([&] { from_huggingface(llama({{"rope_parameters", unnamed}})); }, "from_huggingface", {"printable"});
}

json nested(std::size_t levels) {
  json deep = 1;
  for (std::size_t i = 0; i < levels; ++i) {
    json outer = json::array();
    outer.push_back(std::move(deep));
    deep = std::move(outer);
  }
  return deep;
}

TEST(Refusals, DeepValuesThatTheCallerParsed) {
  expect_refused(
      [] {
        from_huggingface(llama({{"rope_theta", nested(60)}}));
      },
      "from_huggingface", {"rope_theta is [a list]"});
  EXPECT_NO_THROW(from_huggingface(llama({{"vision", nested(63)}})));
  expect_refused(
      [] {
        from_huggingface(llama({{"vision", nested(64)}}));
      },
      "from_huggingface", {"vision is nested deeper than 64 levels"});
  // Compared with each other, these would need more stack than there is.
  json config = {{"model_type", "llava"}, {"text_config", {{"model_type", "llama"}}}};
  config["rope_theta"] = nested(1000000);
  config["text_config"]["rope_theta"] = nested(1000000);
  expect_refused([&] { from_huggingface(config); }, "from_huggingface", {"rope_theta is nested deeper"});
}

TEST(Refusals, DynamicWithTwoLengths) {
  const json block = {{"rope_type", "dynamic"}, {"factor", 2.0}, {"original_max_position_embeddings", 2048}};
  expect_refused(
      [&] {
        from_huggingface(llama({{"rope_scaling", block}}));
      },
      "from_huggingface", {"original_max_position_embeddings is 2048", "4096"});
}

// ---- types of layers

std::vector<std::size_t> layers_that_rotate(const rope& model) {
  std::vector<std::size_t> layers;
  for (std::size_t i = 0; i < model.type_of_layer.size(); ++i) {
    if (model.rotates(i)) layers.push_back(i);
  }
  return layers;
}
std::vector<std::size_t> layers_of_type(const rope& model, const std::string& name) {
  std::vector<std::size_t> layers;
  for (std::size_t i = 0; i < model.type_of_layer.size(); ++i) {
    if (model.layer(i).name == name) layers.push_back(i);
  }
  return layers;
}
using indices = std::vector<std::size_t>;

json model(const char* type, std::size_t layers, const json& more = json::object()) {
  json config = {
      {"model_type", type}, {"head_dim", 128}, {"num_hidden_layers", layers}, {"max_position_embeddings", 4096}};
  config.update(more);
  return config;
}

TEST(Layers, EveryFourthOfSmolLM3AndLlama4DoesNotRotate) {
  EXPECT_EQ(layers_that_rotate(from_huggingface(model("smollm3", 9))), (indices{0, 1, 2, 4, 5, 6, 8}));
  EXPECT_EQ(layers_that_rotate(from_huggingface(model("smollm3", 5, {{"no_rope_layer_interval", 2}}))),
            (indices{0, 2, 4}));
  const rope llama4 = from_huggingface(model("llama4_text", 5, {{"no_rope_layers", {0, 1, 1, 0, 1}}}));
  EXPECT_EQ(layers_that_rotate(llama4), (indices{1, 2, 4}));
  EXPECT_EQ(llama4.layer(1).pairing, pairing::interleaved);
  EXPECT_EQ(llama4.layer(1).rope_theta, 500000.0);
  EXPECT_EQ(llama4.spectrum(0).pairs(), 0u);
  expect_refused(
      [] {
        from_huggingface(model("smollm3", 5, {{"no_rope_layers", {1, 0}}}));
      },
      "from_huggingface", {"no_rope_layers", "5 entries"});
  expect_refused(
      [] {
        from_huggingface(model("smollm3", 2, {{"no_rope_layers", {1, 2}}}));
      },
      "from_huggingface", {"no_rope_layers[1] is 2"});
}

TEST(Layers, ListWinsOverTheIntervalThatStandsBesideIt) {
  const json both = {{"no_rope_layers", {0, 1, 1}}, {"no_rope_layer_interval", 2}};
  EXPECT_EQ(layers_that_rotate(from_huggingface(model("smollm3", 3, both))), (indices{1, 2}));
}

TEST(Layers, QueryTemperatureOfLlama4InLayersThatDoNotRotate) {
  const rope tuned = from_huggingface(model("llama4_text", 4, {{"attn_temperature_tuning", 4}}));
  EXPECT_FALSE(tuned.layer(0).query_temperature);
  ASSERT_TRUE(tuned.layer(3).query_temperature);
  // 1 + 0.1 ln(1 + floor((p + 1) / 8192))
  EXPECT_EQ(tuned.layer(3).query_temperature->multiplier(8190), 1.0);
  EXPECT_NEAR(tuned.layer(3).query_temperature->multiplier(8191), 1.0693147180559945, 1e-15);
  EXPECT_NEAR(tuned.layer(3).query_temperature->multiplier(100000), 1.0 + 0.1 * std::log(13.0), 1e-15);
  EXPECT_FALSE(
      from_huggingface(model("llama4_text", 4, {{"attn_temperature_tuning", false}})).layer(3).query_temperature);
}

TEST(Layers, Llama4ScoutHasBandsThatMeet) {
  const json block = {{"rope_type", "llama3"},
                      {"factor", 16.0},
                      {"low_freq_factor", 1.0},
                      {"high_freq_factor", 1.0},
                      {"original_max_position_embeddings", 8192}};
  const json text = model("llama4_text", 4, {{"rope_theta", 500000.0}, {"rope_scaling", block}});
  const rotary::spectrum scout = from_huggingface({{"model_type", "llama4"}, {"text_config", text}}).spectrum(0);
  for (std::size_t j = 0; j < 64; ++j) {
    const double plain = std::pow(500000.0, -static_cast<double>(j) / 64.0);
    const bool turns_once = 8192.0 * plain > 2.0 * 3.14159265358979;  // the last such pair is 34
    EXPECT_EQ(turns_once, j <= 34);
    EXPECT_NEAR(scout.inv_freq()[j], turns_once ? plain : plain / 16.0, plain * 1e-14) << "pair " << j;
  }
}

TEST(Layers, SlidingLayersAloneRotateInCohere2AndExaone4) {
  EXPECT_EQ(layers_that_rotate(from_huggingface(model("cohere2", 8))), (indices{0, 1, 2, 4, 5, 6}));
  EXPECT_EQ(layers_that_rotate(from_huggingface(model("cohere2", 4, {{"sliding_window_pattern", 2}}))),
            (indices{0, 2}));
  const json types = {"full_attention", "sliding_attention", "full_attention"};
  EXPECT_EQ(
      layers_that_rotate(from_huggingface(model("exaone4", 3, {{"layer_types", types}, {"sliding_window", 4096}}))),
      (indices{1}));
  for (const char* type : {"exaone4", "exaone_moe"}) {
    const auto exaone = [&](const json& more) { return from_huggingface(model(type, 4, more)); };
    const json theta = {{"rope_theta", 1e6}, {"sliding_window", 128}};
    EXPECT_EQ(layers_that_rotate(exaone(theta)), (indices{0, 1, 2}));
    EXPECT_TRUE(exaone({{"rope_theta", 1e6}, {"sliding_window", nullptr}}).rotates(3));
    expect_refused([&] { exaone({{"rope_theta", 1e6}}); }, "from_huggingface", {"sliding_window is missing", "null"});
  }
  expect_refused(
      [] {
        from_huggingface(model("cohere2", 1, {{"layer_types", {"chunked_attention"}}}));
      },
      "from_huggingface", {"layer_types[0] is \"chunked_attention\"", "sliding_attention"});
}

// arcee-ai/Trinity-Nano-Preview, of whose layers the test keeps the first eight.
TEST(Layers, SlidingLayersAloneRotateInAfmoe) {
  const json trinity = {{"global_attn_every_n_layers", 4}, {"rope_scaling", nullptr}, {"rope_theta", 10000}};
  const rope nano = from_huggingface(model("afmoe", 8, trinity));
  EXPECT_EQ(layers_that_rotate(nano), (indices{0, 1, 2, 4, 5, 6}));
  EXPECT_EQ(nano.layer(0).pairing, pairing::split_half);
  const json types = {"full_attention", "sliding_attention"};
  EXPECT_EQ(layers_that_rotate(from_huggingface(model("afmoe", 2, {{"layer_types", types}}))), (indices{1}));
  EXPECT_EQ(layers_that_rotate(from_huggingface(model("afmoe", 4, {{"global_attn_every_n_layers", 2}}))),
            (indices{0, 2}));
}

TEST(Layers, Gemma3) {
  const rope gemma =
      from_huggingface({{"model_type", "gemma3"},
                        {"text_config",
                         {{"model_type", "gemma3_text"},
                          {"hidden_size", 2560},
                          {"num_hidden_layers", 13},
                          {"rope_scaling", {{"factor", 8.0}, {"rope_type", "linear"}}}}}});  // as in the 4B's config
  EXPECT_EQ(layers_of_type(gemma, "full_attention"), (indices{5, 11}));
  EXPECT_EQ(gemma.layer(0).head_dim, 256u);
  EXPECT_EQ(gemma.spectrum(5).inv_freq()[0], 0.125);  // at position 100: angle 12.5
  EXPECT_EQ(gemma.spectrum(0).inv_freq()[0], 1.0);
  EXPECT_NEAR(gemma.spectrum(5).inv_freq()[64], 0.125e-3, 1e-18);
  EXPECT_NEAR(gemma.spectrum(0).inv_freq()[64], 1e-2, 1e-17);
}

TEST(Layers, Gemma3InTheNewForm) {
  const json parameters = {{"full_attention", {{"rope_type", "linear"}, {"factor", 8.0}, {"rope_theta", 1e6}}},
                           {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 1e4}}}};
  const json types = {"sliding_attention", "full_attention"};
  const rope gemma = from_huggingface(
      {{"model_type", "gemma3_text"}, {"head_dim", 128}, {"layer_types", types}, {"rope_parameters", parameters}});
  EXPECT_EQ(gemma.spectrum(1).inv_freq()[0], 0.125);
  EXPECT_NEAR(gemma.spectrum(1).inv_freq()[32], 0.125e-3, 1e-18);
  EXPECT_NEAR(gemma.spectrum(0).inv_freq()[32], 1e-2, 1e-17);
  json third = parameters;
  third["chunked_attention"] = {{"rope_type", "default"}, {"rope_theta", 1e5}};
  expect_refused(
      [&] {
        from_huggingface({{"model_type", "gemma3_text"}, {"rope_parameters", third}});
      },
      "from_huggingface", {"rope_parameters.chunked_attention", "gemma3_text"});
}

TEST(Layers, LayersAreUnknownWithoutTheirNumber) {
  const rope gemma = from_huggingface({{"model_type", "gemma3_text"}});
  EXPECT_EQ(gemma.types.size(), 2u);
  expect_refused([&] { gemma.layer(0); }, "rope::layer", {"index is 0", "2 types"});
  expect_refused([] { from_huggingface(model("gemma3_text", 1000000)); }, "from_huggingface",
                 {"num_hidden_layers is 1000000", "65536"});
}

TEST(Layers, Olmo3ScalesFullLayersOnly) {
  const json block = {{"rope_type", "yarn"},
                      {"factor", 8.0},
                      {"original_max_position_embeddings", 8192},
                      {"attention_factor", 1.2079441541679836}};
  const rope olmo = from_huggingface(model("olmo3", 8, {{"rope_theta", 500000}, {"rope_scaling", block}}));
  EXPECT_EQ(layers_of_type(olmo, "full_attention"), (indices{3, 7}));
  EXPECT_EQ(olmo.spectrum(3).magnitude(), 1.2079441541679836);
  EXPECT_EQ(olmo.spectrum(0).magnitude(), 1.0);
  EXPECT_NEAR(olmo.spectrum(3).inv_freq()[63] * 8.0, olmo.spectrum(0).inv_freq()[63], 1e-20);
}

TEST(Layers, ModernBertStartsWithAFullLayer) {
  const rope bert = from_huggingface({{"model_type", "modernbert"},
                                      {"hidden_size", 768},
                                      {"num_attention_heads", 12},
                                      {"num_hidden_layers", 7},
                                      {"global_attn_every_n_layers", 3},
                                      {"global_rope_theta", 160000.0},
                                      {"local_rope_theta", 10000.0}});
  EXPECT_EQ(layers_of_type(bert, "full_attention"), (indices{0, 3, 6}));
  EXPECT_EQ(bert.layer(0).rope_theta, 160000.0);
  EXPECT_EQ(bert.layer(1).rope_theta, 10000.0);
}

TEST(Layers, Gemma4HasTwoHeadSizesAndAProportionalSpectrum) {
  const json parameters = {
      {"full_attention", {{"rope_type", "proportional"}, {"partial_rotary_factor", 0.25}, {"rope_theta", 1e6}}},
      {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 1e4}}}};
  const rope gemma = from_huggingface({{"model_type", "gemma4_text"},
                                       {"head_dim", 256},
                                       {"global_head_dim", 512},
                                       {"num_hidden_layers", 3},
                                       {"layer_types", {"sliding_attention", "sliding_attention", "full_attention"}},
                                       {"rope_parameters", parameters}});
  EXPECT_EQ(layers_of_type(gemma, "full_attention"), (indices{2}));
  EXPECT_EQ(gemma.layer(0).head_dim, 256u);
  EXPECT_EQ(gemma.layer(0).rotary_dim, 256u);
  EXPECT_EQ(gemma.layer(2).rotary_dim, 512u);  // 64 of 256 pairs turn
  expect_spectrum(
      gemma.spectrum(2),
      reference::policy_spectrum(
          {{"policy", "proportional"}, {"rotary_dim", 512}, {"base", 1e6}, {"partial_rotary_factor", 0.25}}));
  EXPECT_NE(gemma.spectrum(2).inv_freq()[63], 0.0);
  EXPECT_EQ(gemma.spectrum(2).inv_freq()[64], 0.0);
  expect_refused(
      [] {
        from_huggingface({{"model_type", "gemma4_text"}});
      },
      "from_huggingface", {"rope_theta is missing"});
}

TEST(Layers, ParametersOfEachTypeOfLayer) {
  const json parameters = {{"full_attention", {{"rope_type", "linear"}, {"factor", 4.0}, {"rope_theta", 5e5}}},
                           {"sliding_attention", {{"rope_type", "default"}}}};
  const json types = {"sliding_attention", "full_attention"};
  const rope laguna = from_huggingface(
      model("laguna", 2, {{"rope_theta", 2e4}, {"layer_types", types}, {"rope_parameters", parameters}}));
  EXPECT_EQ(laguna.layer(1).rope_theta, 5e5);
  EXPECT_EQ(laguna.spectrum(1).inv_freq()[0], 0.25);
  EXPECT_EQ(laguna.layer(0).rope_theta, 2e4);
  EXPECT_EQ(laguna.spectrum(0).inv_freq()[0], 1.0);
  expect_refused(
      [&] {
        from_huggingface(
            model("laguna", 1,
                  {{"layer_types", {"linear_attention"}}, {"rope_theta", 2e4}, {"rope_parameters", parameters}}));
      },
      "from_huggingface", {"layer_types[0] is \"linear_attention\""});
  const json six = model("laguna", 6, {{"layer_types", types}, {"rope_theta", 2e4}, {"rope_parameters", parameters}});
  expect_refused([&] { from_huggingface(six); }, "from_huggingface", {"layer_types is", "must have 6 entries"});
  json both_thetas = parameters;
  both_thetas["sliding_attention"]["rope_theta"] = 1e4;
  const json gemma = model("gemma4_text", 6, {{"layer_types", types}, {"rope_parameters", both_thetas}});
  expect_refused([&] { from_huggingface(gemma); }, "from_huggingface", {"layer_types is", "must have 6 entries"});
  json with_null = parameters;
  with_null["full_attention"] = nullptr;
  expect_refused(
      [&] {
        from_huggingface(model("laguna", 2, {{"rope_parameters", with_null}}));
      },
      "from_huggingface", {"rope_parameters.full_attention is null", "default"});
  json unknown = parameters;
  unknown["full_attention"]["gamma"] = 3;
  expect_refused(
      [&] {
        from_huggingface(model("laguna", 2, {{"rope_theta", 2e4}, {"rope_parameters", unknown}}));
      },
      "from_huggingface", {"rope_parameters.full_attention.gamma is 3"});
}

TEST(Layers, CrossAttentionOfMllamaDoesNotRotate) {
  EXPECT_EQ(layers_that_rotate(from_huggingface(model("mllama_text_model", 5, {{"cross_attention_layers", {1, 3}}}))),
            (indices{0, 2, 4}));
}

TEST(Layers, CrossAttentionOfLayersThatThereAreNot) {
  expect_refused(
      [] {
        from_huggingface(model("mllama_text_model", 5, {{"cross_attention_layers", {1, 5}}}));
      },
      "from_huggingface", {"cross_attention_layers[1] is 5", "0 to 4"});
}

TEST(Layers, AnEntryForEachLayerAndNoMore) {
  const json types = {"sliding_attention", "full_attention", "sliding_attention"};
  const json more = {{"layer_types", types}, {"rope_theta", 1e6}};
  EXPECT_EQ(layers_of_type(from_huggingface(model("gemma3_text", 3, more)), "full_attention"), (indices{1}));
  for (const std::size_t layers : {2u, 4u}) {
    expect_refused([&] { from_huggingface(model("gemma3_text", layers, more)); }, "from_huggingface",
                   {"layer_types is a list of 3", (std::to_string(layers) + " entries, num_hidden_layers").c_str()});
  }
  json wrong = more;
  wrong["layer_types"][2] = "sliding";
  expect_refused([&] { from_huggingface(model("gemma3_text", 3, wrong)); }, "from_huggingface",
                 {"layer_types[2] is \"sliding\""});
}

TEST(Layers, CrossAttentionLayersMustBeStated) {
  expect_refused([] { from_huggingface(model("mllama_text_model", 5)); }, "from_huggingface",
                 {"cross_attention_layers is missing"});
}

TEST(Layers, MiMo) {
  const json config = {{"rope_theta", 5e6},
                       {"swa_rope_theta", 1e4},
                       {"head_dim", 192},
                       {"partial_rotary_factor", 0.334},
                       {"hybrid_layer_pattern", {0, 1, 1}}};
  const rope mimo = from_huggingface(model("mimo_v2_flash", 3, config));
  EXPECT_EQ(layers_of_type(mimo, "full_attention"), (indices{0}));
  EXPECT_EQ(mimo.layer(0).rope_theta, 5e6);
  EXPECT_EQ(mimo.layer(1).rope_theta, 1e4);
  EXPECT_EQ(mimo.layer(1).rotary_dim, 64u);
}

TEST(Layers, KimiLinearNeverRotates) {
  const rope kimi =
      from_huggingface({{"model_type", "kimi_linear"}, {"qk_rope_head_dim", 64}, {"rope_theta", 10000.0}});
  EXPECT_FALSE(kimi.rotates(0));
}

// ---- models with rules of their own

TEST(Models, ChatGLM) {
  const json config = {{"model_type", "chatglm"}, {"kv_channels", 128}, {"rope_ratio", 50}, {"seq_length", 32768}};
  EXPECT_EQ(layer_of(config).rope_theta, 500000.0);
  EXPECT_EQ(layer_of(without(config, "rope_ratio")).rope_theta, 10000.0);
  EXPECT_EQ(layer_of(config).rotary_dim, 64u);
  EXPECT_EQ(from_huggingface(config).max_position_embeddings, 32768);
}

TEST(Models, Qwen1) {
  const json config = {
      {"model_type", "qwen"}, {"kv_channels", 128},      {"rotary_emb_base", 10000}, {"rotary_pct", 1.0},
      {"seq_length", 2048},   {"use_dynamic_ntk", true}, {"use_logn_attn", true},    {"max_position_embeddings", 8192}};
  const layer_rope layer = layer_of(config);
  EXPECT_TRUE(layer.needs_sequence_length());
  // alpha = 2^ceil(log2(5000 / 2048) + 1) - 1 = 7
  expect_spectrum(layer.spectrum(5000),
                  reference::policy_spectrum({{"policy", "ntk"}, {"rotary_dim", 128}, {"base", 1e4}, {"alpha", 7.0}}));
  ASSERT_TRUE(layer.query_temperature);
  EXPECT_EQ(layer.query_temperature->multiplier(2047), 1.0);
  EXPECT_NEAR(layer.query_temperature->multiplier(4095), 12.0 / 11.0, 1e-15);
  json off = config;
  off["use_dynamic_ntk"] = off["use_logn_attn"] = false;
  EXPECT_FALSE(layer_of(off).needs_sequence_length());
  EXPECT_FALSE(layer_of(off).query_temperature);
  expect_refused([&] { from_huggingface(without(config, "seq_length")); }, "from_huggingface",
                 {"seq_length is missing"});
}

TEST(Models, MinistralsTemperature) {
  const json block = {{"rope_type", "yarn"}, {"factor", 16.0},        {"original_max_position_embeddings", 16384},
                      {"mscale", 1.0},       {"mscale_all_dim", 1.0}, {"llama_4_scaling_beta", 0.1}};
  const layer_rope layer = layer_of({{"model_type", "ministral3"}, {"rope_theta", 1e6}, {"rope_parameters", block}});
  ASSERT_TRUE(layer.query_temperature);
  EXPECT_EQ(layer.query_temperature->multiplier(16383), 1.0);
  EXPECT_NEAR(layer.query_temperature->multiplier(16384), 1.0693147180559945, 1e-15);
}

TEST(Models, HunyuanVisionHasFourAxes) {
  const json block = {
      {"type", "xdrope"}, {"alpha", 1000.0}, {"factor", 1.0},         {"beta_fast", 32},
      {"beta_slow", 1},   {"mscale", 1.0},   {"mscale_all_dim", 1.0}, {"xdrope_section", {16, 16, 16, 16}}};
  const layer_rope layer = layer_of({{"model_type", "hunyuan_vl"}, {"head_dim", 128}, {"rope_scaling", block}});
  ASSERT_TRUE(layer.axes());
  EXPECT_EQ(layer.axes()->axes(), 4u);
  EXPECT_EQ((*layer.axes())[63], 3u);
  EXPECT_EQ(std::get<rotary::ntk>(layer.scaling).alpha, 1000.0);
}

TEST(Models, SectionsOfAxesMustBeStatedOnce) {
  for (const json& block : {json{{"type", "mrope"}}, json{{"rope_type", "default"}, {"type", "mrope"}}}) {
    expect_refused(
        [&] {
          from_huggingface(llama({{"rope_scaling", block}}));
        },
        "from_huggingface", {"rope_scaling.mrope_section is missing", "type is mrope"});
  }
  expect_refused(
      [] {
        from_huggingface(llama({{"rope_scaling", {{"type", "xdrope"}, {"alpha", 1000.0}}}}));
      },
      "from_huggingface", {"rope_scaling.xdrope_section is missing"});
  const json both = {{"type", "mrope"}, {"mrope_section", {16, 24}}, {"xdrope_section", {10, 10, 10, 10}}};
  expect_refused(
      [&] {
        from_huggingface(llama({{"rope_scaling", both}}));
      },
      "from_huggingface", {"rope_scaling.xdrope_section is [10, 10, 10, 10]", "mrope_section"});
  const json own = {{"model_type", "qwen2_vl"}, {"head_dim", 128}, {"rope_scaling", {{"type", "mrope"}}}};
  EXPECT_EQ(layer_of(own).axes(), rotary::mrope_chunked({16, 24, 24}));
}

TEST(Models, SectionsThatDoNotCoverThePairs) {
  const auto with = [](const json& section) {
    return llama({{"head_dim", 128}, {"rope_scaling", {{"rope_type", "default"}, {"mrope_section", section}}}});
  };
  EXPECT_EQ(layer_of(with({16, 24, 24})).axes(), rotary::mrope_chunked({16, 24, 24}));
  expect_refused([&] { from_huggingface(with({22, 21, 20})); }, "from_huggingface", {"mrope_section is 63", "64"});
}

TEST(Models, DeepSeeksPairingAsTheConfigStates) {
  const json config = {{"model_type", "deepseek_v3"}, {"qk_rope_head_dim", 64}};
  EXPECT_EQ(layer_of(config).pairing, pairing::interleaved);
  json stated = config;
  stated["rope_interleave"] = false;
  EXPECT_EQ(layer_of(stated).pairing, pairing::split_half);
}

// DeepSeek-OCR's and DeepSeek-VL2-tiny's language model.
TEST(Models, DeepSeekWithoutLatentAttentionIsLlama) {
  const json text = {{"model_type", "deepseek_v2"},
                     {"use_mla", false},
                     {"qk_nope_head_dim", 0},
                     {"qk_rope_head_dim", 0},
                     {"hidden_size", 1280},
                     {"num_attention_heads", 10},
                     {"rope_scaling",
                      {{"type", "yarn"},
                       {"factor", 40},
                       {"original_max_position_embeddings", 4096},
                       {"mscale", 1.0},
                       {"mscale_all_dim", 1.0}}}};
  const layer_rope layer = layer_of({{"model_type", "deepseek_vl_v2"}, {"language_config", text}});
  EXPECT_EQ(layer.head_dim, 128u);
  EXPECT_EQ(layer.rotary_dim, 128u);
  EXPECT_EQ(layer.pairing, pairing::split_half);
  EXPECT_EQ(layer.softmax_scale_multiplier, 1.0);
  json with = text;
  with["use_mla"] = true;
  expect_refused([&] { from_huggingface(with); }, "from_huggingface", {"qk_rope_head_dim is 0", "[1, 65536]"});
  with["qk_rope_head_dim"] = 64;
  EXPECT_EQ(layer_of(with).head_dim, 64u);
  EXPECT_EQ(layer_of(with).pairing, pairing::interleaved);
}

TEST(Models, ChannelsOfLatentAttentionAreForModelsThatHaveIt) {
  for (const int channels : {0, 64}) {
    expect_refused(
        [&] {
          from_huggingface(llama({{"qk_rope_head_dim", channels}}));
        },
        "from_huggingface", {"qk_rope_head_dim is", "model_type llama"});
    const json off = {{"qk_rope_head_dim", channels}, {"use_mla", false}};
    EXPECT_EQ(layer_of(llama(off)).head_dim, 80u);
  }
  huggingface_options half;
  half.pairing = pairing::split_half;
  EXPECT_EQ(layer_of(llama({{"model_type", "brand_new"}, {"qk_rope_head_dim", 32}}), half).head_dim, 32u);
}

TEST(Models, LatentAttentionThatCannotBeSwitchedOff) {
  for (const char* type : {"deepseek_v3", "kimi_k2", "longcat_flash"}) {
    expect_refused(
        [&] {
          from_huggingface(llama({{"model_type", type}, {"use_mla", false}}));
        },
        "from_huggingface", {"use_mla is false", type});
  }
}

TEST(Models, LatentAttentionThatDoesNotRotate) {
  const json kimi = {{"model_type", "kimi_linear"}, {"qk_rope_head_dim", 0}, {"mla_use_nope", true}};
  EXPECT_FALSE(layer_of(kimi).rotates());
  json rotating = kimi;
  rotating["mla_use_nope"] = false;
  expect_refused([&] { from_huggingface(rotating); }, "from_huggingface", {"mla_use_nope is false", "true"});
  expect_refused(
      [] {
        from_huggingface({{"model_type", "deepseek_v3"}, {"qk_rope_head_dim", 64}, {"mla_use_nope", true}});
      },
      "from_huggingface", {"mla_use_nope is true", "deepseek_v3"});
  EXPECT_TRUE(layer_of({{"model_type", "deepseek_v3"}, {"mla_use_nope", false}}).rotates());
  huggingface_options half;
  half.pairing = pairing::split_half;
  EXPECT_FALSE(layer_of(llama({{"model_type", "brand_new"}, {"mla_use_nope", true}}), half).rotates());
}

// The published settings of models: head channels, rotated channels, theta, pairing ('N' split-half, 'G' interleaved).
TEST(Models, PublishedSettings) {
  struct row {
    const char* config;
    std::size_t head_dim, rotary_dim;
    double theta;
    char pair;
  };
  const row rows[] = {
      {R"({"model_type":"qwen3_next","head_dim":256,"rope_theta":1e7,"partial_rotary_factor":0.25})", 256, 64, 1e7,
       'N'},
      {R"({"model_type":"qwen3_next","rope_theta":1e7})", 256, 64, 1e7, 'N'},
      {R"({"model_type":"phi","hidden_size":2560,"num_attention_heads":32,"partial_rotary_factor":0.4})", 80, 32, 1e4,
       'N'},
      {R"({"model_type":"phi","hidden_size":2048,"num_attention_heads":32})", 64, 32, 1e4, 'N'},
      {R"({"model_type":"gptj","n_embd":4096,"n_head":16,"rotary_dim":64,"n_positions":2048})", 256, 64, 1e4, 'G'},
      {R"({"model_type":"codegen","n_embd":2048,"n_head":16,"rotary_dim":64})", 128, 64, 1e4, 'G'},
      {R"({"model_type":"gpt_neox","hidden_size":2048,"num_attention_heads":16})", 128, 32, 1e4, 'N'},
      {R"({"model_type":"stablelm","hidden_size":2048,"num_attention_heads":32})", 64, 16, 1e4, 'N'},
      {R"({"model_type":"falcon","hidden_size":4544,"num_attention_heads":71,"alibi":false})", 64, 64, 1e4, 'N'},
      {R"({"model_type":"falcon_h1","head_dim":64,"rope_theta":100000000000.0})", 64, 64, 1e11, 'N'},
      {R"({"model_type":"deepseek_v3","qk_rope_head_dim":64,"rope_theta":10000})", 64, 64, 1e4, 'G'},
      {R"({"model_type":"glm4","head_dim":128,"partial_rotary_factor":0.5})", 128, 64, 1e4, 'G'},
      {R"({"model_type":"glm","head_dim":128})", 128, 64, 1e4, 'G'},
      {R"({"model_type":"glm4_moe","head_dim":128,"rope_theta":1000000})", 128, 64, 1e6, 'N'},
      {R"({"model_type":"gpt_oss","head_dim":64,"rope_scaling":{"rope_type":"default"}})", 64, 64, 150000, 'N'},
      {R"({"model_type":"internlm2","hidden_size":4096,"num_attention_heads":32,"rope_theta":1e6})", 128, 128, 1e6,
       'N'},
      {R"({"model_type":"minicpm","hidden_size":2304,"num_attention_heads":36})", 64, 64, 1e4, 'N'},
      {R"({"model_type":"cohere","hidden_size":4096,"num_attention_heads":32,"rope_theta":1e4})", 128, 128, 1e4, 'G'},
      {R"({"model_type":"starcoder2","hidden_size":6144,"num_attention_heads":48,"rope_theta":1e6})", 128, 128, 1e6,
       'N'},
      {R"({"model_type":"ernie4_5","head_dim":128,"rope_theta":500000.0})", 128, 128, 5e5, 'G'},
      {R"({"model_type":"nemotron","hidden_size":3072,"num_attention_heads":24,"head_dim":128})", 128, 64, 1e4, 'N'},
      {R"({"model_type":"recurrent_gemma","hidden_size":2560,"num_attention_heads":10,"rope_theta":1e4})", 256, 128,
       1e4, 'N'},
      {R"({"model_type":"nomic_bert","n_embd":768,"n_head":12,"rotary_emb_base":1000,"rotary_emb_fraction":1.0,
           "rotary_emb_interleaved":false,"rotary_emb_scale_base":null})",
       64, 64, 1e3, 'N'},
      {R"({"model_type":"roformer","hidden_size":768,"num_attention_heads":12,"rotary_value":false})", 64, 64, 1e4,
       'G'},
      {R"({"model_type":"esm","hidden_size":320,"num_attention_heads":16,"position_embedding_type":"rotary"})", 20, 20,
       1e4, 'N'},
      {R"({"model_type":"gptj","n_embd":4096,"n_head":16,"rotary_dim":null})", 256, 256, 1e4, 'G'},
      {R"({"model_type":"ernie4_5","hidden_size":1024,"num_attention_heads":16,"rope_theta":5e5})", 128, 128, 5e5, 'G'},
      {R"({"model_type":"helium","hidden_size":1024,"num_attention_heads":16,"rope_theta":1e5})", 128, 128, 1e5, 'G'},
      {R"({"model_type":"minimax_m2","hidden_size":3072,"num_attention_heads":48,"rope_theta":5e6})", 128, 128, 5e6,
       'N'},
      {R"({"model_type":"glm4_moe","hidden_size":4096,"num_attention_heads":64,"rope_theta":1e6})", 64, 32, 1e6, 'N'},
      {R"({"model_type":"qwen3_vl_moe_text","hidden_size":2048,"num_attention_heads":32,"rope_theta":5e6,
           "rope_scaling":{"type":"default","mrope_section":[12,10,10]}})",
       64, 64, 5e6, 'N'},
      {R"({"model_type":"qwen2_moe","hidden_size":2048,"num_attention_heads":16})", 128, 128, 1e4, 'N'},
      {R"({"model_type":"qwen2_5_omni_text","hidden_size":3584,"num_attention_heads":28})", 128, 128, 1e6, 'N'},
      {R"({"model_type":"olmo","hidden_size":2048,"num_attention_heads":16})", 128, 128, 1e4, 'N'},
      {R"({"model_type":"granitemoe","hidden_size":1536,"num_attention_heads":24})", 64, 64, 1e4, 'N'},
      {R"({"model_type":"granitemoeshared","hidden_size":1536,"num_attention_heads":24})", 64, 64, 1e4, 'N'},
      {R"({"model_type":"gemma2","head_dim":128,"hidden_size":4608,"num_attention_heads":32})", 128, 128, 1e4, 'N'},
      {R"({"model_type":"aria_text","hidden_size":2560,"num_attention_heads":20,"rope_theta":5e6})", 128, 128, 5e6,
       'N'},
      {R"({"model_type":"bamba","hidden_size":4096,"num_attention_heads":32,"rope_theta":1e4})", 128, 64, 1e4, 'N'},
      {R"({"model_type":"diffllama","hidden_size":2048,"num_attention_heads":32})", 64, 64, 1e4, 'N'},
      {R"({"model_type":"doge","hidden_size":1024,"num_attention_heads":8,"rope_theta":1e4})", 128, 128, 1e4, 'N'},
      {R"({"model_type":"dots1","hidden_size":4096,"num_attention_heads":32,"rope_theta":1e7})", 128, 128, 1e7, 'N'},
      {R"({"model_type":"exaone","hidden_size":4096,"num_attention_heads":32,"rope_theta":5e5,"rope_scaling":null})",
       128, 128, 5e5, 'N'},
      {R"({"model_type":"flex_olmo","hidden_size":4096,"num_attention_heads":32})", 128, 128, 5e5, 'N'},
      {R"({"model_type":"glm4_moe_lite","hidden_size":2048,"num_attention_heads":20,"rope_theta":1e6,
           "rope_scaling":null,"partial_rotary_factor":1.0,"qk_nope_head_dim":192,"qk_rope_head_dim":64})",
       64, 64, 1e6, 'G'},
      {R"({"model_type":"jais2","hidden_size":3328,"num_attention_heads":26,"rope_theta":5e5})", 128, 128, 5e5, 'N'},
      {R"({"model_type":"jetmoe","hidden_size":2048,"num_attention_heads":32,"kv_channels":128,"rope_theta":1e4})", 128,
       128, 1e4, 'N'},
      {R"({"model_type":"lfm2","hidden_size":2048,"num_attention_heads":32,"rope_theta":1e6,"theta":1e6,
           "layer_types":["conv","full_attention"]})",
       64, 64, 1e6, 'N'},
      {R"({"model_type":"lfm2_vl","text_config":{"model_type":"lfm2","hidden_size":1024,"num_attention_heads":16}})",
       64, 64, 1e6, 'N'},
      {R"({"model_type":"lfm2_moe","hidden_size":2048,"num_attention_heads":32})", 64, 64, 1e6, 'N'},
      {R"({"model_type":"ministral","head_dim":128,"hidden_size":4096,"num_attention_heads":32,"rope_theta":1e8})", 128,
       128, 1e8, 'N'},
      {R"({"model_type":"solar_open","hidden_size":4096,"num_attention_heads":64,"rope_theta":1e6})", 128, 128, 1e6,
       'N'},
      {R"({"model_type":"vaultgemma","hidden_size":1152,"num_attention_heads":4})", 256, 256, 1e4, 'N'},
      {R"({"model_type":"youtu","hidden_size":2048,"num_attention_heads":16,"qk_rope_head_dim":64,"rope_theta":1.6e6,
           "rope_interleave":true})",
       64, 64, 1.6e6, 'G'},
  };
  for (const row& expected : rows) {
    SCOPED_TRACE(expected.config);
    const layer_rope layer = from_huggingface_text(expected.config).types[0];
    EXPECT_EQ(layer.head_dim, expected.head_dim);
    EXPECT_EQ(layer.rotary_dim, expected.rotary_dim);
    EXPECT_EQ(layer.rope_theta, expected.theta);
    EXPECT_EQ(layer.pairing, expected.pair == 'G' ? pairing::interleaved : pairing::split_half);
  }
}

TEST(Models, PublishedSections) {
  struct row {
    const char* type;
    std::size_t head_dim, pairs;
    double fraction;
    std::vector<std::size_t> section;
    mrope_layout layout;
  };
  const row rows[] = {{"qwen2_5_vl_text", 128, 64, 1.0, {16, 24, 24}, mrope_layout::chunked},
                      {"qwen3_vl_moe_text", 128, 64, 1.0, {24, 20, 20}, mrope_layout::interleaved},
                      {"qwen3_5_moe_text", 256, 32, 0.25, {11, 11, 10}, mrope_layout::interleaved},
                      {"glm4v_text", 128, 32, 0.5, {8, 12, 12}, mrope_layout::chunked},
                      {"glm4v_moe_text", 128, 32, 0.5, {8, 12, 12}, mrope_layout::chunked},
                      {"glm_ocr_text", 64, 32, 1.0, {8, 12, 12}, mrope_layout::chunked},
                      {"ernie4_5_vl_moe_text", 128, 64, 1.0, {22, 22, 20}, mrope_layout::height_width_alternating}};
  for (const row& expected : rows) {
    SCOPED_TRACE(expected.type);
    const layer_rope layer = layer_of({{"model_type", expected.type},
                                       {"head_dim", expected.head_dim},
                                       {"rope_theta", 1e6},
                                       {"partial_rotary_factor", expected.fraction}});
    ASSERT_TRUE(layer.mrope);
    EXPECT_EQ(layer.mrope->section, expected.section);
    EXPECT_EQ(layer.mrope->layout, expected.layout);
    EXPECT_EQ(layer.axes()->pairs(), expected.pairs);
    EXPECT_EQ(layer.spectrum().pairs(), expected.pairs);
  }
}

// GLM-4.1V and GLM-OCR: transformers' default sections cover half of a head of 128, their checkpoints state the rest.
TEST(Models, SectionsThatTheDefaultsDoNotCover) {
  for (const char* type : {"glm4v_text", "glm_ocr_text"}) {
    const json config = {{"model_type", type}, {"head_dim", 128}};
    expect_refused([&] { from_huggingface(config); }, "from_huggingface", {"mrope_section is 32", "64"});
    json stated = config;
    stated["rope_scaling"] = {{"type", "default"}, {"mrope_section", {16, 24, 24}}};
    EXPECT_EQ(layer_of(stated).axes(), rotary::mrope_chunked({16, 24, 24})) << type;
  }
}

// internlm/internlm3-8b-instruct
TEST(Models, InternLM3IsDynamic) {
  const json config = {{"model_type", "internlm3"},
                       {"head_dim", 128},
                       {"max_position_embeddings", 32768},
                       {"rope_theta", 50000000},
                       {"rope_scaling", {{"factor", 6.0}, {"rope_type", "dynamic"}}}};
  const layer_rope layer = layer_of(config);
  EXPECT_EQ(layer.pairing, pairing::split_half);
  const double unscaled = std::pow(5e7, -126.0 / 128.0);
  EXPECT_NEAR(layer.spectrum(32768).inv_freq()[63], unscaled, unscaled * 1e-13);
  // theta * (6 * 65536 / 32768 - 5)^(128 / 126)
  const double theta = 5e7 * std::pow(7.0, 128.0 / 126.0), w = std::pow(theta, -126.0 / 128.0);
  EXPECT_NEAR(layer.spectrum(65536).inv_freq()[63], w, w * 1e-13);
}

// GLM-4.5V states its sections; half of its head of 128 rotates where it says nothing else.
TEST(Models, Glm45V) {
  const json text = {{"model_type", "glm4v_moe_text"},
                     {"head_dim", 128},
                     {"rope_theta", 10000.0},
                     {"rope_scaling", {{"rope_type", "default"}, {"mrope_section", {8, 12, 12}}}}};
  const layer_rope layer = layer_of({{"model_type", "glm4v_moe"}, {"text_config", text}});
  EXPECT_EQ(layer.rotary_dim, 64u);
  EXPECT_EQ(layer.pairing, pairing::split_half);
  EXPECT_EQ(layer.axes(), rotary::mrope_chunked({8, 12, 12}));
}

TEST(Models, ThetaOfLfm2UnderItsOwnName) {
  const json lfm2 = {{"model_type", "lfm2"}, {"head_dim", 64}, {"theta", 500000.0}};
  EXPECT_EQ(layer_of(lfm2).rope_theta, 500000.0);
  json both = lfm2;
  both["rope_theta"] = 1000000.0;
  expect_refused([&] { from_huggingface(both); }, "from_huggingface",
                 {"theta is 500000.0", "it must equal rope_theta"});
  EXPECT_EQ(layer_of(llama({{"theta", "unrelated"}})).rope_theta, layer_of(llama()).rope_theta);
}

// Youtu and GLM-4.7-Flash have DeepSeek-V3's attention, whose softmax YaRN scales.
TEST(Models, SoftmaxScaleMultiplierOfDeepSeeksAttentionElsewhere) {
  const json block = {{"rope_type", "yarn"},
                      {"factor", 10},
                      {"mscale", 1},
                      {"mscale_all_dim", 1},
                      {"original_max_position_embeddings", 4096}};
  for (const char* type : {"youtu", "glm4_moe_lite"}) {
    json config = {{"model_type", type}, {"rope_theta", 1e6}, {"rope_scaling", block}};
    EXPECT_NEAR(layer_of(config).softmax_scale_multiplier, 1.5135359997035929, 1e-15) << type;
    config["rope_interleave"] = false;
    EXPECT_EQ(layer_of(config).pairing, pairing::split_half) << type;
  }
}

// transformers takes 64, whatever the head has.
TEST(Models, ScalingThatATransformersClassWouldAdd) {
  for (const char* type : {"apertus", "cwm", "gpt_oss", "ministral3"}) {
    for (const char* null_key : {"rope_scaling", "other"}) {
      expect_refused(
          [&] {
            from_huggingface({{"model_type", type}, {"head_dim", 64}, {"rope_theta", 1e6}, {null_key, nullptr}});
          },
          "from_huggingface", {"rope_scaling is missing", "default"});
    }
  }
}

TEST(Models, InterleavedIsSaidTwiceByQwen3Omni) {
  const auto with = [](const json& more) {
    json block = {{"rope_type", "default"}, {"mrope_section", {24, 20, 20}}};
    block.update(more);
    return json{{"model_type", "qwen3_omni_moe_text"}, {"head_dim", 128}, {"rope_scaling", block}};
  };
  const axis_map expected = rotary::mrope_interleaved({24, 20, 20});
  EXPECT_EQ(layer_of(with({{"interleaved", true}, {"mrope_interleaved", true}})).axes(), expected);
  EXPECT_EQ(layer_of(with({{"interleaved", true}})).axes(), expected);
  expect_refused(
      [&] {
        from_huggingface(with({{"interleaved", false}, {"mrope_interleaved", true}}));
      },
      "from_huggingface", {"rope_scaling.interleaved is false", "mrope_interleaved"});
  expect_refused(
      [] {
        from_huggingface(llama({{"rope_scaling", {{"rope_type", "default"}, {"interleaved", true}}}}));
      },
      "from_huggingface", {"rope_scaling.interleaved is true", "ignored_keys"});
}

TEST(Models, RotaryDimOfGptJMustBeStated) {
  for (const char* type : {"gptj", "codegen"}) {
    expect_refused(
        [&] {
          from_huggingface({{"model_type", type}, {"n_embd", 4096}, {"n_head", 16}});
        },
        "from_huggingface", {"rotary_dim is missing", "null"});
  }
}

TEST(Models, SoftmaxScaleMultiplierOfLongcat) {
  const json block = {{"rope_type", "yarn"},
                      {"factor", 10},
                      {"mscale", 1},
                      {"mscale_all_dim", 1},
                      {"original_max_position_embeddings", 4096}};
  const layer_rope layer = layer_of({{"model_type", "longcat_flash"}, {"rope_scaling", block}});
  EXPECT_EQ(layer.head_dim, 64u);
  EXPECT_NEAR(layer.softmax_scale_multiplier, 1.5135359997035929, 1e-15);  // (0.1 ln 10 + 1)^2
}

TEST(Models, VllmsNtk) {
  const json fixed = {{"rope_type", "ntk"}, {"factor", 4.0}};
  const layer_rope layer = layer_of(llama({{"rope_scaling", fixed}}));
  for (const std::size_t j : {0u, 1u, 39u}) {  // theta^(-2j/d) * factor^(-(2j + 2) / d)
    const double exact = std::pow(250000.0, -2.0 * static_cast<double>(j) / 80.0) *
                         std::pow(4.0, -(2.0 * static_cast<double>(j) + 2.0) / 80.0);
    EXPECT_NEAR(layer.spectrum().inv_freq()[j], exact, exact * 1e-14);
  }
  const layer_rope mixed =
      layer_of(llama({{"rope_scaling", {{"rope_type", "ntk"}, {"factor", 4.0}, {"mixed_b", 0.5}}}}));
  EXPECT_NEAR(mixed.spectrum().inv_freq()[0], 1.0 / std::exp(std::log(4.0) / std::sqrt(40.0)), 1e-15);
}

TEST(Origins, NameTheKeyOfEachValue) {
  const rope glm = from_huggingface({{"model_type", "llama"},
                                     {"hidden_size", 640},
                                     {"num_attention_heads", 8},
                                     {"rope_parameters", {{"rope_type", "default"}, {"rope_theta", 1e5}}}});
  const auto source = [&](const std::string& field) {
    for (const rotary::origin& from : glm.types[0].origins) {
      if (from.field == field) return from.source;
    }
    return std::string("nowhere");
  };
  EXPECT_EQ(source("head_dim"), "hidden_size / num_attention_heads");
  EXPECT_EQ(source("rope_theta"), "rope_parameters.rope_theta");
  EXPECT_EQ(source("pairing"), "model_type llama");
  EXPECT_EQ(source("scaling"), "rope_parameters");
}

TEST(Origins, LengthBesideTheBlockThatWins) {
  const json block = {{"rope_type", "yarn"}, {"factor", 4.0}, {"original_max_position_embeddings", 2048}};
  const auto source = [&](const json& more) {
    json config = llama(more);
    config["rope_scaling"] = block;
    for (const rotary::origin& from : layer_of(config).origins) {
      if (from.field == "scaling") return from.source;
    }
    return std::string("nowhere");
  };
  EXPECT_EQ(source(json::object()), "rope_scaling");
  EXPECT_EQ(source({{"original_max_position_embeddings", 1024}}), "rope_scaling, original_max_position_embeddings");
}

}  // namespace
