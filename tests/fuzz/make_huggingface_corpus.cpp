// Writes what fuzzing of the config.json reader starts from: make_huggingface_corpus <directory>
#include <cstdio>
#include <fstream>
#include <rotary/huggingface.hpp>

#include "golden.hpp"

namespace {

using nlohmann::json;

// A config of each model type of the library, short and with a block of its own, so that mutations begin at its rules.
json smallest(const char* model_type) {
  return {{"model_type", model_type},     {"head_dim", 8},
          {"num_hidden_layers", 3},       {"rope_theta", 10000},
          {"partial_rotary_factor", 1.0}, {"position_embedding_type", "rope"}};
}

// Rules that the reference configs do not use.
std::vector<json> rules() {
  const json yarn = {{"rope_type", "yarn"}, {"factor", 4}, {"original_max_position_embeddings", 64}};
  const json layer_types = {"full_attention", "sliding_attention", "full_attention"};
  const auto with = [](const char* model_type, const json& more) {
    json config = smallest(model_type);
    config.update(more);
    return config;
  };
  json mistral = yarn, deepseek = yarn;
  mistral.update({{"llama_4_scaling_beta", 0.1}, {"attn_factor", 0.9}, {"truncate", false}});
  deepseek.update({{"mscale", 1}, {"mscale_all_dim", 1}, {"beta_fast", 32}, {"beta_slow", 1}});
  return {
      with("mistral", {{"rope_parameters", mistral}}),
      with("deepseek_v3", {{"qk_rope_head_dim", 8}, {"rope_interleave", true}, {"rope_scaling", deepseek}}),
      with("llama", {{"max_position_embeddings", 64}, {"rope_scaling", {{"type", "dynamic"}, {"factor", "2.0"}}}}),
      with("llama", {{"rope_scaling", {{"rope_type", "ntk"}, {"factor", 2}, {"mixed_b", 0.5}}}}),
      with("llama", {{"rope_scaling", yarn.dump()}}),
      with("phimoe",
           {{"max_position_embeddings", 256},
            {"original_max_position_embeddings", 64},
            {"rope_scaling",
             {{"type", "su"}, {"short_factor", {1, 1, 1, 1}}, {"long_factor", {1, 2, 3, 4}}, {"long_mscale", 1.2}}}}),
      with("qwen", {{"seq_length", 64}, {"use_dynamic_ntk", true}, {"use_logn_attn", true}}),
      with("chatglm", {{"kv_channels", 8}, {"rope_ratio", 50}}),
      with("llama4_text", {{"no_rope_layers", {1, 1, 0}}, {"attn_scale", 0.1}, {"floor_scale", 64}}),
      with("cohere2", {{"sliding_window_pattern", 2}}),
      with("exaone4", {{"sliding_window", 16}, {"layer_types", layer_types}}),
      with("gemma3_text", {{"rope_local_base_freq", 10000}, {"layer_types", layer_types}}),
      with("gemma4_text",
           {{"global_head_dim", 16},
            {"layer_types", layer_types},
            {"rope_parameters",
             {{"full_attention", {{"rope_type", "proportional"}, {"partial_rotary_factor", 0.25}, {"rope_theta", 1e6}}},
              {"sliding_attention", {{"rope_type", "default"}, {"rope_theta", 1e4}}}}}}),
      with("mimo_v2_flash", {{"hybrid_layer_pattern", {0, 1, 1}}, {"swa_rope_theta", 1e4}, {"swa_head_dim", 8}}),
      with("mllama_text_model", {{"cross_attention_layers", {1}}}),
      with("modernbert", {{"global_rope_theta", 160000}, {"local_rope_theta", 10000}}),
      with("qwen3_vl_text", {{"rope_scaling", {{"mrope_section", {2, 1, 1}}, {"mrope_interleaved", true}}}}),
      with("hunyuan_vl", {{"rope_scaling", {{"type", "xdrope"}, {"alpha", 9}, {"xdrope_section", {1, 1, 1, 1}}}}}),
      {{"model_type", "llava"}, {"text_config", smallest("llama")}},
      {{"model_type", "made_up"}, {"hidden_size", "16.0"}, {"num_attention_heads", 2}, {"rope_theta", 1e4}}};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: make_huggingface_corpus <directory>\n");
    return 2;
  }
  bool written = true;
  const auto write = [&](const std::string& name, const std::string& text) {
    std::ofstream out(std::string(argv[1]) + "/" + name + ".json", std::ios::binary);
    out << text;
    written = written && out.flush().good();
  };
  for (const json& record : golden::load("configs/configs").at("records")) {
    write(record.at("name"), record.at("config").dump());
  }
  for (const json& record : golden::load("configs/malformed").at("records")) {
    write(record.at("name"), record.at("text"));
  }
  for (const rotary::detail::huggingface_model& model : rotary::detail::model_table::rows) {
    write(model.model_type, smallest(model.model_type).dump());
  }
  const std::vector<json> seeds = rules();
  for (std::size_t i = 0; i < seeds.size(); ++i) write("rule-" + std::to_string(i), seeds[i].dump());
  if (!written) std::fprintf(stderr, "make_huggingface_corpus: cannot write into %s\n", argv[1]);
  return written ? 0 : 1;
}
