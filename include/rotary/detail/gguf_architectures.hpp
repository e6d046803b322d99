// What a GGUF file leaves to its reader, by architecture, as llama.cpp has it: llama_model_rope_type and the loaders of
// the architectures.
#ifndef ROTARY_DETAIL_GGUF_ARCHITECTURES_HPP
#define ROTARY_DETAIL_GGUF_ARCHITECTURES_HPP

#include <string_view>

#include "../layout.hpp"

namespace rotary {
inline namespace ROTARY_ABI {
namespace detail {

/// Which position each pair reads.
enum class gguf_axes : unsigned char {
  one,               ///< a token has one position
  chunked,           ///< ggml's MROPE: rope.dimension_sections one after the other
  interleaved,       ///< ggml's IMROPE
  chunked_if_stated  ///< MROPE, and with it split_half, where dimension_sections has a number that is not 0
};

// Bits of gguf_architecture::traits.
constexpr unsigned rotated_part_alone = 1u << 0;    ///< MLA: the rotated channels are a head of their own
constexpr unsigned log_multiplier_tenth = 1u << 1;  ///< yarn_log_multiplier is 0.1 * mscale_all_dim, of the softmax
constexpr unsigned log_multiplier_plain = 1u << 2;  ///< yarn_log_multiplier is mscale_all_dim, with mscale 1
constexpr unsigned full_rests = 1u << 3;            ///< layers of full attention do not rotate
constexpr unsigned only_with_window = 1u << 4;   ///< the layers are all alike unless attention.sliding_window is given
constexpr unsigned only_without_zero = 1u << 5;  ///< the layers are all alike if attention.sliding_window is given as 0
constexpr unsigned temperature_llama4 = 1u << 6;     ///< layers at rest multiply queries by Llama-4's temperature
constexpr unsigned sliding_unscaled = 1u << 7;       ///< sliding layers have neither scaling nor rope_freqs
constexpr unsigned sliding_10000 = 1u << 8;          ///< and rope_theta 10000 unless freq_base_swa is given
constexpr unsigned full_first = 1u << 9;             ///< the first layer of each period is the full one, else the last
constexpr unsigned finetuned_is_switch = 1u << 10;   ///< scaling.finetuned false means that no layer rotates
constexpr unsigned only_32_layers = 1u << 11;        ///< Baichuan: 40 layers have ALiBi, llama.cpp rotates no others
constexpr unsigned yarn_factor_is_final = 1u << 12;  ///< yarn_attn_factor is the multiplier of cos and sin
constexpr unsigned yarn_grok = 1u << 13;             ///< yarn_attn_factor multiplies 0.1 ln s + 1; beta_fast is 8
constexpr unsigned yarn_untruncated = 1u << 14;  ///< the model was trained so; the file does not say it, ggml truncates
constexpr unsigned layers_have_no_names = 1u << 15;  ///< those at rest are called "nope", the others "all"

constexpr unsigned gemma_layers = sliding_unscaled | sliding_10000 | only_with_window;
constexpr unsigned deepseek = rotated_part_alone | log_multiplier_tenth;

struct gguf_architecture {
  const char* name;  ///< general.architecture
  rotary::pairing pairing;
  gguf_axes axes = gguf_axes::one;
  unsigned traits = 0;
  std::size_t period = 0;  ///< of the layers of full attention; 0: only attention.sliding_window_pattern tells
};

/// Null for what is not in the table. Left out on purpose: plamo and orion, of which llama.cpp and ik_llama.cpp
/// disagree; deepseek4 and step35, whose layers differ by rules that no key states; what does not rotate at all.
inline const gguf_architecture* find_gguf_architecture(std::string_view name) {
  constexpr auto interleaved = pairing::interleaved, split_half = pairing::split_half;
  constexpr auto one = gguf_axes::one;
  static constexpr gguf_architecture table[] = {
      // ggml's NORM
      {"arcee", interleaved},
      {"arctic", interleaved},
      {"baichuan", interleaved, one, only_32_layers},
      {"bailingmoe", interleaved},
      {"bailingmoe3", interleaved},
      {"chameleon", interleaved},
      {"chatglm", interleaved},
      {"cohere2", interleaved, one, full_rests, 4},
      {"command-r", interleaved},
      {"deci", interleaved},
      {"deepseek", interleaved},
      {"deepseek2", interleaved, one, deepseek},
      {"deepseek32", interleaved, one, deepseek},
      {"ernie4_5", interleaved},
      {"ernie4_5-moe", interleaved},
      {"glm-dsa", interleaved, one, deepseek},
      {"glm4", interleaved, gguf_axes::chunked_if_stated},
      {"granite", interleaved, one, finetuned_is_switch},
      {"granitehybrid", interleaved, one, finetuned_is_switch},
      {"granitemoe", interleaved, one, finetuned_is_switch},
      {"internlm2", interleaved},
      {"llada", interleaved},
      {"llama", interleaved},
      {"llama4", interleaved, one, full_rests | layers_have_no_names | only_without_zero | temperature_llama4, 4},
      {"minicpm", interleaved},
      {"mistral3", interleaved, one, log_multiplier_plain},
      {"mistral4", interleaved, one, deepseek},
      {"neo-bert", interleaved},
      {"olmo", interleaved},
      {"plm", interleaved, one, rotated_part_alone},
      {"smollm3", interleaved, one, full_rests | layers_have_no_names, 4},
      {"xverse", interleaved},
      // ggml's NEOX
      {"apertus", split_half},
      {"bailingmoe2", split_half},
      {"bitnet", split_half},
      {"codeshell", split_half},
      {"dbrx", split_half},
      {"dots1", split_half},
      {"dream", split_half},
      {"exaone", split_half},
      {"exaone4", split_half, one, full_rests | only_with_window, 4},
      {"falcon", split_half},
      {"falcon-h1", split_half},
      {"gemma", split_half},
      {"gemma-embedding", split_half, one, gemma_layers, 6},
      {"gemma2", split_half},
      {"gemma3", split_half, one, gemma_layers, 6},
      {"gemma3n", split_half, one, gemma_layers, 5},
      {"gemma4", split_half, one, gemma_layers},
      {"glm4moe", split_half, gguf_axes::chunked_if_stated},
      {"gpt-oss", split_half, one, yarn_untruncated},
      {"gptneox", split_half},
      {"grok", split_half, one, yarn_grok},
      {"grovemoe", split_half},
      {"hunyuan-dense", split_half},
      {"hunyuan-moe", split_half},
      {"jina-bert-v3", split_half},
      {"laguna", split_half, one, sliding_unscaled | yarn_factor_is_final},
      {"lfm2", split_half},
      {"lfm2moe", split_half},
      {"llada-moe", split_half},
      {"mimo2", split_half, one, sliding_unscaled | sliding_10000},
      {"minicpm3", split_half, one, rotated_part_alone},
      {"minimax-m2", split_half},
      {"minimax-m3", split_half},
      {"modern-bert", split_half, one, gemma_layers | full_first, 3},
      {"nemotron", split_half},
      {"nomic-bert", split_half},
      {"nomic-bert-moe", split_half},
      {"olmo2", split_half, one, sliding_unscaled | only_with_window, 4},
      {"olmoe", split_half},
      {"openelm", split_half},
      {"phi2", split_half},
      {"phi3", split_half},
      {"phimoe", split_half},
      {"qwen", split_half},
      {"qwen2", split_half},
      {"qwen2moe", split_half},
      {"qwen3", split_half},
      {"qwen3moe", split_half},
      {"qwen3next", split_half},
      {"seed_oss", split_half},
      {"stablelm", split_half},
      {"starcoder2", split_half},
      // ggml's MROPE and IMROPE
      {"hunyuan-vl", split_half, gguf_axes::chunked_if_stated},
      {"paddleocr", split_half, gguf_axes::chunked},
      {"qwen2vl", split_half, gguf_axes::chunked},
      {"qwen35", split_half, gguf_axes::interleaved},
      {"qwen35moe", split_half, gguf_axes::interleaved},
      {"qwen3vl", split_half, gguf_axes::interleaved},
      {"qwen3vlmoe", split_half, gguf_axes::interleaved}};
  for (const gguf_architecture& row : table) {
    if (name == row.name) return &row;
  }
  return nullptr;
}

}  // namespace detail
}  // namespace ROTARY_ABI
}  // namespace rotary

#endif
