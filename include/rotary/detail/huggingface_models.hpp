// What a config.json does not say because the model's code knows it: one row a model type. To add a model, add a row.
#ifndef ROTARY_DETAIL_HUGGINGFACE_MODELS_HPP
#define ROTARY_DETAIL_HUGGINGFACE_MODELS_HPP

#include <string>

#include "../rope.hpp"

namespace rotary {
inline namespace ROTARY_ABI {
namespace detail {

/// One of the two types of layers that a model alternates between.
struct layer_kind {
  const char* name;
  bool rotates;
  bool scaled;            // by a rope_scaling that names no type of layer
  const char* theta_key;  // beside or in place of rope_theta
  double rope_theta;      // where the config states none; 0: that of the model
  const char* head_dim_key = nullptr;
  std::size_t head_dim = 0;  // where the config states none; 0: that of the model
};

/// Which layers are of which kind. The config states it by layer_types (the kinds' names), by a list of 0 (first) and 1
/// (second) for each layer, by a list of the layers of the first kind, or not at all: then every `interval`-th layer is
/// of the first kind.
struct layer_scheme {
  layer_kind kinds[2];
  const char* list_key;      // the list of 0 and 1
  const char* interval_key;  // overrides `interval`
  std::size_t interval;      // 0: the config must say
  bool first_of_interval = false;
  const char* index_key = nullptr;  // the list of layers of the first kind
};

inline constexpr layer_scheme no_rope_layers = {
    {{"nope", false, false, nullptr, 0.0}, {"all", true, true, "rope_theta", 0.0}},
    "no_rope_layers",
    "no_rope_layer_interval",
    4};
inline constexpr layer_scheme rope_in_sliding_layers = {
    {{"full_attention", false, false, nullptr, 0.0}, {"sliding_attention", true, true, "rope_theta", 0.0}},
    nullptr,
    "sliding_window_pattern",
    4};
inline constexpr layer_scheme afmoe_layers = {
    {{"full_attention", false, false, nullptr, 0.0}, {"sliding_attention", true, true, "rope_theta", 0.0}},
    nullptr,
    "global_attn_every_n_layers",
    4};
inline constexpr layer_kind gemma_full = {"full_attention", true, true, "rope_theta", 1e6};
inline constexpr layer_kind gemma_sliding = {"sliding_attention", true, false, "rope_local_base_freq", 1e4};
inline constexpr layer_scheme gemma3_layers = {{gemma_full, gemma_sliding}, nullptr, "sliding_window_pattern", 6};
inline constexpr layer_scheme gemma3n_layers = {{gemma_full, gemma_sliding}, nullptr, nullptr, 5};
inline constexpr layer_scheme gemma4_layers = {{{"full_attention", true, false, nullptr, 0.0, "global_head_dim", 512},
                                                {"sliding_attention", true, false, nullptr, 0.0}},
                                               nullptr,
                                               nullptr,
                                               0};
inline constexpr layer_scheme modernbert_layers = {{{"full_attention", true, true, "global_rope_theta", 160000.0},
                                                    {"sliding_attention", true, true, "local_rope_theta", 10000.0}},
                                                   nullptr,
                                                   "global_attn_every_n_layers",
                                                   3,
                                                   true};
inline constexpr layer_scheme olmo3_layers = {
    {{"full_attention", true, true, "rope_theta", 0.0}, {"sliding_attention", true, false, "rope_theta", 0.0}},
    nullptr,
    nullptr,
    4};
inline constexpr layer_scheme mimo_layers = {
    {{"full_attention", true, true, "rope_theta", 5e6},
     {"sliding_attention", true, false, "swa_rope_theta", 1e4, "swa_head_dim"}},
    "hybrid_layer_pattern",
    nullptr,
    0};

inline constexpr layer_scheme mllama_layers = {
    {{"cross_attention", false, false, nullptr, 0.0}, {"self_attention", true, true, "rope_theta", 0.0}},
    nullptr,
    nullptr,
    0,
    false,
    "cross_attention_layers"};

enum class peculiarity : unsigned char {
  no,
  mla_softmax,                // softmax scale times g(mscale_all_dim)^2; rope_interleave may state the pairing
  llama4_temperature,         // of queries in layers that do not rotate
  exaone_window,              // all layers rotate if sliding_window is null; transformers has 4096 where it is missing
  chatglm_ratio,              // theta is 10000 * rope_ratio
  qwen1,                      // use_dynamic_ntk, use_logn_attn
  positions_must_be_stated,   // without position_embedding_type there is no rotation
  scaling_must_be_stated,     // transformers' class has a scaling of its own where there is none
  rotary_dim_must_be_stated,  // transformers takes 64 where it is missing, all of the head where it is null
  absolute_means_rope,        // published configs say so by position_embedding_type, and the model's code rotates
  widths_have_defaults,       // transformers' 4096 channels of 32 heads where neither is stated: LLaVA-1.5
  lfm2_theta,                 // "theta" wins over rope_theta in the model's code
  phi3_su,                    // "yarn" with short_factor and long_factor means longrope
  never_rotates
};

struct huggingface_model {
  const char* model_type;
  rotary::pairing pairing;
  double rope_theta;  // where the config states none; 0: it must, also where sources disagree
  double partial_rotary_factor = 1.0;
  std::size_t head_dim = 0;  // where the config states none; 0: hidden_size / num_attention_heads
  peculiarity special = peculiarity::no;
  const layer_scheme* layers = nullptr;  // null: all layers are alike
  mrope_layout mrope = mrope_layout::chunked;
  unsigned char section[3] = {0, 0, 0};  // of M-RoPE, where the config states none; 0: one position a token
};

namespace model_table {

constexpr pairing half = pairing::split_half, inter = pairing::interleaved;
constexpr peculiarity plain = peculiarity::no, mla = peculiarity::mla_softmax;
constexpr mrope_layout chunked = mrope_layout::chunked, interleaved = mrope_layout::interleaved,
                       alternating = mrope_layout::height_width_alternating;

// A wrong pairing gives wrong results without an error: take a row from the model's own code, or leave it out.
inline constexpr huggingface_model rows[] = {
    {"afmoe", half, 10000.0, 1.0, 128, plain, &afmoe_layers},
    {"apertus", half, 0.0, 1.0, 0, peculiarity::scaling_must_be_stated},
    {"arcee", half, 10000.0},
    {"aria_text", half, 10000.0},
    {"bamba", half, 0.0, 0.5},
    {"bitnet", half, 0.0},
    {"chatglm", inter, 10000.0, 0.5, 0, peculiarity::chatglm_ratio},
    {"codegen", inter, 10000.0, 1.0, 0, peculiarity::rotary_dim_must_be_stated},
    {"cohere", inter, 0.0},
    {"cohere2", inter, 10000.0, 1.0, 0, plain, &rope_in_sliding_layers},
    {"cwm", half, 0.0, 1.0, 128, peculiarity::scaling_must_be_stated},
    {"deepseek_v2", inter, 10000.0, 1.0, 64, mla},
    {"deepseek_v3", inter, 10000.0, 1.0, 64, mla},
    {"deepseek_v32", inter, 10000.0, 1.0, 64, mla},
    {"diffllama", half, 10000.0},
    {"doge", half, 0.0},
    {"dots1", half, 10000.0},
    {"ernie4_5", inter, 0.0, 1.0, 128},
    {"ernie4_5_moe", inter, 0.0},
    {"ernie4_5_moe_vl", inter, 500000.0, 1.0, 0, plain, nullptr, alternating, {22, 22, 20}},
    {"ernie4_5_vl_moe", inter, 500000.0, 1.0, 0, plain, nullptr, alternating, {22, 22, 20}},
    {"ernie4_5_vl_moe_text", inter, 500000.0, 1.0, 0, plain, nullptr, alternating, {22, 22, 20}},
    {"esm", half, 10000.0, 1.0, 0, peculiarity::positions_must_be_stated},
    {"exaone", half, 10000.0},
    {"exaone4", half, 10000.0, 1.0, 0, peculiarity::exaone_window, &rope_in_sliding_layers},
    {"exaone_moe", half, 0.0, 1.0, 0, peculiarity::exaone_window, &rope_in_sliding_layers},
    {"falcon", half, 10000.0},
    {"falcon_h1", half, 0.0},
    {"flex_olmo", half, 500000.0},
    {"gemma", half, 10000.0, 1.0, 256},
    {"gemma2", half, 10000.0, 1.0, 256},
    {"gemma3", half, 0.0, 1.0, 256, plain, &gemma3_layers},
    {"gemma3_text", half, 0.0, 1.0, 256, plain, &gemma3_layers},
    {"gemma3n", half, 0.0, 1.0, 256, plain, &gemma3n_layers},
    {"gemma3n_text", half, 0.0, 1.0, 256, plain, &gemma3n_layers},
    {"gemma4", half, 0.0, 1.0, 256, plain, &gemma4_layers},
    {"gemma4_text", half, 0.0, 1.0, 256, plain, &gemma4_layers},
    {"glm", inter, 10000.0, 0.5, 128},
    {"glm4", inter, 10000.0, 0.5, 128},
    {"glm4_moe", half, 0.0, 0.5},
    {"glm4_moe_lite", inter, 0.0, 1.0, 64, mla},
    {"glm4v", inter, 10000.0, 1.0, 0, plain, nullptr, chunked, {8, 12, 12}},
    {"glm4v_moe", half, 0.0, 0.5, 0, plain, nullptr, chunked, {8, 12, 12}},
    {"glm4v_moe_text", half, 0.0, 0.5, 0, plain, nullptr, chunked, {8, 12, 12}},
    {"glm4v_text", inter, 10000.0, 1.0, 0, plain, nullptr, chunked, {8, 12, 12}},
    {"glm_ocr", inter, 10000.0, 1.0, 0, plain, nullptr, chunked, {8, 12, 12}},
    {"glm_ocr_text", inter, 10000.0, 1.0, 0, plain, nullptr, chunked, {8, 12, 12}},
    {"gpt_neox", half, 10000.0, 0.25},
    {"gpt_oss", half, 150000.0, 1.0, 64, peculiarity::scaling_must_be_stated},
    {"gptj", inter, 10000.0, 1.0, 0, peculiarity::rotary_dim_must_be_stated},
    {"granite", half, 10000.0},
    {"granitemoe", half, 10000.0},
    {"granitemoehybrid", half, 10000.0, 1.0, 0, peculiarity::positions_must_be_stated},
    {"granitemoeshared", half, 10000.0},
    {"helium", inter, 0.0, 1.0, 128},
    {"hunyuan_v1_dense", half, 10000.0},
    {"hunyuan_v1_moe", half, 10000.0},
    {"hunyuan_vl", half, 10000.0},
    {"hunyuan_vl_text", half, 10000.0},
    {"internlm2", half, 10000.0},
    {"internlm3", half, 10000.0},
    {"jais2", half, 0.0},
    {"jetmoe", half, 0.0},
    {"kimi_k2", inter, 10000.0, 1.0, 64, mla},
    {"kimi_linear", half, 10000.0, 1.0, 64, peculiarity::never_rotates},
    {"laguna", half, 0.0, 1.0, 128},
    {"lfm2", half, 1e6, 1.0, 0, peculiarity::lfm2_theta},
    {"lfm2_moe", half, 1e6},
    {"llama", half, 10000.0, 1.0, 0, peculiarity::widths_have_defaults},
    {"llama4", inter, 500000.0, 1.0, 128, peculiarity::llama4_temperature, &no_rope_layers},
    {"llama4_text", inter, 500000.0, 1.0, 128, peculiarity::llama4_temperature, &no_rope_layers},
    {"longcat_flash", inter, 1e7, 1.0, 64, mla},
    {"mimo_v2_flash", half, 0.0, 0.334, 192, plain, &mimo_layers},
    {"minicpm", half, 10000.0},
    {"minimax_m2", half, 0.0, 1.0, 128},
    {"ministral", half, 0.0},
    {"ministral3", half, 0.0, 1.0, 128, peculiarity::scaling_must_be_stated},
    {"mistral", half, 10000.0, 1.0, 0, peculiarity::widths_have_defaults},
    {"mixtral", half, 0.0},
    {"mllama", half, 500000.0, 1.0, 0, plain, &mllama_layers},
    {"mllama_text_model", half, 500000.0, 1.0, 0, plain, &mllama_layers},
    {"modernbert", half, 0.0, 1.0, 0, peculiarity::absolute_means_rope, &modernbert_layers},
    {"nemotron", half, 10000.0, 0.5},
    {"nomic_bert", half, 0.0},
    {"olmo", half, 10000.0},
    {"olmo2", half, 10000.0},
    {"olmo3", half, 0.0, 1.0, 0, plain, &olmo3_layers},
    {"olmoe", half, 10000.0},
    {"persimmon", half, 0.0, 0.5},
    {"phi", half, 10000.0, 0.5},
    {"phi3", half, 10000.0, 1.0, 0, peculiarity::phi3_su},
    {"phi3_v", half, 10000.0, 1.0, 0, peculiarity::phi3_su},
    {"phi4_multimodal", half, 10000.0, 1.0, 0, peculiarity::phi3_su},
    {"phi4mm", half, 10000.0, 1.0, 0, peculiarity::phi3_su},
    {"phimoe", half, 0.0, 1.0, 0, peculiarity::phi3_su},
    {"qwen", half, 10000.0, 1.0, 0, peculiarity::qwen1},
    {"qwen2", half, 10000.0},
    {"qwen2_5_omni_text", half, 1e6, 1.0, 0, plain, nullptr, chunked, {16, 24, 24}},
    {"qwen2_5_vl", half, 1e6, 1.0, 0, plain, nullptr, chunked, {16, 24, 24}},
    {"qwen2_5_vl_text", half, 1e6, 1.0, 0, plain, nullptr, chunked, {16, 24, 24}},
    {"qwen2_moe", half, 10000.0},
    {"qwen2_vl", half, 1e6, 1.0, 0, plain, nullptr, chunked, {16, 24, 24}},
    {"qwen2_vl_text", half, 1e6, 1.0, 0, plain, nullptr, chunked, {16, 24, 24}},
    {"qwen3", half, 10000.0, 1.0, 128},
    {"qwen3_5", half, 10000.0, 0.25, 256, plain, nullptr, interleaved, {11, 11, 10}},
    {"qwen3_5_moe", half, 10000.0, 0.25, 256, plain, nullptr, interleaved, {11, 11, 10}},
    {"qwen3_5_moe_text", half, 10000.0, 0.25, 256, plain, nullptr, interleaved, {11, 11, 10}},
    {"qwen3_5_text", half, 10000.0, 0.25, 256, plain, nullptr, interleaved, {11, 11, 10}},
    {"qwen3_moe", half, 10000.0},
    {"qwen3_next", half, 10000.0, 0.25, 256},
    {"qwen3_omni_moe_text", half, 1e6, 1.0, 0, plain, nullptr, interleaved, {24, 20, 20}},
    {"qwen3_vl", half, 0.0, 1.0, 128, plain, nullptr, interleaved, {24, 20, 20}},
    {"qwen3_vl_moe", half, 0.0, 1.0, 0, plain, nullptr, interleaved, {24, 20, 20}},
    {"qwen3_vl_moe_text", half, 0.0, 1.0, 0, plain, nullptr, interleaved, {24, 20, 20}},
    {"qwen3_vl_text", half, 0.0, 1.0, 128, plain, nullptr, interleaved, {24, 20, 20}},
    {"recurrent_gemma", half, 0.0, 0.5},
    {"roformer", inter, 10000.0},
    {"seed_oss", half, 0.0, 1.0, 128},
    {"smollm3", half, 2e6, 1.0, 0, plain, &no_rope_layers},
    {"solar_open", half, 0.0, 1.0, 128},
    {"stablelm", half, 10000.0, 0.25},
    {"starcoder2", half, 10000.0},
    {"vaultgemma", half, 10000.0, 1.0, 256},
    {"youtu", inter, 0.0, 1.0, 64, mla},
};

}  // namespace model_table

/// Null for a model type that has no row.
inline const huggingface_model* find_huggingface_model(const std::string& model_type) {
  for (const huggingface_model& model : model_table::rows) {
    if (model_type == model.model_type) return &model;
  }
  return nullptr;
}

}  // namespace detail
}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
