// examples/engines/ggml.hpp: against what ggml itself computed (tests/data/golden), and against its definition in long
// double for what is not recorded.
#include "ggml.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "../golden.hpp"
#include "engines.hpp"

namespace {

using namespace engines_test;
using engines::ggml::rope;
using engines::ggml::rope_params;
using engines::ggml::tensor;
using nlohmann::json;
using rotary::angles;
using rotary::float16;

// A dense tensor.
template <class T>
tensor<T> dense(T* data, std::int64_t d, std::int64_t heads, std::int64_t tokens, std::int64_t batch = 1) {
  const std::size_t row = static_cast<std::size_t>(d) * sizeof(T), token = row * static_cast<std::size_t>(heads);
  return {data, {d, heads, tokens, batch}, {sizeof(T), row, token, token * static_cast<std::size_t>(tokens)}};
}

// The pairs between which a YaRN ramp lies, as ggml defines them.
struct ramp_ends {
  long double low, high;
  explicit ramp_ends(const rope_params& p) : low(at(p, p.beta_fast)), high(at(p, p.beta_slow)) {
    low = std::max(0.0L, std::floor(low));
    high = std::min(static_cast<long double>(p.n_dims - 1), std::ceil(high));
  }

 private:
  static long double at(const rope_params& p, float beta) {
    const long double two_pi = 6.283185307179586476925L, turns = static_cast<long double>(beta);
    return p.n_dims * std::log(p.n_ctx_orig / (two_pi * turns)) /
           (2.0L * std::log(static_cast<long double>(p.freq_base)));
  }
};

// ---- recorded results

// Llama 3's divisors as llama.cpp's converter writes them, in float.
std::vector<float> llama3_factors(const json& p, double base, std::size_t n) {
  const double factor = p.at("factor"), low = p.at("low_freq_factor"), high = p.at("high_freq_factor");
  const double original = p.at("original_max_position_embeddings"), pi = 3.14159265358979323846;
  std::vector<float> result;
  for (const double w : reference::inverse_frequencies(n, base)) {
    const double turns = original * w / (2.0 * pi), smooth = (turns - low) / (high - low);
    const double kept = std::min(1.0, std::max(0.0, smooth));
    result.push_back(static_cast<float>(1.0 / ((1.0 - kept) / factor + kept)));
  }
  return result;
}

struct recorded {
  std::string name;
  rope_params params;
  std::vector<float> factors;
  std::int64_t tokens, heads, head_dim, rotary_dim, offset;
  std::vector<std::int32_t> positions;
  bool back;
  double exact_difference;  // of ggml from the exact result
  double rounded_base =
      0.0;  // what the base, a float here, can change: position * w * ln(base error), w falling with j

  explicit recorded(const json& r)
      : name(r.at("name")),
        tokens(r.at("tokens")),
        heads(r.at("heads")),
        head_dim(r.at("head_dim")),
        rotary_dim(r.value("rotary_dim", head_dim)),
        offset(r.value("rotary_offset", std::int64_t{0})),
        back(r.value("op", "forward") == "backward"),
        exact_difference(r.at("ggml").at("max_abs_diff")) {
    const json& g = r.at("ggml");
    if (g.contains("sections")) {
      read_multi(r, g);
    } else {
      read_single(r, g);
    }
  }

  double farthest() const {
    double most = 0.0;
    for (const std::int32_t position : positions) most = std::max(most, std::fabs(double{1} * position));
    return most;
  }

  // Five roundings of a float angle: three of ggml's mixture, two here; the largest angle on the ramp is the first.
  double roundings_on_ramp() const {
    const double first = static_cast<double>(ramp_ends(params).low) + 1.0;
    const double w = std::pow(static_cast<double>(params.freq_base), -2.0 * first / params.n_dims);
    return 5.0 * 0x1p-24 * std::sqrt(2.0) * w * farthest();
  }

 private:
  void read_single(const json& r, const json& g) {
    const json& a = g.at("arguments");
    params.n_dims = static_cast<int>(rotary_dim);
    params.mode = g.at("mode") == "GGML_ROPE_TYPE_NEOX" ? engines::ggml::neox : engines::ggml::normal;
    params.n_ctx_orig = a.value("n_ctx_orig", 0);
    params.freq_base = a.at("base").get<float>();
    params.freq_scale = a.value("freq_scale", 1.0f);
    const double base = a.at("base");
    params.ext_factor = a.value("ext_factor", 0.0f);
    params.attn_factor = a.value("attn_factor", 1.0f);
    params.beta_fast = a.value("beta_fast", 32.0f);
    params.beta_slow = a.value("beta_slow", 1.0f);
    if (g.at("has_freq_factors").get<bool>()) {
      const json& p = r.at("parameters");
      factors = p.at("policy") == "llama3" ? llama3_factors(p, params.freq_base, static_cast<std::size_t>(rotary_dim))
                                           : p.at("factors").get<std::vector<float>>();
      params.freq_factors = factors.data();
    }
    positions = r.at(r.at("op") == "shift" ? "deltas" : "positions").get<std::vector<std::int32_t>>();
    if (static_cast<double>(params.freq_base) != base) {
      rounded_base = farthest() * 0x1p-24 / (2.71 * std::log(base));
    }
  }
  void read_multi(const json& r, const json& g) {
    const std::string mode = g.at("mode");
    params.mode = mode == "mrope"    ? engines::ggml::mrope
                  : mode == "imrope" ? engines::ggml::imrope
                                     : engines::ggml::vision;
    params.n_dims = g.at("n_dims");
    params.freq_base = r.at("base").get<float>();
    for (std::size_t i = 0; i < 4; ++i) params.sections[i] = g.at("sections").at(i);
    for (const json& axis : g.at("positions_by_axis")) {
      for (const json& p : axis) positions.push_back(p.get<std::int32_t>());
    }
  }
};

template <class T>
std::vector<T> values(const json& record, const char* name) {
  if constexpr (sizeof(T) == 4) {
    return record.at(name).get<std::vector<T>>();
  } else {
    std::vector<T> result;
    for (const json& bits : record.at(std::string(name) + "_bits")) {
      result.emplace_back();
      result.back().bits = bits.get<std::uint16_t>();
    }
    return result;
  }
}

template <class T>
std::vector<T> input_of(const json& r, std::size_t count) {
  if (!golden::given(r, "input_first")) return values<T>(r, "input");
  std::uint32_t x = r.at("input_lcg").at("seed");
  const double scale = r.at("input_lcg").at("scale");
  std::vector<T> result(count);
  for (T& value : result) {
    x = 1664525u * x + 1013904223u;
    value = static_cast<T>(static_cast<float>(scale * (static_cast<double>(x >> 8) / 8388608.0 - 1.0)));
  }
  return result;
}

// In place, the rotated block being a view of the head as llama.cpp makes for MLA.
template <class T>
std::vector<T> rotated(const recorded& of, std::vector<T> x, angles mode) {
  rope node(of.params, mode);
  node.set_positions(of.positions.data(), of.tokens);
  tensor<T> view = dense(x.data(), of.head_dim, of.heads, of.tokens);
  view.data += of.offset;
  view.ne[0] -= of.offset;
  of.back ? node.back(view, view) : node.forward(view, view);
  return x;
}

template <class T>
double largest_difference(const std::vector<T>& a, const std::vector<T>& b) {
  double most = a.size() == b.size() ? 0.0 : 1e9;
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) {
    most = reference::larger(most, std::fabs(number(a[i]) - number(b[i])));
  }
  return most;
}

struct figures {
  std::size_t records = 0;
  double exact = 0.0, parity = 0.0;
  void add(double of_exact, double of_parity) {
    ++records;
    exact = reference::larger(exact, of_exact);
    parity = reference::larger(parity, of_parity);
  }
  void print(const char* what) const {
    std::printf("%zu records %s: largest difference to ggml %.2g exact, %.2g with angles::float32_recurrence\n",
                records, what, exact, parity);
  }
};

TEST(Ggml, RecordedFloats) {
  figures plain, ramps, of_vision;
  for (const char* file : {"rotations", "multi_axis"}) {
    const json all = golden::load(file);
    for (const json& r : all.at("records")) {
      if (!golden::given(r, "ggml") || !r.at("ggml").contains("output") || r.value("dtype", "f32") != "f32") continue;
      const recorded of(r);
      SCOPED_TRACE(of.name);
      const std::vector<float> theirs = values<float>(r.at("ggml"), "output");
      const std::vector<float> x = input_of<float>(r, theirs.size());
      // ggml never leaves a ramp untruncated, so there the record's difference is that of another spectrum.
      const double recorded_difference = of.exact_difference > 1.0 ? 1e-3 : of.exact_difference;
      const double exact = largest_difference(rotated(of, x, angles::exact), theirs);
      EXPECT_LE(exact, recorded_difference + of.rounded_base + 4.3 * 0x1p-24);
      if (of.params.mode == engines::ggml::vision) {  // has no such mode
        of_vision.add(exact, 0.0);
        continue;
      }
      const double parity = largest_difference(rotated(of, x, angles::float32_recurrence), theirs);
      const bool ramp = of.params.ext_factor != 0.0f;
      EXPECT_LE(parity, 3.0 * 0x1p-24 + (ramp ? of.roundings_on_ramp() : 0.0));
      (ramp ? ramps : plain).add(exact, parity);
    }
  }
  plain.print("without a YaRN ramp");
  ramps.print("on a YaRN ramp");
  std::printf("%zu records of VISION: largest difference to ggml %.2g exact\n", of_vision.records, of_vision.exact);
  EXPECT_EQ(plain.records, 29u);
  EXPECT_EQ(ramps.records, 7u);
  expect_at_most(plain.parity, 1.2e-7);
  expect_figure(ramps.parity, 1.0e-5);
  expect_at_most(of_vision.exact, 4.2e-7);
}

TEST(Ggml, RecordedHalves) {
  std::size_t all = 0, exact = 0, parity = 0;
  const json file = golden::load("rotations");
  for (const json& r : file.at("records")) {
    if (!golden::given(r, "ggml") || r.at("dtype") != "f16" || !r.at("ggml").contains("output_bits")) continue;
    const recorded of(r);
    SCOPED_TRACE(of.name);
    const std::vector<float16> theirs = values<float16>(r.at("ggml"), "output");
    const std::vector<float16> x = values<float16>(r, "input");
    const std::vector<float16> a = rotated(of, x, angles::exact), b = rotated(of, x, angles::float32_recurrence);
    EXPECT_LE(largest_difference(a, theirs), of.exact_difference);
    for (std::size_t i = 0; i < theirs.size(); ++i) {
      exact += a[i].bits != theirs[i].bits;
      parity += b[i].bits != theirs[i].bits;
    }
    all += theirs.size();
  }
  std::printf("%zu float16 values: %zu differ from ggml's exact, %zu with angles::float32_recurrence\n", all, exact,
              parity);
  EXPECT_EQ(all, 5504u);
  EXPECT_EQ(parity, 0u);
}

// ---- the definition, in every mode, with strides, batches, divisors and half a ramp

// Row [tokens][pairs] of cos and sin as ggml's operators define them; positions are [axes][tokens].
reference::rows<long double> defined(const rope_params& p, const std::vector<std::int32_t>& positions,
                                     std::size_t tokens) {
  const bool vision = p.mode == engines::ggml::vision;
  const std::size_t n = static_cast<std::size_t>(p.n_dims), pairs = vision ? n : n / 2;
  const int* s = p.sections;
  const long double base = static_cast<long double>(p.freq_base), scale = static_cast<long double>(p.freq_scale);
  reference::rows<long double> result;
  result.pairs = pairs;
  for (std::size_t t = 0; t < tokens; ++t) {
    for (std::size_t j = 0; j < pairs; ++j) {
      std::size_t axis = 0, exponent = j;
      const int k = static_cast<int>(j);
      if (p.mode == engines::ggml::mrope) axis = k < s[0] ? 0 : k < s[0] + s[1] ? 1 : k < s[0] + s[1] + s[2] ? 2 : 3;
      if (p.mode == engines::ggml::imrope) axis = k < 3 * s[k % 3] ? static_cast<std::size_t>(k % 3) : 3;
      if (vision) axis = j < pairs / 2 ? 0 : 1, exponent = j % (pairs / 2);
      const long double ff = p.freq_factors != nullptr ? static_cast<long double>(p.freq_factors[j]) : 1.0L;
      const long double w = std::pow(base, -2.0L * exponent / n) / ff;
      long double mixed = w * scale, magnitude = static_cast<long double>(p.attn_factor);
      if (p.ext_factor != 0.0f) {
        const ramp_ends ramp(p);
        const long double at = (static_cast<long double>(j) - ramp.low) / std::max(0.001L, ramp.high - ramp.low);
        const long double mix = (1.0L - std::min(1.0L, std::max(0.0L, at))) * static_cast<long double>(p.ext_factor);
        mixed = w * scale * (1.0L - mix) + w * mix;
        magnitude *= 1.0L + 0.1L * std::log(1.0L / scale);
      }
      const long double angle = mixed * positions[axis * tokens + t];
      result.cos.push_back(magnitude * std::cos(angle));
      result.sin.push_back(magnitude * std::sin(angle));
    }
  }
  return result;
}

template <class T>
void expect_definition(const rope_params& p, std::int64_t head_dim, const std::string& what) {
  SCOPED_TRACE(what);
  const std::int64_t heads = 3, tokens = 5, batch = 2;
  std::vector<std::int32_t> positions;
  for (int axis = 0; axis < 4; ++axis) {
    for (const int at : {0, 7, -19, 131072, 40000000}) positions.push_back(at - 3 * axis);
  }
  // Heads of head_dim + 2, tokens with a gap of one head, batches of one token; the destination is
  // [batch][head][token].
  const std::size_t d = static_cast<std::size_t>(head_dim), row = (d + 2) * sizeof(T);
  const std::vector<T> x = numbers<T>((d + 2) * 4 * 6 * 2);
  std::vector<T> y(d * 30), again = y;
  tensor<const T> src = {x.data(), {head_dim, heads, tokens, batch}, {sizeof(T), row, 4 * row, 24 * row}};
  const std::size_t out = d * sizeof(T);
  tensor<T> dst = {y.data(), {head_dim, heads, tokens, batch}, {sizeof(T), 5 * out, out, 15 * out}};
  rope node(p);
  node.set_positions(positions.data(), tokens);
  for (std::size_t ith = 0; ith < 3; ++ith) {
    node.forward(src, dst, ith, 3);
    std::size_t touched = 0;
    for (std::size_t head = 0; head < 30; ++head) touched += number(y[head * d]) != 0.0;
    EXPECT_EQ(touched, 10 * (ith + 1)) << "thread " << ith << " of 3";
  }
  reference::rows<long double> rows = defined(p, positions, 5);
  const auto expect_all = [&] {
    for (std::size_t b = 0; b < 2; ++b) {
      for (std::size_t h = 0; h < 3; ++h) {
        for (std::size_t t = 0; t < 5; ++t) {
          expect_head(&x[(d + 2) * (b * 24 + t * 4 + h)], &y[d * (b * 15 + h * 5 + t)], d, p.mode == 0, rows, t,
                      "batch " + std::to_string(b) + ", head " + std::to_string(h) + ", token " + std::to_string(t),
                      5e7 * 2.3e-16);
        }
      }
    }
  };
  expect_all();
  node.back(src, dst);
  for (long double& sin : rows.sin) sin = -sin;
  expect_all();
}

TEST(Ggml, EveryModeIsItsDefinition) {
  std::vector<float> factors(64);
  for (std::size_t j = 0; j < factors.size(); ++j) factors[j] = 1.0f + 0.37f * static_cast<float>(j);
  for (const float ext : {0.0f, 1.0f, 0.5f}) {
    for (const bool divided : {false, true}) {
      rope_params p;
      p.freq_base = 50000.0f;
      p.freq_scale = 0.25f;
      p.attn_factor = 0.9f;
      p.ext_factor = ext;
      p.n_ctx_orig = 4096;
      if (divided) p.freq_factors = factors.data();
      const std::string with = " with ext_factor " + std::to_string(ext) + (divided ? " and divisors" : "");
      p.n_dims = 20;
      for (const int mode : {0, 2}) {
        p.mode = mode;
        expect_definition<float>(p, 30, "mode " + std::to_string(mode) + with);
      }
      const int chunked[4] = {3, 2, 4, 1}, interleaved[4] = {3, 4, 3, 0}, halves[4] = {10, 10, 10, 10};
      p.mode = engines::ggml::mrope;
      std::copy(chunked, chunked + 4, p.sections);
      expect_definition<float>(p, 24, "mrope" + with);
      p.mode = engines::ggml::imrope;
      std::copy(interleaved, interleaved + 4, p.sections);
      p.sections[1] = 3;
      p.sections[3] = 1;  // pair 9 is t's fourth, which it has no section for
      expect_definition<float>(p, 20, "imrope" + with);
      p.mode = engines::ggml::vision;
      std::copy(halves, halves + 4, p.sections);
      expect_definition<float>(p, 40, "vision" + with);
    }
  }
  rope_params p;
  p.n_dims = 16;
  p.mode = engines::ggml::neox;
  expect_definition<float16>(p, 18, "float16");
}

// A ramp that ends before it begins, which the library's policy refuses and ggml computes.
TEST(Ggml, RampsThatEndBeforeTheyBegin) {
  rope_params p;
  p.n_dims = 32;
  p.mode = engines::ggml::neox;
  p.freq_scale = 0.125f;
  p.ext_factor = 1.0f;
  p.n_ctx_orig = 4096;
  p.beta_fast = 1.0f;
  p.beta_slow = 32.0f;
  expect_definition<float>(p, 32, "beta_fast < beta_slow");
}

// ---- how far ggml is from the exact angles

TEST(Ggml, FigureOfTheRecurrence) {
  constexpr std::size_t pairs = 64;
  const std::vector<double> inv_freq = reference::inverse_frequencies(2 * pairs, 10000.0);
  const float ratio = std::pow(10000.0f, -2.0f / (2 * pairs));
  const auto expect = [&](std::int32_t position, double stated) {
    double most = 0.0;
    float theta = static_cast<float>(position);
    for (std::size_t j = 0; j < pairs; ++j, theta *= ratio) {
      const reference::phasor at = reference::phasor_at(position, inv_freq[j]);
      most = reference::larger(most, std::fabs(double{std::cos(theta)} - static_cast<double>(at.cos)));
      most = reference::larger(most, std::fabs(double{std::sin(theta)} - static_cast<double>(at.sin)));
    }
    std::printf("ggml's float recurrence at position %d (theta 10000, 128 channels): %.2g off in cos and sin\n",
                position, most);
    expect_figure(most, stated);
  };
  expect(8192, 6.8e-4);
  expect(131072, 1.1e-2);
}

// ---- refusals

TEST(GgmlRefuses, ParametersThatDoNotFit) {
  rope_params p;
  p.n_dims = 8;
  const auto made = [](rope_params q) { return [q] { rope node(q); }; };
  rope_params q = p;
  q.mode = 4;
  expect_refused(made(q), "mode is 4");
  q = p;
  q.n_dims = 7;
  expect_refused(made(q), "rotary_dim is 7");
  q.n_dims = -2;
  expect_refused(made(q), "n_dims is -2");
  q = p;
  q.mode = engines::ggml::mrope;
  q.sections[0] = 3;
  expect_refused(made(q), "3 pairs");
  q.mode = engines::ggml::vision;
  expect_refused(made(q), "sections[0] is 3");
  q.n_dims = std::numeric_limits<int>::max();
  expect_refused(made(q), "VISION needs n_dims / 2");
  q.n_dims = 8;
  q.sections[0] = q.sections[1] = 4;
  expect_refused([q] { rope node(q, angles::float32_recurrence); }, "one rope_theta");
  q = p;
  const float zero[4] = {1.0f, 0.0f, 1.0f, 1.0f};
  q.freq_factors = zero;
  expect_refused(made(q), "inv_freq[1]");
}

TEST(GgmlRefuses, TensorsThatDoNotFit) {
  rope_params p;
  p.n_dims = 8;
  std::vector<float> x(64, 7.0f);
  const std::vector<float> before = x;
  const std::int32_t pos[2] = {0, 1};
  rope node(p);
  node.set_positions(pos, 2);
  tensor<float> t = dense(x.data(), 8, 2, 2);
  t.nb[1] += 2;
  expect_refused([&] { node.forward(t, t); }, "nb is 34");
  t = dense(x.data(), 8, 2, 2);
  t.nb[0] = 8;
  expect_refused([&] { node.forward(t, t); }, "nb[0]");
  t = dense(x.data(), 8, 2, 3);
  expect_refused([&] { node.forward(t, t); }, "3");
  t = dense(x.data(), 6, 2, 2);
  expect_refused([&] { node.forward(t, t); }, "head_dim = 6");
  p.mode = engines::ggml::vision;
  p.sections[0] = p.sections[1] = 4;
  const std::int32_t of_axes[8] = {};
  rope tower(p);
  tower.set_positions(of_axes, 2);
  t = dense(x.data(), 18, 1, 2);
  expect_refused([&] { tower.forward(t, t); }, "ne[0] is 18");
  EXPECT_EQ(x, before);
}

}  // namespace
