// From a checkpoint directory to rotated queries and keys: what the model's config.json says decides everything.
//
//     from_checkpoint <directory that holds config.json>
//
// Returns 1 unless the scores of attention depend on the distance of two tokens alone.
#include <cmath>
#include <cstdio>
#include <rotary/huggingface.hpp>
#include <rotary/rope_summary.hpp>
#include <rotary/rotary.hpp>
#include <string>
#include <vector>

namespace {

// A query at positions[0] and a key at positions[1], one head of each, as the first layer of the model rotates them.
double score(const std::string& checkpoint, const std::vector<std::int64_t>& positions) {
  const rotary::rope rope = rotary::from_huggingface_file(checkpoint + "/config.json");
  const std::size_t head_dim = rope.layer().head_dim;
  std::vector<float> q_and_k;  // [2 tokens, 1 head, head_dim]
  for (std::size_t i = 0; i < 2 * head_dim; ++i) q_and_k.push_back(std::sin(static_cast<float>(i * i)));

  rotary::step_table step(rope.spectrum(0, 4096));
  step.assign(positions.data(), positions.size());
  rotary::rotate(rotary::thd(q_and_k.data(), 2, 1, head_dim), step, rope.layout());

  double dot = 0.0;
  for (std::size_t i = 0; i < head_dim; ++i) {
    dot += static_cast<double>(q_and_k[i]) * static_cast<double>(q_and_k[head_dim + i]);
  }
  return dot;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: from_checkpoint <directory that holds config.json>\n");
    return 2;
  }
  try {
    const std::string checkpoint = argv[1];
    std::fputs(rotary::summary(rotary::from_huggingface_file(checkpoint + "/config.json")).c_str(), stdout);
    const double near = score(checkpoint, {7, 5}), far = score(checkpoint, {4007, 4005}),
                 farther = score(checkpoint, {4007, 5});
    std::printf("q . k at positions 7 and 5: %.6f, at 4007 and 4005: %.6f, at 4007 and 5: %.6f\n", near, far, farther);
    return std::fabs(near - far) < 1e-4 && std::fabs(near - farther) > 1e-2 ? 0 : 1;
  } catch (const rotary::error& refused) {
    std::fprintf(stderr, "%s\n", refused.what());
    return 2;
  }
}
