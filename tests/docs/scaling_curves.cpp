// Prints, as JSON, the curves of docs/scaling.md: scaling_curves <tests/data>. plot_scaling.py draws them.
#include <cstdio>
#include <fstream>
#include <rotary/huggingface.hpp>
#include <rotary/rotary.hpp>

namespace {

using nlohmann::json;
using rotary::make_spectrum;

struct curve {
  std::string label;
  rotary::spectrum spectrum;
};

// `contexts`: lengths in tokens that the wavelengths are to be compared with.
json picture(const char* name, const json& contexts, const std::vector<curve>& curves) {
  json result = {{"name", name}, {"contexts", contexts}, {"curves", json::array()}};
  for (const curve& c : curves) {
    result["curves"].push_back({{"label", c.label}, {"inv_freq", std::vector<double>(c.spectrum.inv_freq())}});
  }
  return result;
}

rotary::layer_rope recorded(const std::string& directory, const std::string& name) {
  std::ifstream file(directory + "/golden/configs/configs.json");
  const json data = json::parse(file);
  for (const json& record : data.at("records")) {
    if (record.at("name") == name) return rotary::from_huggingface(record.at("config")).types[0];
  }
  throw std::runtime_error("configs.json has no " + name);
}

json pictures(const std::string& directory) {
  const rotary::layer_rope phi = recorded(directory, "phi-3.5-vision");
  const rotary::yarn gpt_oss{32.0, 4096, 32.0, 1.0, false};
  return {
      picture("linear", {{"trained", 4096}, {"wanted", 16384}},
              {{"none", make_spectrum(128, 1e4)}, {"linear{4}", make_spectrum(128, 1e4, rotary::linear{4.0})}}),
      picture("ntk", json::object(),
              {{"none", make_spectrum(128, 1e4)},
               {"ntk{8}", make_spectrum(128, 1e4, rotary::ntk{8.0})},
               {"ntk_fixed{8}", make_spectrum(128, 1e4, rotary::ntk_fixed{8.0})},
               {"ntk_mixed{8, 0.625}", make_spectrum(128, 1e4, rotary::ntk_mixed{8.0, 0.625})},
               {"linear{8}", make_spectrum(128, 1e4, rotary::linear{8.0})}}),
      picture("dynamic_ntk", {{"max_position_embeddings", 32768}},
              {{"none, and up to 32768 tokens", make_spectrum(128, 1e6)},
               {"65536 tokens", make_spectrum(128, 1e6, rotary::dynamic_ntk{2.0, 32768}, 65536)},
               {"200000 tokens", make_spectrum(128, 1e6, rotary::dynamic_ntk{2.0, 32768}, 200000)}}),
      picture("qwen_dynamic_ntk", {{"seq_length", 8192}},
              {{"none, and up to 8192 tokens", make_spectrum(128, 1e4)},
               {"8193 to 16384 tokens", make_spectrum(128, 1e4, rotary::qwen_dynamic_ntk{8192}, 16384)},
               {"16385 to 32768 tokens", make_spectrum(128, 1e4, rotary::qwen_dynamic_ntk{8192}, 32768)}}),
      picture("yarn", {{"original", 4096}, {"times 32", 131072}},
              {{"none", make_spectrum(64, 150000.0)},
               {"yarn{32, 4096}", make_spectrum(64, 150000.0, rotary::yarn{32.0, 4096})},
               {"the same, not truncated (gpt-oss)", make_spectrum(64, 150000.0, gpt_oss)},
               {"linear{32}", make_spectrum(64, 150000.0, rotary::linear{32.0})}}),
      picture("llama3", {{"original", 8192}, {"times 8", 65536}},
              {{"none", make_spectrum(128, 5e5)},
               {"llama3{8, 1, 4, 8192}", make_spectrum(128, 5e5, rotary::llama3{8.0, 1.0, 4.0, 8192})},
               {"linear{8}", make_spectrum(128, 5e5, rotary::linear{8.0})}}),
      picture("longrope", {{"original", 4096}, {"wanted", 131072}},
              {{"none", make_spectrum(96, 1e4)},
               {"up to 4096 tokens", phi.spectrum(4096)},
               {"beyond", phi.spectrum(131072)}}),
      picture("proportional", json::object(),
              {{"none: all of 256 channels", make_spectrum(256, 1e6)},
               {"none: 64 channels of 256 (partial_rotary_factor)", make_spectrum(64, 1e6)},
               {"proportional{0.25}", make_spectrum(256, 1e6, rotary::proportional{0.25})}}),
      picture("axial", json::object(),
              {{"none", make_spectrum(64, 1e4)},
               {"axial{32, 32}", make_spectrum(64, 1e4, rotary::axial{{32, 32}})},
               {"axial_even_odd", make_spectrum(64, 1e4, rotary::axial_even_odd{})},
               {"axial_alternating", make_spectrum(64, 1e4, rotary::axial_alternating{})}}),
  };
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: scaling_curves <directory of the tests' data>\n");
    return 2;
  }
  std::printf("%s\n", pictures(argv[1]).dump(1).c_str());
  return 0;
}
