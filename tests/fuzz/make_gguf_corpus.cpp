// Writes what fuzzing of the GGUF reader starts from: make_gguf_corpus <directory>
#include <cstdio>
#include <fstream>

#include "gguf_from_json.hpp"
#include "golden.hpp"

namespace {

using namespace gguf_writer;
using nlohmann::json;

// What the reference models lack: every type of value, and the keys of layers that differ.
file of_every_type(bool big) {
  file out(big, 2, 8);
  out.key("general.architecture", type_string).text("gemma3");
  out.key("general.alignment", type_u32).number(8, 4);
  out.key("gemma3.attention.key_length", type_u64).number(8, 8);
  out.key("gemma3.attention.sliding_window", type_i64).number(16, 8);
  out.key("gemma3.attention.sliding_window_pattern", type_array).array(type_bool, 2).number(1, 1).number(0, 1);
  out.key("gemma3.block_count", type_u16).number(2, 2);
  out.key("gemma3.rope.freq_base", type_f64).float64(1000000.0);
  out.key("gemma3.rope.freq_base_swa", type_i32).number(10000, 4);
  out.key("gemma3.rope.scaling.factor", type_u8).number(8, 1);
  out.key("gemma3.rope.scaling.finetuned", type_bool).number(1, 1);
  out.key("spare", type_i8).number(1, 1);
  out.key("words", type_array).array(type_string, 2).text("a").text("bc");
  out.tensor("half", {2, 2}, 1, bytes(8));
  out.tensor("quantised", {32}, 2, bytes(18));
  return out.f32_tensor("rope_freqs.weight", {1.0f, 1.5f, 2.0f, 8.0f});
}

// Of the rules that the reference models do not use, a model each: its architecture, keys and tensors.
struct seed {
  const char* architecture;
  json keys, tensors = json::object();
};
std::vector<seed> seeds() {
  const json yarn = {{"rope.scaling.type", "yarn"}, {"context_length", 8192}, {"rope.scaling.factor", 16.0}};
  const auto and_yarn = [&](json keys) {
    keys.update(yarn);
    return keys;
  };
  const json window = {{"attention.sliding_window", 16}, {"block_count", 6}};
  return {{"phi3",
           {{"rope.scaling.original_context_length", 4096}, {"rope.scaling.attn_factor", 1.19}},
           {{"rope_factors_long.weight", {1.0, 2.0, 4.0, 8.0}}, {"rope_factors_short.weight", {1.0, 1.0, 1.5, 2.0}}}},
          {"minicpm", {{"rope.scaling.type", "longrope"}}},
          {"grok", and_yarn({{"rope.scaling.yarn_ext_factor", 1.0},
                             {"rope.scaling.yarn_attn_factor", 1.0},
                             {"rope.scaling.yarn_beta_fast", 8.0},
                             {"rope.scaling.yarn_beta_slow", 1.0}})},
          {"laguna", and_yarn({{"rope.scaling.yarn_attn_factor", 1.0}})},
          {"mistral3", and_yarn({{"attention.temperature_scale", 0.1},
                                 {"attention.temperature_length", 64},
                                 {"rope.scaling.yarn_log_multiplier", 1.0}})},
          {"hunyuan-dense", {{"rope.scaling.alpha", 1000.0}}},
          {"glm4", {{"rope.dimension_sections", {1, 1, 2, 0}}}},
          {"llama4", {{"block_count", 6}}},
          {"granite", {{"rope.scaling.finetuned", false}}},
          {"olmo2", and_yarn(window)},
          {"modern-bert", window},
          {"gemma4",
           {{"attention.sliding_window", 16},
            {"attention.key_length_swa", 4},
            {"rope.dimension_count_swa", 4},
            {"block_count", 3},
            {"attention.sliding_window_pattern", {1, 0, 1}}}},
          {"llama", {{"rope.scale_linear", 4.0}, {"attention.head_count", {4, 4}}, {"embedding_length", 32}}}};
}

bytes bytes_of(const seed& model, bool big) {
  json values = {{"general.architecture", model.architecture}};
  if (!model.keys.contains("attention.head_count"))
    values[std::string(model.architecture) + ".attention.key_length"] = 8;
  for (const auto& entry : model.keys.items()) values[model.architecture + ("." + entry.key())] = entry.value();
  return from_json(values, model.tensors, big);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_gguf_corpus <directory>\n");
    return 2;
  }
  bool written = true;
  const auto write = [&](const std::string& name, const bytes& data) {
    std::ofstream out(std::string(argv[1]) + "/" + name + ".gguf", std::ios::binary);
    out.write(reinterpret_cast<const char*>(data.data()), static_cast<std::streamsize>(data.size()));
    written = written && out.flush().good();
  };
  const json golden = golden::load("configs/gguf");
  for (const bool big : {false, true}) {
    const std::string order = big ? "-big-endian" : "";
    for (const json& record : golden.at("records")) {
      write(record.at("name").get<std::string>() + order, from_json(record.at("kv"), record.at("tensors"), big));
    }
    write("every-type" + order, of_every_type(big).all());
    for (const seed& model : seeds()) write(model.architecture + order, bytes_of(model, big));
  }
  if (!written) std::fprintf(stderr, "make_gguf_corpus: cannot write into %s\n", argv[1]);
  return written ? 0 : 1;
}
