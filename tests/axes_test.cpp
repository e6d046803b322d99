// Axis maps against the reference data, and what is refused.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <rotary/rotary.hpp>
#include <string>
#include <vector>

#include "every_backend.hpp"
#include "golden.hpp"
#include "reference.hpp"
#include "refusals.hpp"

namespace {

using nlohmann::json;
using refusals::expect_refused;
using rotary::axis_map;

using axis_list = std::vector<std::uint8_t>;

axis_list axes_of(const axis_map& map) {
  axis_list result;
  for (std::size_t j = 0; j < map.pairs(); ++j) result.push_back(static_cast<std::uint8_t>(map[j]));
  return result;
}

const json& records() {
  static const json file = golden::load("multi_axis");
  return file.at("records");
}

// The map that a record's layout names.
axis_map map_of(const json& record) {
  const std::string layout = record.at("layout");
  const std::size_t pairs = record.at("rotary_dim").get<std::size_t>() / 2;
  if (layout.rfind("vision_2d", 0) == 0) return rotary::vision_2d(pairs);
  const std::vector<std::size_t> sections = record.at("section");
  if (layout == "chunked") return rotary::mrope_chunked(sections);
  if (layout == "interleaved_thw") return rotary::mrope_interleaved(sections);
  if (layout == "hw_alternating_then_t") {
    return rotary::height_width_alternating(sections.at(0), sections.at(1), sections.at(2));
  }
  throw std::runtime_error("no maker for layout " + layout);
}

// The spectrum of a record's layout.
rotary::spectrum spectrum_of(const json& record) {
  const std::size_t d = record.at("rotary_dim");
  const double theta = record.at("base");
  const std::string layout = record.at("layout");
  if (layout == "vision_2d_pixtral") return rotary::make_spectrum(d, theta, rotary::axial_even_odd{});
  if (layout == "vision_2d_independent") return rotary::make_spectrum(d, theta, rotary::axial{{d / 2, d / 2}});
  return rotary::make_spectrum(d, theta);
}

// [axes, tokens] with the offset added, and `gap` positions between planes that would be noticed.
template <class P>
std::vector<P> planes_of(const std::vector<std::vector<std::int64_t>>& positions, std::int64_t offset,
                         std::size_t gap) {
  std::vector<P> result;
  for (const std::vector<std::int64_t>& plane : positions) {
    for (const std::int64_t position : plane) result.push_back(static_cast<P>(position + offset));
    result.insert(result.end(), gap, static_cast<P>(-12345));
  }
  return result;
}

struct rotation {
  std::size_t tokens, heads, head_dim, pairs;
  rotary::pairing pairing;
  std::vector<std::vector<std::int64_t>> positions;  // [axes][tokens]
  std::int64_t offset;
  std::vector<float> input, expected;

  explicit rotation(const json& record)
      : tokens(record.at("tokens")),
        heads(record.at("heads")),
        head_dim(record.at("head_dim")),
        pairs(record.at("rotary_dim").get<std::size_t>() / 2),
        pairing(record.at("pairing") == "interleaved" ? rotary::pairing::interleaved : rotary::pairing::split_half),
        positions(record.at("positions_by_axis").get<std::vector<std::vector<std::int64_t>>>()),
        offset(record.at("position_offset")),
        expected(record.at("expected").get<std::vector<float>>()) {
    std::uint32_t x = record.at("input_lcg").at("seed");
    const double scale = record.at("input_lcg").at("scale");
    for (std::size_t i = 0; i < expected.size(); ++i) {
      x = 1664525u * x + 1013904223u;
      input.push_back(static_cast<float>(scale * (static_cast<double>(x >> 8) / 8388608.0 - 1.0)));
    }
    EXPECT_EQ(std::vector<float>(input.begin(), input.begin() + 4), record.at("input_first").get<std::vector<float>>());
    EXPECT_EQ(input.size(), tokens * heads * head_dim);
  }

  template <class P>
  std::vector<float> rotated(rotary::step_table<float>& step, std::size_t gap) const {
    const std::vector<P> planes = planes_of<P>(positions, offset, gap);
    step.assign(
        rotary::position_planes<P>{planes.data(), positions.size(), tokens, static_cast<std::ptrdiff_t>(tokens + gap)});
    std::vector<float> x = input;
    rotary::rotate(rotary::thd(x.data(), tokens, heads, head_dim), step, rotary::layout(pairing));
    return x;
  }

  std::size_t pair_of(std::size_t channel) const {
    return pairing == rotary::pairing::interleaved ? channel / 2 : channel % pairs;
  }

  // Largest error in units of 2^-24 times the length of the pair.
  double error_of(const std::vector<float>& got) const {
    double worst = 0.0;
    for (std::size_t i = 0; i < got.size(); ++i) {
      const std::size_t head = i / head_dim * head_dim, channel = i % head_dim;
      if (channel >= 2 * pairs) {
        EXPECT_EQ(got[i], input[i]) << "channel " << channel << " does not rotate";
        continue;
      }
      const bool interleaved = pairing == rotary::pairing::interleaved;
      const std::size_t j = pair_of(channel);
      const double a = input[head + reference::first_channel(interleaved, j)];
      const double b = input[head + reference::second_channel(interleaved, pairs, j)];
      worst = reference::larger(worst, std::fabs(double{got[i]} - double{expected[i]}) / (0x1p-24 * std::hypot(a, b)));
    }
    return worst;
  }
};

TEST(MultiAxisRotations, AreTheRecordedOnes) {
  backends::on_each([](rotary::backend) {
    for (const json& record : records()) {
      SCOPED_TRACE(record.at("name").get<std::string>());
      const rotation of(record);
      rotary::step_table<float> step(spectrum_of(record), map_of(record));
      const std::vector<float> got = of.rotated<std::int32_t>(step, 0);
      EXPECT_LE(of.error_of(got), 3.0);
      EXPECT_EQ(of.rotated<std::int64_t>(step, 5), got);
      EXPECT_EQ(of.rotated<float>(step, 1), got);
      EXPECT_EQ(of.rotated<double>(step, 2), got);
    }
  });
}

// ---- what transformers and ggml make of the same input, in their arithmetic

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double most = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) most = reference::larger(most, std::fabs(double{a[i]} - double{b[i]}));
  return most;
}

// transformers' inverse frequencies, computed in float.
rotary::spectrum float_spectrum_of(const json& record) {
  const float theta = record.at("base"), dim = record.at("spectrum_dim");
  std::vector<double> inv_freq;
  for (const std::size_t i : record.at("pair_frequency_index").get<std::vector<std::size_t>>()) {
    inv_freq.push_back(double{1.0f / std::pow(theta, static_cast<float>(2 * i) / dim)});
  }
  return rotary::spectrum(inv_freq);
}

TEST(MultiAxisRotations, AnglesFloat32IsWhatTransformersComputes) {
  std::size_t compared = 0;
  for (const json& record : records()) {
    if (!golden::given(record, "hf")) continue;
    SCOPED_TRACE(record.at("name").get<std::string>());
    const rotation of(record);
    const std::vector<float> theirs = record.at("hf").at("output");
    const rotary::spectrum spectrum = float_spectrum_of(record);
    const axis_map map = map_of(record);
    rotary::step_table<float> step(spectrum, map, rotary::angles::float32);
    const std::vector<float> got = of.rotated<std::int64_t>(step, 0);
    for (std::size_t i = 0; i < got.size(); ++i) {
      const std::size_t channel = i % of.head_dim, token = i / (of.heads * of.head_dim);
      if (channel >= 2 * of.pairs) continue;
      // pow of torch and of the C library may differ by a unit in the last place, which the position multiplies.
      const std::size_t j = of.pair_of(channel);
      const double position = static_cast<double>(of.positions[map[j]][token] + of.offset);
      const double of_frequency = position * spectrum.inv_freq()[j] * 0x1p-23 * 1.5;
      ASSERT_LE(std::fabs(double{got[i]} - double{theirs[i]}), 3.0 * 0x1p-24 + of_frequency) << "element " << i;
    }
    ++compared;
  }
  EXPECT_GT(compared, 8u);
}

// The map of ggml_rope_multi's mode and sections.
axis_map map_of_ggml(const json& ggml, std::size_t pairs) {
  const std::vector<std::size_t> sections = ggml.at("sections");
  if (ggml.at("mode") == "mrope") return rotary::mrope_chunked(sections);
  if (ggml.at("mode") == "imrope") return rotary::mrope_interleaved_ggml(sections);
  std::vector<std::uint8_t> axis_of_pair = axes_of(rotary::vision_2d(pairs));
  return axis_map(axis_of_pair, 4);
}

TEST(MultiAxisRotations, GgmlsMapsAreWhatGgmlComputes) {
  std::size_t compared = 0;
  for (const json& record : records()) {
    if (!golden::given(record, "ggml")) continue;
    SCOPED_TRACE(record.at("name").get<std::string>());
    const json& ggml = record.at("ggml");
    rotation of(record);
    of.positions = ggml.at("positions_by_axis").get<std::vector<std::vector<std::int64_t>>>();
    const bool vision =
        ggml.at("mode") == "vision";  // its recurrence starts anew on each axis: compared with the exact
    rotary::step_table<float> step(spectrum_of(record), map_of_ggml(ggml, of.pairs),
                                   vision ? rotary::angles::exact : rotary::angles::float32_recurrence);
    const double permitted = 3.0 * 0x1p-24 + (vision ? ggml.at("max_abs_diff").get<double>() : 0.0);
    EXPECT_LE(largest_difference(of.rotated<std::int32_t>(step, 0), ggml.at("output").get<std::vector<float>>()),
              permitted);
    ++compared;
  }
  EXPECT_GT(compared, 6u);
}

// ---- maps

TEST(AxisMaps, AreTheRecordedOnes) {
  for (const json& record : records()) {
    SCOPED_TRACE(record.at("name").get<std::string>());
    const axis_map map = map_of(record);
    EXPECT_EQ(axes_of(map), record.at("pair_axis").get<axis_list>());
    EXPECT_EQ(map.axes(), record.at("axes").size());
  }
}

// ggml's rule, as ggml_mrope_cache_init states it.
TEST(AxisMaps, GgmlsReadingLeavesPairsToTheFourthAxis) {
  for (const std::vector<std::size_t>& sections :
       {std::vector<std::size_t>{24, 20, 20, 0}, {6, 5, 5, 0}, {11, 11, 10, 0}, {2, 3, 4, 7}, {0, 0, 0, 8}}) {
    axis_list expected;
    for (std::size_t sector = 0; sector < sections[0] + sections[1] + sections[2] + sections[3]; ++sector) {
      std::uint8_t axis = 3;
      if (sector % 3 == 1 && sector < 3 * sections[1]) axis = 1;
      if (sector % 3 == 2 && sector < 3 * sections[2]) axis = 2;
      if (sector % 3 == 0 && sector < 3 * sections[0]) axis = 0;
      expected.push_back(axis);
    }
    EXPECT_EQ(axes_of(rotary::mrope_interleaved_ggml(sections)), expected) << sections[0];
  }
  const axis_map theirs = rotary::mrope_interleaved_ggml({24, 20, 20, 0});
  const axis_map trained = rotary::mrope_interleaved({24, 20, 20});
  for (std::size_t j = 0; j < 64; ++j) EXPECT_EQ(theirs[j], j == 61 || j == 62 ? 3 : trained[j]) << "pair " << j;
}

TEST(AxisMaps, MakersByHand) {
  EXPECT_EQ(axes_of(rotary::mrope_chunked({2, 0, 3, 1})), (axis_list{0, 0, 2, 2, 2, 3}));
  EXPECT_EQ(axes_of(rotary::mrope_interleaved({4, 1, 2})), (axis_list{0, 1, 2, 0, 0, 2, 0}));
  EXPECT_EQ(axes_of(rotary::height_width_alternating(2, 2, 3)), (axis_list{1, 2, 1, 2, 0, 0, 0}));
  EXPECT_EQ(axes_of(rotary::vision_2d(6)), (axis_list{0, 0, 0, 1, 1, 1}));
  EXPECT_EQ(axes_of(rotary::vision_2d_alternating(6)), (axis_list{0, 1, 0, 1, 0, 1}));
}

TEST(AxisMaps, BalancedAsVllmOrdersThem) {
  // What its tests of these sections expect.
  EXPECT_EQ(axes_of(rotary::mrope_balanced({2, 2})), (axis_list{0, 1, 0, 1}));
  EXPECT_EQ(axes_of(rotary::mrope_balanced({2, 3, 3})), (axis_list{0, 1, 2, 1, 2, 1, 2, 0}));
  // By hand: shares after each pair decide, the pair before is skipped, and one t is kept for the end.
  EXPECT_EQ(axes_of(rotary::mrope_balanced({1, 1, 4})), (axis_list{1, 2, 2, 2, 2, 0}));
  EXPECT_EQ(axes_of(rotary::mrope_balanced({3, 1})), (axis_list{0, 1, 0, 0}));
  // The rule, in the floating point of Python.
  std::string digits;
  for (const std::uint8_t axis : axes_of(rotary::mrope_balanced({24, 20, 20}))) digits += static_cast<char>('0' + axis);
  EXPECT_EQ(digits, "0120120120120120120120102012012012012012012010201201201201201200");
  for (const std::vector<std::size_t>& sections : {std::vector<std::size_t>{16, 24, 24}, {24, 20, 20}, {8, 12, 12}}) {
    const axis_list axes = axes_of(rotary::mrope_balanced(sections));
    std::vector<std::size_t> counts(3);
    for (std::size_t j = 0; j < axes.size(); ++j) {
      ++counts[axes[j]];
      EXPECT_TRUE(j == 0 || j + 1 == axes.size() || axes[j] != axes[j - 1]) << "pair " << j;
    }
    EXPECT_EQ(counts, sections);
    EXPECT_EQ(axes.back(), 0u);
  }
}

TEST(AxisMaps, AreValues) {
  const axis_map map(axis_list{0, 2, 2, 5}, 7);
  EXPECT_EQ(map.pairs(), 4u);
  EXPECT_EQ(map.axes(), 7u);
  EXPECT_EQ(map[3], 5u);
  EXPECT_TRUE(map == axis_map({0, 2, 2, 5}, 7));
  EXPECT_TRUE(map != axis_map({0, 2, 2, 5}, 8));
  EXPECT_TRUE(map != axis_map({0, 2, 2, 4}, 7));
  EXPECT_TRUE(rotary::vision_2d(8) == rotary::mrope_chunked({4, 4}));
  EXPECT_EQ(axis_map({}, 1).pairs(), 0u);
}

constexpr std::size_t minus_one = std::numeric_limits<std::size_t>::max();

TEST(AxisMaps, RefuseWhatIsNoMap) {
  expect_refused([] { axis_map({0, 1, 3}, 3); }, "axis_map", {"axis_of_pair[2] is 3", "below axes, 3"});
  expect_refused([] { axis_map({0}, 0); }, "axis_map", {"axes is 0", "1 to 255"});
  expect_refused([] { axis_map({0}, 256); }, "axis_map", {"axes is 256", "1 to 255"});
}

TEST(AxisMaps, RefuseSectionsThatDoNotFit) {
  expect_refused([] { rotary::mrope_chunked({}); }, "mrope_chunked", {"sections", "0 values"});
  expect_refused(
      [] {
        rotary::mrope_chunked({16, minus_one, 24});
      },
      "mrope_chunked", {"sections[1]", "18446744073709551615", "8388608 pairs"});
  expect_refused([] { rotary::mrope_chunked(std::vector<std::size_t>(256, 1)); }, "mrope_chunked",
                 {"256 values", "1 to 255"});
  expect_refused([] { rotary::mrope_interleaved({16, 24}); }, "mrope_interleaved", {"sections has 2 values", "3"});
  // Chunked sections read as interleaved: transformers' slices would end at pair 64 and lose two pairs of w.
  expect_refused(
      [] {
        rotary::mrope_interleaved({16, 24, 24});
      },
      "mrope_interleaved", {"sections[1] is 24", "64 pairs", "is 21 of them"});
  expect_refused(
      [] {
        rotary::mrope_interleaved({24, 19, 22});
      },
      "mrope_interleaved", {"sections[2] is 22", "65 pairs", "is 21 of them"});
  EXPECT_NO_THROW(rotary::mrope_interleaved({22, 21, 21}));
  expect_refused([] { rotary::mrope_interleaved({0, 0, 1}); }, "mrope_interleaved", {"sections[2] is 1", "is 0 of"});
  expect_refused([] { rotary::mrope_interleaved_ggml({24, 20, 20}); }, "mrope_interleaved_ggml", {"3 values", "4"});
  expect_refused(
      [] {
        rotary::mrope_interleaved_ggml({16, 24, 24, 0});
      },
      "mrope_interleaved_ggml", {"sections[1] is 24", "64 pairs"});
  expect_refused([] { rotary::mrope_balanced({4}); }, "mrope_balanced", {"sections has 1 values"});
  expect_refused([] { rotary::mrope_balanced({0, 4, 4}); }, "mrope_balanced", {"sections[0] is 0", "at least 1"});
  expect_refused([] { rotary::height_width_alternating(20, 22, 22); }, "height_width_alternating",
                 {"h is 20 and w is 22", "equal"});
  expect_refused([] { rotary::height_width_alternating(minus_one, minus_one, 1); }, "height_width_alternating",
                 {"sections[0]", "18446744073709551615"});
  expect_refused([] { rotary::vision_2d(33); }, "vision_2d", {"pairs is 33", "even"});
  expect_refused([] { rotary::vision_2d_alternating(minus_one - 1); }, "vision_2d_alternating",
                 {"pairs is 18446744073709551614", "8388608"});
}

}  // namespace
