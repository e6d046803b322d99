// A resolved model: spectra by layer and by length, layers that do not rotate, query temperatures, what is refused, and
// the text for people.
#include <gtest/gtest.h>

#include <cmath>
#include <rotary/rope.hpp>
#include <rotary/rope_summary.hpp>
#include <rotary/rotary.hpp>
#include <string>
#include <vector>

#include "reference.hpp"
#include "refusals.hpp"

namespace {

using refusals::expect_refused;
using rotary::layer_rope;
using rotary::pairing;
using rotary::query_temperature;
using rotary::rope;

layer_rope layer_with(const rotary::scaling& policy, std::size_t rotary_dim = 48, std::size_t head_dim = 80) {
  layer_rope layer;
  layer.head_dim = head_dim;
  layer.rotary_dim = rotary_dim;
  layer.rope_theta = 30000.0;
  layer.scaling = policy;
  return layer;
}

// Layers 0 and 2 rotate by one spectrum, 1 does not, 3 by another.
rope four_layers() {
  rope model;
  model.model_type = "made_up";
  model.max_position_embeddings = 4096;
  model.types = {layer_with(rotary::linear{4.0}), layer_with(rotary::none{}, 0),
                 layer_with(rotary::dynamic_ntk{2.0, 4096})};
  model.types[0].pairing = pairing::interleaved;
  model.types[0].offset = 32;
  model.types[1].name = "nope";
  model.type_of_layer = {0, 1, 0, 2};
  return model;
}

TEST(Rope, EachLayerHasTheSpectrumOfItsType) {
  const rope model = four_layers();
  const std::vector<double> plain = reference::inverse_frequencies(48, 30000.0);
  const rotary::spectrum slowed = model.spectrum(2);
  ASSERT_EQ(slowed.pairs(), plain.size());
  for (std::size_t j = 0; j < plain.size(); ++j) EXPECT_NEAR(slowed.inv_freq()[j], plain[j] / 4.0, plain[j] * 1e-15);
  EXPECT_EQ(model.spectrum(0).inv_freq(), slowed.inv_freq());
  EXPECT_EQ(model.layout(2).pairing, pairing::interleaved);
  EXPECT_EQ(model.layout(2).offset, 32u);
  EXPECT_EQ(model.layout(3).pairing, pairing::split_half);
}

TEST(Rope, SequenceLengthWhereThePolicyNeedsIt) {
  const rope model = four_layers();
  EXPECT_FALSE(model.layer(0).needs_sequence_length());
  EXPECT_TRUE(model.layer(3).needs_sequence_length());
  EXPECT_EQ(model.spectrum(0, 100).inv_freq(), model.spectrum(0, 100000).inv_freq());
  // theta * (2 * 9000 / 4096 - 1)^(48 / 46)
  const double theta = 30000.0 * std::pow(2.0 * 9000.0 / 4096.0 - 1.0, 48.0 / 46.0);
  const std::vector<double> expected = reference::inverse_frequencies(48, theta);
  for (std::size_t j = 0; j < expected.size(); ++j) {
    EXPECT_NEAR(model.spectrum(3, 9000).inv_freq()[j], expected[j], expected[j] * 1e-14);
  }
  expect_refused([&] { model.spectrum(3); }, "layer_rope::spectrum", {"sequence_length is missing", "\"all\""});
}

TEST(Rope, LayersWithoutRotationLeaveHeadsAlone) {
  const rope model = four_layers();
  EXPECT_FALSE(model.rotates(1));
  EXPECT_TRUE(model.rotates(3));
  EXPECT_EQ(model.spectrum(1).pairs(), 0u);
  EXPECT_EQ(model.spectrum(1, 5000).pairs(), 0u);
  std::vector<float> x(2 * 3 * 2 * 80);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  const std::vector<float> before = x;
  const rotary::table<float> table(model.spectrum(1), 5, 100);
  rotary::rotate(rotary::bshd(x.data(), 2, 3, 2, 80), table, 101, model.layout(1));
  EXPECT_EQ(x, before);
}

TEST(Rope, LayersThatDoNotExist) {
  const rope model = four_layers();
  expect_refused([&] { model.layer(4); }, "rope::layer", {"index is 4", "below 4"});
  rope alike;
  alike.types = {layer_with(rotary::none{})};
  EXPECT_EQ(alike.layer(77).rotary_dim, 48u);
  expect_refused([] { rope().layer(); }, "rope::layer", {"index is 0", "0 types"});
}

// ---- axes

TEST(Axes, MapsByLayout) {
  layer_rope layer = layer_with(rotary::none{});
  EXPECT_FALSE(layer.axes());
  layer.mrope = rotary::mrope{{8, 8, 8}, rotary::mrope_layout::chunked};
  EXPECT_EQ(layer.axes(),
            rotary::axis_map(
                std::vector<std::uint8_t>{0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2}, 3));
  layer.mrope->layout = rotary::mrope_layout::interleaved;
  EXPECT_EQ((*layer.axes())[22], 1u);
  EXPECT_EQ((*layer.axes())[23], 2u);
  layer.mrope = rotary::mrope{{9, 9, 6}, rotary::mrope_layout::height_width_alternating};  // h, w, t
  EXPECT_EQ((*layer.axes())[16], 1u);
  EXPECT_EQ((*layer.axes())[17], 2u);
  EXPECT_EQ((*layer.axes())[18], 0u);
  layer.mrope->section.pop_back();
  expect_refused([&] { layer.axes(); }, "layer_rope::axes", {"2 values", "3"});
}

// ---- query temperatures

TEST(QueryTemperature, SteppedGrowsWithTheLogarithmOfWholeLengths) {
  const query_temperature llama4{query_temperature::rule::stepped, 0.1, 8192, 1};
  EXPECT_EQ(llama4.multiplier(0), 1.0);
  EXPECT_EQ(llama4.multiplier(8190), 1.0);
  EXPECT_NEAR(llama4.multiplier(8191), 1.0 + 0.1 * 0.69314718055994531, 1e-15);
  EXPECT_NEAR(llama4.multiplier(1000000), 1.0 + 0.1 * std::log(123.0), 1e-15);
  const query_temperature ministral{query_temperature::rule::stepped, 0.1, 16384, 0};
  EXPECT_EQ(ministral.multiplier(16383), 1.0);
  EXPECT_GT(ministral.multiplier(16384), 1.069);
}

TEST(QueryTemperature, LogNBeginsAtTheLengthTrainedOn) {
  const query_temperature qwen{query_temperature::rule::log_n, 0.0, 2048, 0};
  EXPECT_EQ(qwen.multiplier(0), 1.0);
  EXPECT_EQ(qwen.multiplier(2047), 1.0);
  EXPECT_NEAR(qwen.multiplier(8191), 13.0 / 11.0, 1e-15);
}

// ---- what readers must not hand out

TEST(Consistency, BlockSectionsAndPolicy) {
  const auto check = [](const layer_rope& layer) { rotary::detail::require_consistent("reader", layer); };
  EXPECT_NO_THROW(check(layer_with(rotary::none{})));
  expect_refused([&] { check(layer_with(rotary::none{}, 47)); }, "reader", {"rotary_dim is 47", "even"});
  expect_refused([&] { check(layer_with(rotary::none{}, 82)); }, "reader", {"rotary_dim is 82", "head_dim = 80"});
  layer_rope late = layer_with(rotary::none{});
  late.offset = 34;
  expect_refused([&] { check(late); }, "reader", {"rotary_dim is 48", "offset 34", "head_dim = 80"});
  layer_rope sections = layer_with(rotary::none{});
  sections.mrope = rotary::mrope{{8, 8, 9}};
  expect_refused([&] { check(sections); }, "reader", {"mrope_section is 25", "24"});
  EXPECT_THROW(check(layer_with(rotary::yarn{0.0, 4096})), rotary::error);
  // Only the regime beyond the original length is wrong.
  const std::vector<double> right(24, 1.0), wrong(23, 1.0);
  EXPECT_THROW(check(layer_with(rotary::longrope{4.0, 2048, right, wrong})), rotary::error);
}

// ---- for people

TEST(Summary, NamesValuesAndTheirSources) {
  rope model = four_layers();
  model.types[0].origins = {{"rope_theta", "rope_parameters.rope_theta"}};
  model.types[0].query_temperature = query_temperature{query_temperature::rule::stepped, 0.1, 8192, 1};
  model.types[0].softmax_scale_multiplier = 1.5;
  model.types[2].name = "long";
  model.types[2].mrope = rotary::mrope{{8, 8, 8}, rotary::mrope_layout::interleaved};
  const std::string text = rotary::summary(model);
  for (const char* part :
       {"model_type: made_up", "max_position_embeddings: 4096", "layers of type all: 0, 2\n",
        "layers of type nope: 1\n", "layers of type long: 3\n", "rotary_dim: 48 from channel 32",
        "pairing: interleaved", "rope_theta: 30000  [rope_parameters.rope_theta]", "linear factor 4",
        "rotary_dim: 0 (no rotation)", "dynamic_ntk factor 2 max_position_embeddings 4096", "mrope: interleaved 8 8 8",
        "softmax_scale_multiplier: 1.5", "query_temperature: stepped, scale 0.1, every 8192 tokens, first 1"}) {
    EXPECT_NE(text.find(part), std::string::npos) << "no \"" << part << "\" in:\n" << text;
  }
}

TEST(Summary, OfListsTheirLengthAndRange) {
  EXPECT_EQ(rotary::summary(rotary::scaling(rotary::longrope{2.0, 4096, {}, {1.5, 64.25, 1.0}})),
            "longrope factor 2 original_max_position_embeddings 4096 short_attention_factor 1.040833 "
            "long_attention_factor 1.040833 short_factor (0) long_factor (3 from 1 to 64.25)");
  EXPECT_EQ(rotary::summary(rotary::scaling(rotary::frequency_factors{{1.0, 8.0}})),
            "frequency_factors factors (2 from 1 to 8)");
  EXPECT_EQ(rotary::summary(query_temperature{query_temperature::rule::log_n, 0.0, 2048, 0}), "log_n from 2048 tokens");
}

TEST(Summary, LayersInRanges) {
  rope model = four_layers();
  model.type_of_layer = {0, 0, 0, 1, 0, 0, 1};
  EXPECT_NE(rotary::summary(model).find("layers of type all: 0-2, 4-5\n"), std::string::npos);
  EXPECT_NE(rotary::summary(model).find("layers of type nope: 3, 6\n"), std::string::npos);
  EXPECT_NE(rotary::summary(model).find("layers of type all: none\n"), std::string::npos);
}

std::string words(const rotary::policy_description& policy) {
  std::string text = policy.name;
  for (const rotary::policy_parameter& p : policy.parameters) {
    text += std::string(" ") + p.name + "=" + std::to_string(p.value);
  }
  return text;
}

TEST(Describe, EveryPolicyByItsMembers) {
  using rotary::describe;
  EXPECT_EQ(words(describe(rotary::none{})), "none");
  EXPECT_EQ(words(describe(rotary::ntk{1000.0})), "ntk alpha=1000.000000");
  EXPECT_EQ(words(describe(rotary::ntk_fixed{2.0})), "ntk_fixed factor=2.000000");
  EXPECT_EQ(words(describe(rotary::ntk_mixed{2.0, 0.5})), "ntk_mixed factor=2.000000 mixed_b=0.500000");
  EXPECT_EQ(words(describe(rotary::qwen_dynamic_ntk{2048})), "qwen_dynamic_ntk seq_length=2048.000000");
  EXPECT_EQ(words(describe(rotary::llama3{8.0, 1.0, 4.0, 8192})),
            "llama3 factor=8.000000 low_freq_factor=1.000000 high_freq_factor=4.000000 "
            "original_max_position_embeddings=8192.000000");
  EXPECT_EQ(words(describe(rotary::proportional{0.25, 2.0})),
            "proportional partial_rotary_factor=0.250000 factor=2.000000");
  EXPECT_EQ(words(describe(rotary::frequency_factors{{1.0}})), "frequency_factors");
  rotary::yarn yarn{4.0, 4096};
  yarn.magnitude = rotary::yarn_magnitude::exactly(1.25);
  EXPECT_EQ(words(describe(yarn)),
            "yarn factor=4.000000 original_max_position_embeddings=4096.000000 beta_fast=32.000000 beta_slow=1.000000 "
            "truncate=1.000000 attention_factor=1.250000");
  rotary::longrope longrope{32.0, 4096, {}, {}};
  longrope.long_magnitude = rotary::longrope_magnitude::exactly(1.5);
  EXPECT_EQ(words(describe(longrope)),  // sqrt(1 + 5/12)
            "longrope factor=32.000000 original_max_position_embeddings=4096.000000 short_attention_factor=1.190238 "
            "long_attention_factor=1.500000");
}

}  // namespace
