// GGUF keys to rotations: the reference models, through a lookup of the test's own and through files, and every rule by
// which an architecture or a key changes the result.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <rotary/gguf.hpp>
#include <rotary/rope_summary.hpp>
#include <sstream>
#include <string>
#include <vector>

#include "gguf_from_json.hpp"
#include "golden.hpp"
#include "policy_reference.hpp"
#include "refusals.hpp"

namespace {

using nlohmann::json;
using rotary::from_gguf;
using rotary::layer_rope;
using rotary::pairing;
using rotary::rope;

// Any engine's own reader: here one that holds its keys and tensors in JSON.
struct json_lookup {
  json values, all_tensors = json::object();

  std::vector<std::string> keys() const {
    std::vector<std::string> keys;
    for (const auto& entry : values.items()) keys.push_back(entry.key());
    return keys;
  }
  std::optional<std::vector<double>> numbers(const std::string& key) const {
    if (!values.contains(key)) return std::nullopt;
    const json& value = values.at(key);
    std::vector<double> numbers;
    if (!value.is_array()) return std::vector<double>{number(value)};
    for (const json& element : value) numbers.push_back(number(element));
    return numbers;
  }
  bool is_array(const std::string& key) const { return values.contains(key) && values.at(key).is_array(); }
  std::optional<std::string> string(const std::string& key) const {
    if (!values.contains(key)) return std::nullopt;
    return values.at(key).get<std::string>();
  }
  std::vector<std::string> tensor_names() const {
    std::vector<std::string> names;
    for (const auto& entry : all_tensors.items()) names.push_back(entry.key());
    return names;
  }
  std::optional<std::vector<double>> tensor(const std::string& name) const {
    if (!all_tensors.contains(name)) return std::nullopt;
    return all_tensors.at(name).get<std::vector<double>>();
  }
  static double number(const json& value) {
    return value.is_boolean() ? (value.get<bool>() ? 1.0 : 0.0) : value.get<double>();
  }
};

// Keys without "{architecture}."; heads of 128 channels in 12 layers unless said.
json_lookup model(const std::string& architecture, const json& keys, const json& tensors = json::object()) {
  json_lookup file;
  file.all_tensors = tensors;
  json all = {{"attention.key_length", 128}, {"block_count", 12}};
  if (!keys.is_null()) all.update(keys);
  for (const auto& entry : all.items()) {
    if (!entry.value().is_null()) file.values[architecture + "." + entry.key()] = entry.value();
  }
  file.values["general.architecture"] = architecture;
  return file;
}

rope resolve(const std::string& architecture, const json& keys, const json& tensors = json::object()) {
  return from_gguf(model(architecture, keys, tensors));
}

void expect_refused(const std::string& architecture, const json& keys, std::initializer_list<const char*> parts,
                    const json& tensors = json::object()) {
  SCOPED_TRACE(architecture + " " + keys.dump());
  refusals::expect_refused([&] { resolve(architecture, keys, tensors); }, "from_gguf", parts);
}

gguf_writer::bytes written(const json_lookup& model, bool big) {
  return gguf_writer::from_json(model.values, model.all_tensors, big);
}

// The same bits but under -ffast-math, where either may be 4 units in the last place off (scaling.hpp).
void expect_frequencies(const rotary::spectrum& got, const rotary::spectrum& wanted, double share = 8 * 0x1p-52) {
  ASSERT_EQ(got.pairs(), wanted.pairs());
  for (std::size_t j = 0; j < wanted.pairs(); ++j) {
    EXPECT_NEAR(got.inv_freq()[j], wanted.inv_freq()[j], share * wanted.inv_freq()[j]) << "pair " << j;
  }
}

// ---- the reference models

void expect_golden(const json& expected, const rope& got) {
  const json& parameters = expected.at("variants").at("all");
  const layer_rope& layer = got.layer();
  EXPECT_EQ(layer.name, "all");
  EXPECT_EQ(layer.pairing == pairing::interleaved ? "interleaved" : "split_half", expected.at("pairing"));
  EXPECT_EQ(layer.head_dim, parameters.at("head_dim").get<std::size_t>());
  EXPECT_EQ(layer.rotary_dim, parameters.at("rotary_dim").get<std::size_t>());
  EXPECT_EQ(layer.offset, 0u);
  EXPECT_EQ(layer.rope_theta, parameters.at("base").get<double>());

  const rotary::spectrum spectrum = layer.spectrum();
  const reference::policy_result wanted = reference::policy_spectrum(parameters);
  ASSERT_EQ(spectrum.pairs(), wanted.inv_freq.size());
  const bool divisors = parameters.at("policy") == "llama3";
  EXPECT_EQ(std::holds_alternative<rotary::frequency_factors>(layer.scaling), divisors);
  // Divisors are rounded to float; the rest is what scaling.hpp promises.
  const double share = 4 * 0x1p-52 + (divisors ? 0x1p-24 : 0.0);
  for (std::size_t j = 0; j < spectrum.pairs(); ++j) {
    const double w = static_cast<double>(wanted.inv_freq[j]);
    EXPECT_NEAR(spectrum.inv_freq()[j], w, share * w) << "pair " << j;
  }
  EXPECT_NEAR(spectrum.magnitude(), static_cast<double>(wanted.magnitude), 2.3e-16);

  // mscale_all_dim is a float of 0.0707: half its last place, times the derivative of g squared.
  const double multiplier = expected.value("softmax_scale_multiplier", 1.0);
  EXPECT_NEAR(layer.softmax_scale_multiplier, multiplier, multiplier == 1.0 ? 0.0 : 4e-8);

  ASSERT_EQ(layer.mrope.has_value(), !expected.at("mrope").is_null());
  if (layer.mrope) {
    EXPECT_EQ(layer.mrope->section, expected.at("mrope").at("section").get<std::vector<std::size_t>>());
    EXPECT_EQ(layer.mrope->layout, expected.at("mrope").at("layout") == "interleaved_thw"
                                       ? rotary::mrope_layout::interleaved
                                       : rotary::mrope_layout::chunked);
  }
}

TEST(Gguf, ReferenceModelsByLookupAndByFile) {
  const json file = golden::load("configs/gguf");
  for (const json& record : file.at("records")) {
    SCOPED_TRACE(record.at("name").get<std::string>());
    const json_lookup lookup{record.at("kv"), record.at("tensors")};
    const rope by_lookup = from_gguf(lookup);
    expect_golden(record.at("expected"), by_lookup);
    EXPECT_EQ(by_lookup.model_type, record.at("architecture").get<std::string>());
    const std::string context = by_lookup.model_type + ".context_length";
    EXPECT_EQ(by_lookup.max_position_embeddings, record.at("kv").at(context).get<std::int64_t>());
    for (const bool big : {false, true}) {
      const gguf_writer::bytes bytes = written(lookup, big);
      expect_golden(record.at("expected"), from_gguf(rotary::gguf_view(bytes.data(), bytes.size())));
    }
  }
}

TEST(Gguf, FromAFileOnDisk) {
  const std::string path = testing::TempDir() + "gguf_test.gguf";
  const gguf_writer::bytes bytes = written(model("qwen3", {{"rope.freq_base", 1000000.0}}), false);
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  const rope got = rotary::from_gguf_file(path.c_str());
  EXPECT_EQ(got.layer().rope_theta, 1000000.0);
  EXPECT_EQ(got.layout().pairing, pairing::split_half);
  EXPECT_EQ(rotary::from_gguf_file(path.c_str(), pairing::interleaved).layout().pairing, pairing::interleaved);
  std::remove(path.c_str());
  refusals::expect_refused([&] { rotary::from_gguf_file(path.c_str()); }, "gguf_file", {"gguf_test.gguf"});
}

TEST(Gguf, BooleansAndArraysOnlyWhereAKeyMayHaveThem) {
  const auto from = [](const json& keys) {
    const gguf_writer::bytes bytes = written(model("llama", keys), false);
    return from_gguf(rotary::gguf_view(bytes.data(), bytes.size()));
  };
  const auto refused = [&](const char* key, const json& value, const char* part) {
    refusals::expect_refused([&] { from({{key, value}}); }, "gguf_value", {key, part, "number"});
  };
  refused("rope.freq_base", true, "bool");
  refused("rope.freq_base", {1000000.0}, "an array of 1");
  refused("rope.scaling.factor", true, "bool");
  refused("attention.key_length", json::array({128}), "an array of 1");
  EXPECT_TRUE(from({{"rope.scaling.finetuned", true}, {"attention.head_count", json::array({32})}}).rotates());
}

// The divisors are in the second of two files: without it they would be missed.
TEST(Gguf, FromAModelInSeveralFiles) {
  using namespace gguf_writer;
  file first, second;
  first.key("general.architecture", type_string).text("llama");
  first.key("llama.attention.key_length", type_u32).number(4, 4);
  first.key("split.tensors.count", type_i32).number(2, 4);
  first.f32_tensor("other", {1.0f});
  second.f32_tensor("rope_freqs.weight", {1.0f, 8.0f});
  const bytes first_bytes = first.all(), second_bytes = second.all();
  const rotary::gguf_view a(first_bytes.data(), first_bytes.size()), b(second_bytes.data(), second_bytes.size());
  EXPECT_EQ(from_gguf(rotary::gguf_lookup({&a, &b})).spectrum().inv_freq()[1], 0.01 / 8.0);
  refusals::expect_refused([&] { from_gguf(a); }, "gguf_lookup", {"\"split.tensors.count\" is 2", "rope_freqs.weight"});
  refusals::expect_refused([] { rotary::gguf_lookup(std::vector<const rotary::gguf_view*>()); }, "gguf_lookup",
                           {"parts has 0"});
}

TEST(Gguf, SaysWhereValuesCameFrom) {
  const rope got = resolve("llama", {{"attention.key_length", nullptr},
                                     {"embedding_length", 2048},
                                     {"attention.head_count", 32},
                                     {"rope.freq_base", 500000.0}});
  EXPECT_EQ(got.layer().head_dim, 64u);
  std::string all;
  for (const rotary::origin& origin : got.layer().origins) all += origin.field + ": " + origin.source + "\n";
  EXPECT_EQ(all,
            "pairing: architecture llama\n"
            "head_dim: llama.embedding_length / attention.head_count\n"
            "rotary_dim: head_dim\n"
            "rope_theta: llama.rope.freq_base\n"
            "scaling: default: none\n");
}

// The lines of a summary that are values and not headings; each must end in its source.
std::size_t expect_sources(const rope& got) {
  const std::string text = rotary::summary(got);
  std::istringstream lines(text);
  std::size_t values = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.rfind("  ", 0) != 0 && line.rfind("max_position_embeddings", 0) != 0) continue;
    ++values;
    EXPECT_NE(line.find("  ["), std::string::npos) << "no source in \"" << line << "\" of\n" << text;
  }
  return values;
}

TEST(Gguf, EveryPrintedValueHasASource) {
  const json file = golden::load("configs/gguf");
  std::size_t multiplied = 0;
  for (const json& record : file.at("records")) {
    SCOPED_TRACE(record.at("name").get<std::string>());
    const rope got = from_gguf(json_lookup{record.at("kv"), record.at("tensors")});
    EXPECT_GE(expect_sources(got), 6u);
    if (got.layer().softmax_scale_multiplier != 1.0) ++multiplied;
  }
  EXPECT_GE(multiplied, 1u);

  const rope ministral =
      resolve("mistral3", {{"attention.temperature_scale", 0.1}, {"attention.temperature_length", 16384}});
  EXPECT_EQ(expect_sources(ministral), 6u);
  EXPECT_NE(rotary::summary(ministral).find("[mistral3.attention.temperature_scale, attention.temperature_length]"),
            std::string::npos);
  const rope llama4 = resolve("llama4", {{"context_length", 8192}, {"rope.dimension_count", 128}});
  EXPECT_EQ(expect_sources(llama4), 1u + 3u + 5u);
  const std::string text = rotary::summary(llama4);
  EXPECT_NE(text.find("rotary_dim: 0 (no rotation)  [architecture llama4: does not rotate]"), std::string::npos)
      << text;
  EXPECT_NE(text.find("max_position_embeddings: 8192  [llama4.context_length]"), std::string::npos) << text;
}

// The key or tensor that decides among several that could.
TEST(Gguf, SaysWhatTheScalingCameFrom) {
  const auto source = [](const std::string& architecture, json keys, const json& tensors = json::object()) {
    keys["attention.key_length"] = 8;
    const rope got = resolve(architecture, keys, tensors);
    for (const rotary::origin& origin : got.layer().origins) {
      if (origin.field == "scaling") return origin.source;
    }
    return std::string("nowhere");
  };
  const json yarn = {{"rope.scaling.type", "yarn"}, {"rope.scaling.factor", 4.0}, {"context_length", 8192}};
  json linear = yarn;
  linear["rope.scaling.yarn_ext_factor"] = 0.0;
  const json ones = {{"rope_freqs.weight", {1, 1, 1, 1}}}, divisors = {{"rope_freqs.weight", {1, 1, 2, 4}}};
  const json long_factors = {{"rope_factors_long.weight", {1, 1, 2, 4}}};
  EXPECT_EQ(source("hunyuan-dense", {{"rope.scaling.alpha", 1000.0}, {"rope.scaling.type", "none"}}),
            "hunyuan-dense.rope.scaling.alpha");
  EXPECT_EQ(source("qwen2", yarn, ones), "qwen2.rope.scaling.type");
  EXPECT_EQ(source("qwen2", linear), "qwen2.rope.scaling.yarn_ext_factor");
  EXPECT_EQ(source("llama", {{"rope.scaling.type", "linear"}}, divisors), "tensor rope_freqs.weight");
  EXPECT_EQ(source("llama", {{"rope.scaling.type", "linear"}, {"rope.scaling.factor", 2.0}}),
            "llama.rope.scaling.type");
  EXPECT_EQ(source("llama", {{"rope.scale_linear", 2.0}}), "llama.rope.scale_linear");
  EXPECT_EQ(source("phi3", {{"rope.scaling.original_context_length", 4096}}, long_factors),
            "tensor rope_factors_long.weight");
}

// ---- pairing

TEST(Gguf, PairingOfArchitectures) {
  for (const char* const name :
       {"llama", "llama4", "deci", "baichuan", "internlm2", "minicpm", "xverse", "command-r", "cohere2", "olmo",
        "arctic", "chatglm", "glm4", "granite", "granitemoe", "ernie4_5", "ernie4_5-moe", "smollm3", "mistral3"}) {
    EXPECT_EQ(resolve(name, {}).types.back().pairing, pairing::interleaved) << name;
  }
  for (const char* const name :
       {"falcon",  "grok",  "dbrx",      "nomic-bert", "stablelm", "glm4moe",   "bitnet",
        "qwen",    "qwen2", "qwen2moe",  "qwen3",      "qwen3moe", "qwen3next", "phi2",
        "phi3",    "gemma", "gemma2",    "gemma3",     "gemma4",   "openelm",   "starcoder2",
        "gptneox", "dots1", "codeshell", "gpt-oss",    "seed_oss", "mimo2",     "minimax-m2"}) {
    EXPECT_EQ(resolve(name, {}).types.back().pairing, pairing::split_half) << name;
  }
}

TEST(Gguf, ArchitecturesThatAreNotInTheTable) {
  for (const char* const name : {"plamo", "orion", "gpt2", "starcoder", "deepseek4", "step35", "llama5", "llam"}) {
    expect_refused(name, {}, {"\"general.architecture\"", name, "Pass the pairing"});
    const rope got = from_gguf(model(name, {{"rope.dimension_count", 64}}), pairing::interleaved);
    EXPECT_EQ(got.layer().rotary_dim, 64u);
    EXPECT_EQ(got.layout().pairing, pairing::interleaved);
  }
  json_lookup none = model("llama", {});
  none.values.erase("general.architecture");
  refusals::expect_refused([&] { from_gguf(none); }, "from_gguf", {"\"general.architecture\" is missing"});
}

// ---- dimensions and theta

TEST(Gguf, ArchitecturesThatAreNotPrintable) {
  for (const std::string& name : {std::string("\x1b[31m"), std::string("a\nb"), std::string(81, 'a')}) {
    refusals::expect_refused([&] { from_gguf(model(name, {}), pairing::split_half); }, "from_gguf",
                             {"\"general.architecture\"", "printable ASCII"});
  }
  EXPECT_EQ(from_gguf(model(std::string(80, 'a'), {}), pairing::split_half).model_type, std::string(80, 'a'));
}

TEST(Gguf, Dimensions) {
  EXPECT_EQ(resolve("gptneox", {{"rope.dimension_count", 32}}).layer().rotary_dim, 32u);
  EXPECT_EQ(resolve("llama", {{"attention.head_count", json::array({32, 8})}}).layer().head_dim, 128u);
  EXPECT_EQ(resolve("llama", {}).layer().rope_theta, 10000.0);
  // MLA: a head of 192 (or of 576, compressed) channels, of which 64 rotate by themselves.
  for (const int key_length : {192, 576}) {
    const rope got = resolve("deepseek2", {{"attention.key_length", key_length}, {"rope.dimension_count", 64}});
    EXPECT_EQ(got.layer().head_dim, 64u);
    EXPECT_EQ(got.layer().rotary_dim, 64u);
  }

  expect_refused("llama", {{"rope.dimension_count", 130}}, {"\"llama.rope.dimension_count\" is 130", "at most 128"});
  expect_refused("llama", {{"rope.dimension_count", 63}}, {"\"llama.rope.dimension_count\" is 63", "even"});
  expect_refused("llama", {{"rope.dimension_count", 63.5}}, {"\"llama.rope.dimension_count\" is 63.5", "65536"});
  expect_refused("llama", {{"rope.dimension_count", -2}}, {"\"llama.rope.dimension_count\" is -2", "0 to 65536"});
  expect_refused("llama", {{"attention.key_length", 4e9}}, {"\"llama.attention.key_length\" is 4e+09", "65536"});
  expect_refused("llama", {{"rope.dimension_count", json::array({64, 64})}},
                 {"\"llama.rope.dimension_count\" is an array of 2", "one number"});
  expect_refused("llama", {{"attention.key_length", nullptr}}, {"\"llama.attention.key_length\" is missing"});
  for (const json& heads : {json(0), json(48), json::array({32, 16})}) {
    expect_refused("llama",
                   {{"attention.key_length", nullptr}, {"embedding_length", 4096}, {"attention.head_count", heads}},
                   {"\"llama.attention.key_length\" is missing", "attention.head_count"});
  }
  expect_refused("llama",
                 {{"attention.key_length", nullptr}, {"embedding_length", 4096}, {"attention.head_count", {32, 1e6}}},
                 {"\"llama.attention.head_count[1]\" is 1000000;", "0 to 65536"});
  expect_refused("deepseek2", {}, {"\"deepseek2.rope.dimension_count\" is missing"});
  expect_refused("llama", {{"rope.freq_base", 0.0}}, {"\"llama.rope.freq_base\" is 0", "greater than 0"});
  expect_refused("llama", {{"rope.freq_base", -1.0}}, {"\"llama.rope.freq_base\" is -1", "greater than 0"});
  expect_refused("llama", {{"rope.freq_base", std::nan("")}}, {"\"llama.rope.freq_base\"", "finite"});
  for (const double absurd : {1e300, 1e-300}) {
    expect_refused("llama", {{"rope.freq_base", absurd}}, {"\"llama.rope.freq_base\"", "1e-60 to 1e60"});
    expect_refused("llama", {{"rope.scaling.alpha", absurd}}, {"\"llama.rope.scaling.alpha\"", "1e-60 to 1e60"});
  }
  expect_refused("llama", {{"rope.scaling.factor", 1e300}}, {"\"llama.rope.scaling.factor\"", "1e-60 to 1e60"});
}

// Phi-4 and Phi-4-mini are published with windows as long as their contexts.
TEST(Gguf, LengthsMayExceedAnyNumberOfChannels) {
  for (const std::int64_t window : {std::int64_t{131072}, std::int64_t{262144}, std::int64_t{1} << 53}) {
    const json keys = {{"attention.sliding_window", window}, {"context_length", window}, {"rope.freq_base", 1e6}};
    EXPECT_EQ(resolve("phi3", keys).max_position_embeddings, window);
    EXPECT_EQ(resolve("gemma3", keys).types.size(), 2u) << "the window is not 0";
  }
  EXPECT_EQ(resolve("gemma3", {{"attention.sliding_window", 0}}).types.size(), 1u);
  expect_refused("phi3", {{"attention.sliding_window", -1}}, {"\"phi3.attention.sliding_window\" is -1"});
  expect_refused("phi3", {{"attention.sliding_window", 2.5}}, {"\"phi3.attention.sliding_window\" is 2.5"});
}

TEST(Gguf, KeysThatAreNotKnown) {
  expect_refused("llama", {{"rope.scaling.strength", 2}}, {"\"llama.rope.scaling.strength\"", "not known"});
  expect_refused("step35", {{"rope.scaling.apply_mask", 1}}, {"\"step35.rope.scaling.apply_mask\"", "not known"});
  expect_refused("step35", {{"rope.freq_base_per_layer", json::array({1, 2})}}, {"freq_base_per_layer", "not known"});
  expect_refused("llama", {{"attention.rope_pattern", 2}}, {"\"llama.attention.rope_pattern\"", "not known"});
  EXPECT_TRUE(
      resolve("llama", {{"rope.scaling.finetuned", true}, {"attention.causal", false}, {"ropes", 1}}).rotates());
  json_lookup other = model("llama", {});
  other.values["llama2.rope.unknown"] = 1;
  EXPECT_TRUE(from_gguf(other).rotates());
}

// ---- scaling

template <class Policy>
Policy policy_of(const rope& got, std::size_t type = 0) {
  const Policy* const policy = std::get_if<Policy>(&got.types.at(type).scaling);
  if (policy == nullptr)
    throw std::runtime_error("another policy, number " + std::to_string(got.types[type].scaling.index()));
  return *policy;
}

TEST(Gguf, TensorsThatAreNotKnown) {
  const std::vector<double> ones(64, 1.0);
  for (const char* const name : {"blk.0.rope_freqs.weight", "blk.31.rope_factors_long.weight", "rope_freqs",
                                 "rope_factors_long.bias", "rope_freqs_global.weight", "blk.0.attn_rot_embd.weight"}) {
    expect_refused("llama", {}, {("tensor \"" + std::string(name) + "\" is not known").c_str()}, {{name, ones}});
  }
  EXPECT_NO_THROW(resolve("llama", {}, {{"rope_freqs.weight", ones}, {"blk.0.attn_q.weight", ones}}));
  const auto in_file = written(model("llama", {}, {{"blk.0.rope_freqs.weight", ones}}), false);
  const rotary::gguf_view view(in_file.data(), in_file.size());
  refusals::expect_refused([&] { from_gguf(view); }, "from_gguf", {"blk.0.rope_freqs.weight"});
}

TEST(Gguf, LinearScaling) {
  EXPECT_EQ(policy_of<rotary::linear>(resolve("llama", {{"rope.scaling.factor", 4.0}})).factor, 4.0);
  EXPECT_EQ(policy_of<rotary::linear>(resolve("llama", {{"rope.scale_linear", 2.5}})).factor, 2.5);
  for (const char* const key : {"rope.scaling.factor", "rope.scale_linear"}) {
    expect_refused("llama", {{key, 0.25}}, {(std::string(key) + "\" is 0.25").c_str(), "0 or at least 1"});
  }
  for (const json& keys :
       {json{{"rope.scaling.factor", 0.0}}, json{{"rope.scaling.factor", 1.0}}, json{{"rope.scaling.type", "none"}},
        json{{"rope.scaling.type", "linear"}}, json{{"rope.scaling.type", "none"}, {"rope.scaling.factor", 1.0}}}) {
    policy_of<rotary::none>(resolve("llama", keys));
  }
  expect_refused("llama", {{"rope.scaling.type", "none"}, {"rope.scaling.factor", 4.0}},
                 {"\"llama.rope.scaling.factor\" is 4", "1, as rope.scaling.type is none"});
  expect_refused("llama", {{"rope.scaling.factor", 4.0}, {"rope.scale_linear", 2.0}},
                 {"\"llama.rope.scale_linear\" is 2", "rope.scaling.factor"});
  expect_refused("llama", {{"rope.scaling.factor", -4.0}}, {"\"llama.rope.scaling.factor\" is -4", "0 or at least 1"});
  expect_refused("llama", {{"rope.scale_linear", -4.0}}, {"\"llama.rope.scale_linear\" is -4", "0 or at least 1"});
  expect_refused("llama", {{"rope.scaling.type", "dynamic"}}, {"\"llama.rope.scaling.type\" is \"dynamic\"", "yarn"});
  expect_refused("llama", {{"rope.scaling.attn_factor", 1.1}}, {"\"llama.rope.scaling.attn_factor\" is 1.1", "be 1"});
  expect_refused("llama", {{"rope.scaling.attn_factor", 0.0}}, {"\"llama.rope.scaling.attn_factor\" is 0"});
}

TEST(Gguf, DivisorsOfTheFrequencies) {
  const json four = {{"rope_freqs.weight", {1.0, 2.0, 4.0, 1e30}}};
  const rope got = resolve("llama", {{"attention.key_length", 8}, {"rope.scaling.factor", 2.0}}, four);
  const rotary::spectrum spectrum = got.spectrum();
  for (std::size_t j = 0; j < 4; ++j) {
    const double divisor = 2.0 * four.at("rope_freqs.weight")[j].get<double>();
    const double wanted = std::pow(10.0, -static_cast<double>(j)) / divisor;
    EXPECT_NEAR(spectrum.inv_freq()[j], wanted, 1e-15 * wanted);
  }
  const json eight = {{"attention.key_length", 8}};
  expect_refused("llama", {{"attention.key_length", 16}}, {"\"rope_freqs.weight\" has 4 values", "must have 8"}, four);
  expect_refused("llama", eight, {"value 2 of tensor \"rope_freqs.weight\" is 0"},
                 {{"rope_freqs.weight", {1, 2, 0, 1}}});
  const json yarn = {{"attention.key_length", 8}, {"rope.scaling.type", "yarn"}, {"context_length", 4096}};
  expect_refused("llama", yarn, {"yarn", "rope_freqs.weight"}, four);
  policy_of<rotary::yarn>(resolve("llama", yarn, {{"rope_freqs.weight", {1, 1, 1, 1}}}));
  expect_refused("llama", {{"attention.key_length", 8}, {"rope.scaling.alpha", 3.0}}, {"rope.scaling.alpha\" is 3"},
                 four);
  expect_refused("llama", {{"attention.key_length", 8}, {"rope.scaling.attn_factor", 3.0}},
                 {"rope.scaling.attn_factor\" is 3"}, four);
}

TEST(Gguf, NtkAlpha) {
  const rope got = resolve("hunyuan-dense", {{"rope.scaling.alpha", 1000.0}, {"rope.scaling.type", "none"}});
  EXPECT_EQ(policy_of<rotary::ntk>(got).alpha, 1000.0);
  const double theta = 10000.0 * std::pow(1000.0, 128.0 / 126.0);
  EXPECT_NEAR(got.spectrum().inv_freq()[63], std::pow(theta, -126.0 / 128.0), 1e-20);
  policy_of<rotary::none>(resolve("hunyuan-dense", {{"rope.scaling.alpha", 0.0}}));
  expect_refused("llama", {{"rope.scaling.alpha", -1.0}}, {"\"llama.rope.scaling.alpha\" is -1"});
  expect_refused("llama", {{"rope.scaling.alpha", 2.0}, {"rope.dimension_count", 64}},
                 {"\"llama.rope.scaling.alpha\" is 2", "64 of 128"});
  expect_refused("llama", {{"rope.scaling.alpha", 2.0}, {"rope.scaling.factor", 4.0}},
                 {"\"llama.rope.scaling.factor\" is 4", "rope.scaling.alpha"});
}

json yarn_keys(const json& more = json::object()) {
  json keys = {{"rope.scaling.type", "yarn"},
               {"rope.scaling.factor", 4.0},
               {"rope.scaling.original_context_length", 32768},
               {"rope.freq_base", 1000000.0}};
  if (!more.is_null()) keys.update(more);
  return keys;
}
double yarn_magnitude(const std::string& architecture, const json& more) {
  return resolve(architecture, yarn_keys(more)).types[0].spectrum().magnitude();
}
const double of_paper = 0.1 * std::log(4.0) + 1.0;

TEST(Gguf, Yarn) {
  const rotary::spectrum wanted = rotary::make_spectrum(128, 1000000.0, rotary::yarn{4.0, 32768});
  expect_frequencies(resolve("qwen3", yarn_keys()).spectrum(), wanted);
  EXPECT_EQ(resolve("qwen3", yarn_keys()).spectrum().magnitude(), wanted.magnitude());
  EXPECT_EQ(resolve("qwen3", yarn_keys()).layer().softmax_scale_multiplier, 1.0);
  const json betas = {{"rope.scaling.yarn_beta_fast", 16.0}, {"rope.scaling.yarn_beta_slow", 2.0}};
  const auto policy = policy_of<rotary::yarn>(resolve("qwen3", yarn_keys(betas)));
  EXPECT_EQ(policy.beta_fast, 16.0);
  EXPECT_EQ(policy.beta_slow, 2.0);
  EXPECT_EQ(policy_of<rotary::yarn>(resolve("grok", yarn_keys())).beta_fast, 8.0);

  // The original length is the trained one where nothing else is stated.
  const json trained = {{"rope.scaling.original_context_length", nullptr}, {"context_length", 8192}};
  EXPECT_EQ(policy_of<rotary::yarn>(resolve("qwen3", yarn_keys(trained))).original_max_position_embeddings, 8192);
  expect_refused("qwen3", yarn_keys({{"rope.scaling.original_context_length", nullptr}}),
                 {"\"qwen3.rope.scaling.original_context_length\" is missing"});

  expect_refused("qwen3", yarn_keys({{"rope.scaling.original_context_length", 0}}),
                 {"original_context_length\" is 0", "1 to"});

  // ext_factor 0 leaves only the slowing of all pairs.
  EXPECT_EQ(policy_of<rotary::linear>(resolve("qwen3", yarn_keys({{"rope.scaling.yarn_ext_factor", 0.0}}))).factor,
            4.0);
  policy_of<rotary::yarn>(resolve("qwen3", yarn_keys({{"rope.scaling.yarn_ext_factor", -1.0}})));
  policy_of<rotary::yarn>(resolve("qwen3", yarn_keys({{"rope.scaling.yarn_ext_factor", 1.0}})));
  expect_refused("qwen3", yarn_keys({{"rope.scaling.yarn_ext_factor", 0.5}}), {"yarn_ext_factor\" is 0.5"});
  for (const char* const key : {"rope.scaling.yarn_ext_factor", "rope.scaling.yarn_attn_factor",
                                "rope.scaling.yarn_beta_fast", "rope.scaling.yarn_beta_slow"}) {
    expect_refused("qwen3", {{key, 1.0}}, {key, "is 1", "absent unless rope.scaling.type is yarn"});
  }
}

// gpt-oss: the ends of the ramp are not rounded, though no key says so (expected values: transformers).
TEST(Gguf, YarnOfGptOssIsNotTruncated) {
  const rope got = resolve("gpt-oss", {{"attention.key_length", 64},
                                       {"rope.freq_base", 150000.0},
                                       {"rope.scaling.type", "yarn"},
                                       {"rope.scaling.factor", 32.0},
                                       {"rope.scaling.original_context_length", 4096}});
  EXPECT_NEAR(got.spectrum().inv_freq()[9], 0.031705696184663766, 1e-16);
  EXPECT_NEAR(got.spectrum().inv_freq()[17], 0.00012931870124506272, 1e-18);
  EXPECT_NEAR(got.spectrum().inv_freq()[18], 3.8308812373753383e-5, 1e-19);
  EXPECT_NEAR(got.spectrum().magnitude(), 1.3465735902799727, 1e-15);
}

TEST(Gguf, MultipliersOfYarn) {
  // attn_factor multiplies what ggml puts on cos and sin by itself.
  EXPECT_NEAR(yarn_magnitude("qwen3", {{"rope.scaling.attn_factor", 1.0 / of_paper}}), 1.0, 1e-15);
  EXPECT_NEAR(yarn_magnitude("qwen3", {{"rope.scaling.attn_factor", 2.0}}), 2.0 * of_paper, 1e-15);

  // yarn_attn_factor is a multiple in Grok, the result in Laguna, and else only what all agree on.
  EXPECT_NEAR(yarn_magnitude("grok", {{"rope.scaling.yarn_attn_factor", 1.0}}), of_paper, 1e-15);
  EXPECT_NEAR(yarn_magnitude("grok", {{"rope.scaling.yarn_attn_factor", 1.5}}), 1.5 * of_paper, 1e-15);
  EXPECT_NEAR(yarn_magnitude("laguna", {{"rope.scaling.yarn_attn_factor", 1.0}}), 1.0, 1e-15);
  const double in_float = double{static_cast<float>(of_paper)};
  EXPECT_EQ(yarn_magnitude("qwen3", {{"rope.scaling.yarn_attn_factor", in_float}}), yarn_magnitude("qwen3", {}));
  expect_refused("qwen3", yarn_keys({{"rope.scaling.yarn_attn_factor", 1.0}}),
                 {"\"qwen3.rope.scaling.yarn_attn_factor\" is 1;", "1.1386"});
  expect_refused("grok", yarn_keys({{"rope.scaling.yarn_attn_factor", -1.0}}), {"yarn_attn_factor\" is -1"});
}

TEST(Gguf, LogMultipliersOfYarn) {
  // Mistral: mscale 1 over mscale_all_dim, which is stored as it is.
  EXPECT_NEAR(yarn_magnitude("mistral3", {{"rope.scaling.yarn_log_multiplier", 1.0}}), 1.0, 1e-15);
  EXPECT_NEAR(yarn_magnitude("mistral3", {{"rope.scaling.yarn_log_multiplier", 0.0}}), of_paper, 1e-15);
  EXPECT_NEAR(yarn_magnitude("mistral3", {{"rope.scaling.yarn_log_multiplier", 0.5}}),
              of_paper / (0.05 * std::log(4.0) + 1.0), 1e-15);

  // DeepSeek: stored as a tenth, on the softmax instead.
  const json deepseek = yarn_keys({{"rope.dimension_count", 64}, {"rope.scaling.yarn_log_multiplier", 0.1}});
  const layer_rope layer = resolve("deepseek2", deepseek).layer();
  EXPECT_EQ(layer.spectrum().magnitude(), 1.0);
  EXPECT_NEAR(layer.softmax_scale_multiplier, of_paper * of_paper, 1e-15);

  json without = deepseek;
  without["rope.scaling.yarn_log_multiplier"] = nullptr;
  expect_refused("deepseek2", without, {"\"deepseek2.rope.scaling.yarn_log_multiplier\" is missing"});
  expect_refused("qwen3", yarn_keys({{"rope.scaling.yarn_log_multiplier", 0.1}}),
                 {"\"qwen3.rope.scaling.yarn_log_multiplier\" is 0.1", "architecture"});
  expect_refused("mistral3", yarn_keys({{"rope.scaling.yarn_log_multiplier", -1.0}}), {"yarn_log_multiplier\" is -1"});
  expect_refused("mistral3", {{"rope.scaling.yarn_log_multiplier", 1.0}, {"rope.scaling.factor", 4.0}},
                 {"yarn_log_multiplier\" is 1", "yarn"});
}

TEST(Gguf, LongRope) {
  const json keys = {{"attention.key_length", 8},
                     {"context_length", 131072},
                     {"rope.scaling.original_context_length", 4096},
                     {"rope.scaling.attn_factor", 1.19}};
  const json tensors = {{"rope_factors_long.weight", {1.0, 2.0, 4.0, 8.0}},
                        {"rope_factors_short.weight", {1.0, 1.0, 1.5, 2.0}}};
  for (const json& type : {json(nullptr), json("longrope")}) {
    json all = keys;
    all["rope.scaling.type"] = type;
    const rope got = resolve("phi3", all, tensors);
    EXPECT_NEAR(got.spectrum(0, 4096).inv_freq()[3], 1e-3 / 2.0, 1e-18);
    EXPECT_NEAR(got.spectrum(0, 4097).inv_freq()[3], 1e-3 / 8.0, 1e-18);
    EXPECT_EQ(got.spectrum(0, 4096).magnitude(), 1.19);
    EXPECT_EQ(got.spectrum(0, 4097).magnitude(), 1.19);
    EXPECT_TRUE(got.layer().needs_sequence_length());
  }
  json no_short = tensors;
  no_short.erase("rope_factors_short.weight");
  EXPECT_NEAR(resolve("phi3", keys, no_short).spectrum(0, 1).inv_freq()[3], 1e-3, 1e-18);
  json no_long = tensors;
  no_long.erase("rope_factors_long.weight");
  expect_refused("phi3", keys, {"\"rope_factors_short.weight\"", "without"}, no_long);
  expect_refused("phi3", {{"rope.scaling.type", "longrope"}, {"context_length", 4096}},
                 {"\"rope_factors_long.weight\" is missing", "phi3.rope.scaling.type"});
  json both = tensors;
  both["rope_freqs.weight"] = {1.0, 1.0, 1.0, 1.0};
  expect_refused("phi3", keys, {"\"rope_freqs.weight\"", "beside"}, both);
  json short_list = tensors;
  short_list["rope_factors_long.weight"] = {1.0, 2.0};
  expect_refused("phi3", keys, {"\"rope_factors_long.weight\" has 2 values", "must have 4"}, short_list);
  json scaled = keys;
  scaled["rope.scaling.factor"] = 32.0;
  expect_refused("phi3", scaled, {"\"phi3.rope.scaling.factor\" is 32", "LongRoPE"}, tensors);
  json alpha = keys;
  alpha["rope.scaling.alpha"] = 3.0;
  expect_refused("phi3", alpha, {"\"phi3.rope.scaling.alpha\" is 3", "absent beside LongRoPE"}, tensors);
}

// ---- axes

TEST(Gguf, Sections) {
  const json two = {{"rope.dimension_sections", {16, 24, 24, 0}}};
  const rope chunked = resolve("qwen2vl", two);
  EXPECT_EQ(chunked.layer().mrope->layout, rotary::mrope_layout::chunked);
  EXPECT_EQ(chunked.layer().mrope->section, (std::vector<std::size_t>{16, 24, 24}));
  EXPECT_EQ((*chunked.layer().axes())[16], 1u);
  EXPECT_EQ((*chunked.layer().axes())[63], 2u);
  const rope partial = resolve(
      "qwen35",
      {{"attention.key_length", 256}, {"rope.dimension_count", 64}, {"rope.dimension_sections", {11, 11, 10, 0}}});
  EXPECT_EQ((*partial.layer().axes())[29], 2u);
  EXPECT_EQ((*partial.layer().axes())[30], 0u);
  EXPECT_EQ((*partial.layer().axes())[31], 1u);
  EXPECT_EQ(resolve("hunyuan-vl", {{"rope.dimension_sections", {16, 16, 16, 16}}}).layer().mrope->section.size(), 4u);

  // GLM-4 with sections is GLM-4.1V, whose rows are stored for the other pairing.
  const json glm = {{"rope.dimension_count", 64}, {"rope.dimension_sections", {8, 12, 12, 0}}};
  EXPECT_EQ(resolve("glm4", glm).layout().pairing, pairing::split_half);
  EXPECT_EQ(resolve("glm4", {{"rope.dimension_sections", {0, 0, 0, 0}}}).layout().pairing, pairing::interleaved);
  EXPECT_FALSE(resolve("glm4", {{"rope.dimension_sections", {0, 0, 0, 0}}}).layer().mrope.has_value());
  EXPECT_EQ(from_gguf(model("glm4", glm), pairing::interleaved).layout().pairing, pairing::interleaved);

  static constexpr const char* key = "rope.dimension_sections";
  expect_refused("llama", two, {"\"llama.rope.dimension_sections\" has 3", "exactly 0"});
  expect_refused("qwen2vl", {}, {"\"qwen2vl.rope.dimension_sections\" has 0", "1 to 4"});
  expect_refused("qwen3vl", {{key, {24, 20, 10, 10}}}, {"\"qwen3vl.rope.dimension_sections\" has 4", "1 to 3"});
  expect_refused("qwen2vl", {{key, {1, 1, 1, 1, 60}}}, {"\"qwen2vl.rope.dimension_sections\" has 5"});
  expect_refused("qwen2vl", {{key, {16, 24, 23, 0}}}, {"\"qwen2vl.rope.dimension_sections\" is 63", "64"});
  expect_refused("qwen2vl", {{key, {-16, 40, 40}}}, {"\"qwen2vl.rope.dimension_sections[0]\" is -16"});
  refusals::expect_refused([] { resolve("qwen3vl", {{key, {4, 30, 30}}}); }, "mrope_interleaved", {"30"});
}

// ---- layers that differ

std::string letters(const rope& got) {  // the first letter of each layer's type
  std::string letters;
  for (std::size_t i = 0; i < got.type_of_layer.size(); ++i) letters += got.layer(i).name[0];
  return letters;
}

TEST(Gguf, GemmaHasTwoThetasAndOneScaling) {
  const json keys = {{"attention.sliding_window", 1024},
                     {"rope.freq_base", 1000000.0},
                     {"rope.scaling.type", "linear"},
                     {"rope.scaling.factor", 8.0}};
  const rope got = resolve("gemma3", keys);
  EXPECT_EQ(letters(got), "sssssfsssssf");
  EXPECT_EQ(got.layer(5).rope_theta, 1000000.0);
  EXPECT_EQ(got.spectrum(5).inv_freq()[0], 1.0 / 8.0);
  EXPECT_EQ(got.layer(4).rope_theta, 10000.0);
  EXPECT_EQ(got.spectrum(4).inv_freq()[0], 1.0);

  json other = keys;
  other["attention.sliding_window_pattern"] = 3;
  other["rope.freq_base_swa"] = 20000.0;
  EXPECT_EQ(letters(resolve("gemma3", other)), "ssfssfssfssf");
  EXPECT_EQ(resolve("gemma3", other).layer(0).rope_theta, 20000.0);
  EXPECT_EQ(letters(resolve("gemma3n", keys)), "ssssfssssfss");
  other["attention.sliding_window_pattern"] = 1;
  EXPECT_EQ(letters(resolve("gemma3", other)), "ffffffffffff");
  other["attention.sliding_window_pattern"] = 0;
  EXPECT_EQ(letters(resolve("gemma3", other)), "ssssssssssss");

  json none = keys;
  none["attention.sliding_window"] = nullptr;
  EXPECT_EQ(resolve("gemma3", none).types.size(), 1u);
  EXPECT_EQ(resolve("gemma3", none).layer(4).rope_theta, 1000000.0);
  none["rope.freq_base_swa"] = 10000.0;
  expect_refused("gemma3", none, {"\"gemma3.rope.freq_base_swa\" is there", "attention.sliding_window"});

  json unknown = keys;  // without the number of layers there is no layer 0
  unknown["block_count"] = nullptr;
  EXPECT_EQ(resolve("gemma3", unknown).types.size(), 2u);
  EXPECT_THROW(resolve("gemma3", unknown).layer(0), rotary::error);
}

TEST(Gguf, LayersOfTwoSizes) {
  json keys = {{"attention.sliding_window", 1024},
               {"attention.key_length", 16},
               {"attention.key_length_swa", 8},
               {"rope.dimension_count", 16},
               {"rope.dimension_count_swa", 8},
               {"rope.freq_base", 1000000.0},
               {"rope.freq_base_swa", 10000.0},
               {"block_count", 5},
               {"attention.sliding_window_pattern", {true, true, false, true, false}}};
  const json divisors = {{"rope_freqs.weight", {1.0, 1.0, 1e30, 1e30, 1e30, 1e30, 1e30, 1e30}}};
  const rope got = resolve("gemma4", keys, divisors);
  EXPECT_EQ(letters(got), "ssfsf");
  EXPECT_EQ(got.layer(0).rotary_dim, 8u);
  expect_frequencies(got.spectrum(0), rotary::make_spectrum(8, 10000.0));
  EXPECT_EQ(got.layer(2).rotary_dim, 16u);
  EXPECT_LT(got.spectrum(2).inv_freq()[2], 1e-30);

  // The same through a file, whose pattern is an array of integers.
  const gguf_writer::bytes bytes = written(model("gemma4", keys, divisors), true);
  EXPECT_EQ(letters(from_gguf(rotary::gguf_view(bytes.data(), bytes.size()))), "ssfsf");

  keys["attention.sliding_window_pattern"] = {1, 2, 0, 0, 0};
  expect_refused("gemma4", keys, {"\"gemma4.attention.sliding_window_pattern[1]\" is 2", "1 for a sliding"}, divisors);
  keys["attention.sliding_window_pattern"] = {1, 1, 1, 1, 1, 1};
  const auto wrong = [](const json& length) {
    return "\"gemma4.attention.sliding_window_pattern\" is an array of " + length.dump() +
           "; it must have 5, block_count";
  };
  expect_refused("gemma4", keys, {wrong(6).c_str()}, divisors);
  keys["attention.sliding_window_pattern"] = {1, 0, 1, 1};
  expect_refused("gemma4", keys, {wrong(4).c_str()}, divisors);
  keys["attention.sliding_window_pattern"] = json::array({1});
  expect_refused("gemma4", keys, {wrong(1).c_str()}, divisors);
  keys["attention.sliding_window_pattern"] = json::array();
  expect_refused("gemma4", keys, {wrong(0).c_str()}, divisors);
  // This architecture's layers follow no rule that a period could set.
  keys["attention.sliding_window_pattern"] = 2;
  expect_refused("gemma4", keys, {"\"gemma4.attention.sliding_window_pattern\" is 2; it must be an array"}, divisors);
  keys["attention.sliding_window_pattern"] = nullptr;
  EXPECT_TRUE(resolve("gemma4", keys, divisors).type_of_layer.empty());
}

// The period 1 makes every layer full; an array of 1 is the flag of a sliding layer.
TEST(Gguf, ArrayOfOneIsNotAPeriod) {
  json keys = {{"attention.sliding_window", 1024}, {"block_count", 1}, {"attention.sliding_window_pattern", 1}};
  const auto by_lookup_and_file = [&] {
    const gguf_writer::bytes bytes = written(model("gemma3", keys), false);
    return letters(resolve("gemma3", keys)) + letters(from_gguf(rotary::gguf_view(bytes.data(), bytes.size())));
  };
  keys["rope.freq_base"] = 1000000.0;
  EXPECT_EQ(by_lookup_and_file(), "ff");
  keys["attention.sliding_window_pattern"] = json::array({1});
  EXPECT_EQ(by_lookup_and_file(), "ss");
  keys["rope.freq_base"] = json::array({1000000.0});
  expect_refused("gemma3", keys, {"\"gemma3.rope.freq_base\" is an array of 1; it must be one number"});
}

TEST(Gguf, OtherSlidingLayers) {
  const json window = {{"attention.sliding_window", 128}};
  json bert = window;
  bert["rope.freq_base"] = 160000.0;
  EXPECT_EQ(letters(resolve("modern-bert", bert)), "fssfssfssfss");
  EXPECT_EQ(resolve("modern-bert", bert).layer(1).rope_theta, 10000.0);

  json olmo = yarn_keys(window);
  EXPECT_EQ(letters(resolve("olmo2", olmo)), "sssfsssfsssf");
  expect_frequencies(resolve("olmo2", olmo).spectrum(0), rotary::make_spectrum(128, 1000000.0));
  EXPECT_EQ(resolve("olmo2", olmo).spectrum(0).magnitude(), 1.0);
  EXPECT_NEAR(resolve("olmo2", olmo).spectrum(3).magnitude(), of_paper, 1e-15);
  EXPECT_EQ(resolve("olmo2", window).types.size(), 1u);

  EXPECT_EQ(resolve("gpt-oss", yarn_keys(window)).types.size(), 1u);
  const json mimo = {
      {"rope.freq_base", 5000000.0}, {"block_count", 3}, {"attention.sliding_window_pattern", {0, 1, 1}}};
  EXPECT_EQ(letters(resolve("mimo2", mimo)), "fss");
  EXPECT_EQ(resolve("mimo2", mimo).layer(1).rope_theta, 10000.0);
  // Of an architecture without rules of its own, sliding layers differ by what the keys say.
  const json keys = {{"rope.freq_base_swa", 20000.0},
                     {"rope.scaling.factor", 2.0},
                     {"block_count", 3},
                     {"attention.sliding_window_pattern", {0, 1, 1}}};
  EXPECT_EQ(letters(resolve("seed_oss", keys)), "fss");
  EXPECT_EQ(resolve("seed_oss", keys).layer(1).rope_theta, 20000.0);
  EXPECT_EQ(policy_of<rotary::linear>(resolve("seed_oss", keys), 1).factor, 2.0);
}

TEST(Gguf, LayersThatDoNotRotate) {
  for (const char* const name : {"llama4", "smollm3", "cohere2"}) {
    const rope got = resolve(name, {});
    EXPECT_EQ(letters(got), name == std::string("cohere2") ? "sssfsssfsssf" : "aaanaaanaaan") << name;
    EXPECT_FALSE(got.rotates(3));
    EXPECT_EQ(got.layer(3).head_dim, 128u);
    EXPECT_EQ(got.spectrum(3).pairs(), 0u);
    EXPECT_EQ(got.layer(2).rotary_dim, 128u);
  }
  const rope llama4 = resolve("llama4", {});
  ASSERT_TRUE(llama4.layer(3).query_temperature.has_value());
  EXPECT_FALSE(llama4.layer(2).query_temperature.has_value());
  EXPECT_EQ(llama4.layer(3).query_temperature->multiplier(8190), 1.0);
  EXPECT_NEAR(llama4.layer(3).query_temperature->multiplier(8191), 1.0 + 0.1 * std::log(2.0), 1e-15);
  EXPECT_EQ(resolve("llama4", {{"attention.sliding_window", 0}}).types.size(), 1u);

  EXPECT_EQ(resolve("exaone4", {}).types.size(), 1u);
  EXPECT_EQ(letters(resolve("exaone4", {{"attention.sliding_window", 4096}})), "sssfsssfsssf");
  EXPECT_FALSE(resolve("exaone4", {{"attention.sliding_window", 4096}}).rotates(3));

  EXPECT_TRUE(resolve("granitehybrid", {{"rope.scaling.finetuned", true}}).rotates());
  EXPECT_FALSE(resolve("granitehybrid", {{"rope.scaling.finetuned", false}}).rotates());
  EXPECT_TRUE(resolve("llama", {{"rope.scaling.finetuned", false}}).rotates());
  EXPECT_FALSE(resolve("baichuan", {{"block_count", 40}}).rotates());
  EXPECT_FALSE(resolve("baichuan", {{"block_count", 28}}).rotates());
  EXPECT_TRUE(resolve("baichuan", {{"block_count", 32}}).rotates());
}

TEST(Gguf, QueryTemperatureOfMinistral) {
  const rope got = resolve("mistral3", yarn_keys({{"rope.scaling.yarn_log_multiplier", 1.0},
                                                  {"attention.temperature_scale", 0.1},
                                                  {"rope.scaling.original_context_length", 16384}}));
  ASSERT_TRUE(got.layer().query_temperature.has_value());
  EXPECT_EQ(got.layer().query_temperature->multiplier(16383), 1.0);
  EXPECT_NEAR(got.layer().query_temperature->multiplier(16384), 1.0 + 0.1 * std::log(2.0), 1e-15);
  expect_refused("mistral3", {{"attention.temperature_scale", 0.1}},
                 {"\"mistral3.rope.scaling.original_context_length\" is missing or 0", "0.1"});
}

}  // namespace
