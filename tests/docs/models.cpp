// Prints docs/models.md: models <tests/data>
//
// What the reader of config.json makes of the recorded configs (golden/configs/configs.json) and of models.json, and
// what is publicly known of engines that compute something else.
#include <cctype>
#include <cstdio>
#include <fstream>
#include <rotary/detail/gguf_architectures.hpp>
#include <rotary/huggingface.hpp>
#include <rotary/rope_summary.hpp>

namespace {

using nlohmann::json;
using rotary::layer_rope;
using rotary::pairing;

// One type of layer of one model. `block` is its block of scaling parameters, null where there is none.
struct layer_of_model {
  const std::string& model_type;
  const layer_rope& layer;
  json block;

  const rotary::yarn* yarn() const { return std::get_if<rotary::yarn>(&layer.scaling); }
  template <class Policy>
  bool has() const {
    return std::holds_alternative<Policy>(layer.scaling);
  }
  double magnitude() const { return layer.rotates() ? layer.spectrum(1).magnitude() : 1.0; }
};

// The architecture under which llama.cpp's converter stores a model type; null where it is not known here.
const char* architecture_of(const std::string& model_type) {
  static const std::map<std::string, const char*> names = {{"apertus", "apertus"},
                                                           {"chatglm", "chatglm"},
                                                           {"cohere", "command-r"},
                                                           {"cohere2", "cohere2"},
                                                           {"deepseek_v2", "deepseek2"},
                                                           {"deepseek_v3", "deepseek2"},
                                                           {"ernie4_5", "ernie4_5"},
                                                           {"exaone", "exaone"},
                                                           {"exaone4", "exaone4"},
                                                           {"falcon", "falcon"},
                                                           {"falcon_h1", "falcon-h1"},
                                                           {"gemma", "gemma"},
                                                           {"gemma2", "gemma2"},
                                                           {"gemma3_text", "gemma3"},
                                                           {"gemma3n_text", "gemma3n"},
                                                           {"gemma4_text", "gemma4"},
                                                           {"glm4", "glm4"},
                                                           {"glm4_moe", "glm4moe"},
                                                           {"gpt_neox", "gptneox"},
                                                           {"gpt_oss", "gpt-oss"},
                                                           {"hunyuan_v1_moe", "hunyuan-moe"},
                                                           {"internlm2", "internlm2"},
                                                           {"kimi_k2", "deepseek2"},
                                                           {"lfm2", "lfm2"},
                                                           {"llama", "llama"},
                                                           {"llama4_text", "llama4"},
                                                           {"mimo_v2_flash", "mimo2"},
                                                           {"minicpm", "minicpm"},
                                                           {"minimax_m2", "minimax-m2"},
                                                           {"ministral3", "mistral3"},
                                                           {"mistral", "llama"},
                                                           {"mixtral", "llama"},
                                                           {"modernbert", "modern-bert"},
                                                           {"nemotron", "nemotron"},
                                                           {"olmo2", "olmo2"},
                                                           {"olmo3", "olmo2"},
                                                           {"phi", "phi2"},
                                                           {"phi3", "phi3"},
                                                           {"qwen", "qwen"},
                                                           {"qwen2", "qwen2"},
                                                           {"qwen2_5_vl", "qwen2vl"},
                                                           {"qwen3", "qwen3"},
                                                           {"qwen3_5_moe_text", "qwen35moe"},
                                                           {"qwen3_moe", "qwen3moe"},
                                                           {"qwen3_next", "qwen3next"},
                                                           {"qwen3_vl_text", "qwen3vl"},
                                                           {"stablelm", "stablelm"},
                                                           {"starcoder2", "starcoder2"}};
  const auto found = names.find(model_type);
  return found == names.end() ? nullptr : found->second;
}

bool llama_cpp_misses_pairs(const layer_of_model& of) {
  if (!of.layer.mrope || of.layer.mrope->layout != rotary::mrope_layout::interleaved) return false;
  if (architecture_of(of.model_type) == nullptr) return false;
  const std::vector<std::size_t>& section = of.layer.mrope->section;
  const auto ggml = rotary::mrope_interleaved_ggml({section[0], section[1], section[2], 0});
  return ggml.axis_of_pair() != of.layer.axes()->axis_of_pair();
}

// What engines do otherwise, and to which layers it applies. Each text says what a public source states, no more.
struct difference {
  bool (*applies)(const layer_of_model&);
  const char* text;
};
const difference differences[] = {
    {[](const layer_of_model& of) { return of.yarn() != nullptr && !of.yarn()->truncate; },
     "llama.cpp rounds the ends of YaRN's ramp to whole pairs: ggml has no switch for it. In gpt-oss pair 17 "
     "then turns 76 % faster; the pairs outside the ramp agree."},
    {[](const layer_of_model& of) {
       return of.yarn() != nullptr && of.block.contains("mscale") && !of.block.contains("attention_factor");
     },
     "Engines disagree on the multiplier of cos and sin that `mscale` and `mscale_all_dim` stand for. transformers and "
     "SGLang divide one by the other, as here; vLLM has used 0.1 ln(factor) + 1 (1.277 instead of 1 for a factor of "
     "16); ExLlamaV3 divides for some architectures only."},
    {[](const layer_of_model& of) { return of.layer.softmax_scale_multiplier != 1.0; },
     "The scale of the softmax has a multiplier as well (`layer_rope::softmax_scale_multiplier`), which transformers "
     "long lacked for DeepSeek-V2. GGUF files hold 0.1 `mscale_all_dim` as `rope.scaling.yarn_log_multiplier`."},
    {[](const layer_of_model& of) { return of.magnitude() != 1.0; },
     "When llama.cpp moves cached keys (K-shift) it multiplies them by the multiplier of cos and sin once more, at "
     "each shift."},
    {[](const layer_of_model& of) {
       return of.layer.pairing == pairing::interleaved && of.model_type == "deepseek_v3";
     },
     "transformers can write the rotated channels in another order than it read them (`rope_interleave`): first the "
     "even, then the odd members of the pairs. Scores are the same, cached keys are not: layout `{interleaved, 0, "
     "split_half}`."},
    {[](const layer_of_model& of) { return of.has<rotary::dynamic_ntk>(); },
     "transformers takes the largest length seen so far and leaves cached keys as they were rotated before; vLLM took "
     "one theta, that of factor times the trained context, at every length; engines with a fixed table choose one "
     "length when they load. GGUF has no key for it."},
    {[](const layer_of_model& of) { return of.has<rotary::qwen_dynamic_ntk>(); },
     "The model's own code computes alpha in the prefill and keeps it, the same for a whole batch. Queries are "
     "multiplied too (`layer_rope::query_temperature`)."},
    {[](const layer_of_model& of) { return of.has<rotary::ntk>(); },
     "The config calls it dynamic, but with `alpha` it does not depend on the length; vLLM does as here, llama.cpp in "
     "recent versions (`rope.scaling.alpha`)."},
    {[](const layer_of_model& of) { return of.has<rotary::longrope>(); },
     "Which list applies is decided here by the sequence_length that is given; in transformers by the largest position "
     "of the call, at which Phi-3 drops its cache; in vLLM by max_model_len and in llama.cpp by the context per "
     "sequence, both when loading. mlx-lm always takes the long one. No engine is known to rotate cached keys anew."},
    {llama_cpp_misses_pairs,
     "llama.cpp lets pairs beyond 3 times the first section read a fourth position, 0 for text: with {24, 20, 20} "
     "pairs 61 and 62 do not turn, where transformers turns them with t. `mrope_interleaved_ggml` is that map."},
    {[](const layer_of_model& of) { return of.has<rotary::proportional>(); },
     "MLX writes the pairs at rest as infinite periods, llama.cpp as huge divisors (`rope_freqs`). An engine that "
     "takes partial_rotary_factor for a contiguous block rotates other channels by other frequencies."},
    {[](const layer_of_model& of) {
       return of.layer.name == "full_attention" && !of.has<rotary::none>() && !of.has<rotary::proportional>();
     },
     "The scaling is of these layers alone. An engine with one scaling for all layers slows the sliding ones too."},
};
constexpr std::size_t known_differences = sizeof differences / sizeof differences[0];

std::string number(double value, const char* format = "%.7g") {
  char text[32];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

// Without what other columns have, and without what is usual.
std::string policy_of(const layer_rope& layer) {
  const rotary::policy_description policy = rotary::describe(layer.scaling);
  std::string text = policy.name, separator = ": ";
  for (const rotary::policy_parameter& p : policy.parameters) {
    const std::string name = p.name;
    if (name.find("attention_factor") != std::string::npos || (name == "truncate" && p.value != 0.0)) continue;
    text += separator + name + " " + number(p.value);
    separator = ", ";
  }
  if (layer.mrope) {
    static const char* const layouts[] = {"chunked", "interleaved", "h and w alternating, then t"};
    std::string sum;
    for (const std::size_t pairs : layer.mrope->section) sum += (sum.empty() ? "" : " + ") + std::to_string(pairs);
    text += "; M-RoPE " + sum + " pairs, " + layouts[static_cast<int>(layer.mrope->layout)];
  }
  return text;
}

std::string pairing_of(const layer_of_model& of) {
  const char* const architecture = architecture_of(of.model_type);
  std::string text = rotary::name_of(of.layer.pairing);
  if (architecture == nullptr) return text + " | ";
  const pairing stored = rotary::detail::find_gguf_architecture(architecture)->pairing;
  return text + " | " + (stored == of.layer.pairing ? "same" : std::string("**") + rotary::name_of(stored) + "**");
}

json block_of(const json& config, const std::string& layer) {
  for (const char* inner : {"text_config", "thinker_config"}) {
    if (config.contains(inner)) return block_of(config.at(inner), layer);
  }
  for (const char* key : {"rope_parameters", "rope_scaling"}) {
    if (!config.contains(key) || !config.at(key).is_object()) continue;
    const json& block = config.at(key);
    return block.contains(layer) ? block.at(layer) : block;
  }
  return json::object();
}

void print_row(const std::string& model, const layer_of_model& of) {
  std::printf("| %s | ", model.c_str());
  if (!of.layer.rotates()) {
    std::printf("does not rotate%s | | | | %zu / 0 | | |\n",
                of.layer.query_temperature ? "; queries have a temperature" : "", of.layer.head_dim);
    return;
  }
  std::string letters;
  for (std::size_t i = 0; i < known_differences; ++i) {
    if (differences[i].applies(of))
      letters += (letters.empty() ? "" : " ") + std::string(1, static_cast<char>('a' + i));
  }
  std::printf("%s | %s | %s | %zu / %zu | %s | %s |\n", policy_of(of.layer).c_str(),
              number(of.layer.rope_theta, "%.12g").c_str(), pairing_of(of).c_str(), of.layer.head_dim,
              of.layer.rotary_dim, number(of.magnitude()).c_str(), letters.c_str());
}

void print_model(const json& record) {
  const rotary::rope model = rotary::from_huggingface(record.at("config"));
  for (const layer_rope& layer : model.types) {
    std::string name = record.at("name").get<std::string>() + " (`" + model.model_type + "`)";
    if (model.types.size() > 1) name += ", " + layer.name;
    print_row(name, {model.model_type, layer, block_of(record.at("config"), layer.name)});
  }
}

// By name in small letters, for the order.
std::map<std::string, json> models_in(const std::string& directory) {
  std::map<std::string, json> models;
  for (const char* name : {"golden/configs/configs.json", "models.json"}) {
    std::ifstream file(directory + "/" + name);
    const json data = json::parse(file);
    for (const json& record : data.at("records")) {
      std::string model = record.at("name");
      for (char& c : model) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
      if (model.compare(0, 4, "syn-") != 0) models.emplace(model, record);  // those are made up
    }
  }
  return models;
}

void print_wrapped(std::string text) {
  constexpr std::size_t width = 120;
  while (text.size() > width) {
    const std::size_t end = text.rfind(' ', width);
    std::printf("%s\n", text.substr(0, end).c_str());
    text = "  " + text.substr(end + 1);
  }
  std::printf("%s\n", text.c_str());
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: models <directory of the tests' data>\n");
    return 2;
  }
  std::printf(
      "# Models: what rotates, and how engines differ\n\n"
      "What `from_huggingface` makes of published settings. Printed by `build/test/tests/docs/models tests/data` from\n"
      "`tests/data/golden/configs/configs.json` and `tests/data/models.json`, which name the source of each; a test "
      "holds\n"
      "this page to it.\n\n"
      "Pairing is that of the checkpoint for transformers. llama.cpp's converter permutes the rows of some models: "
      "\"in\n"
      "GGUF\" is what weights from such a file need ([docs/gguf.md](gguf.md)). The multiplier is that of cos and sin. "
      "Where\n"
      "only the rotated part of a head is a tensor of its own (MLA), head_dim is that part's.\n"
      "[docs/scaling.md](scaling.md) has the policies. Letters are explained below the table.\n\n"
      "| model | scaling | rope_theta | pairing | in GGUF | head_dim / rotary_dim | multiplier | engines |\n"
      "| --- | --- | ---: | --- | --- | ---: | ---: | --- |\n");
  for (const auto& model : models_in(argv[1])) print_model(model.second);
  std::printf(
      "\n## What engines do otherwise\n\n"
      "All models: transformers and vLLM compute angles in float, from float frequencies (`angles::float32`; vLLM's "
      "differ\nfrom transformers' in the last bit for large rope_theta), and ggml by a running product in float\n"
      "(`angles::float32_recurrence`). [docs/accuracy.md](accuracy.md) says how far that is from exact.\n\n");
  for (std::size_t i = 0; i < known_differences; ++i) {
    print_wrapped("- **" + std::string(1, static_cast<char>('a' + i)) + "** " + differences[i].text);
  }
  return 0;
}
