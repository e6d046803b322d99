// Every recorded rotation of tests/data/golden, on every backend: against the exact results, and against what
// transformers and ggml make of the same input.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <map>
#include <rotary/rotary.hpp>
#include <string>
#include <vector>

#include "every_backend.hpp"
#include "golden.hpp"
#include "reference.hpp"

namespace {

using nlohmann::json;
using rotary::bfloat16;
using rotary::float16;
using rotary::pairing;

const json& rotations() {
  static const json file = golden::load("rotations");
  return file.at("records");
}

// ---- a record as arrays

std::vector<float> generated(const json& lcg, std::size_t count) {
  std::uint32_t x = lcg.at("seed");
  const double scale = lcg.at("scale");
  std::vector<float> values(count);
  for (float& value : values) {
    x = 1664525u * x + 1013904223u;
    value = static_cast<float>(scale * (static_cast<double>(x >> 8) / 8388608.0 - 1.0));
  }
  return values;
}

template <class T>
std::vector<T> from_bits(const json& bits) {
  std::vector<T> values;
  for (const json& b : bits) {
    T value;
    value.bits = b.get<std::uint16_t>();
    values.push_back(value);
  }
  return values;
}

template <class T>
std::vector<T> values_of(const json& record, const char* name) {
  if constexpr (sizeof(T) == 2) {
    return from_bits<T>(record.at(std::string(name) + "_bits"));
  } else {
    return record.at(name).get<std::vector<T>>();
  }
}

template <class T>
struct rotation {
  std::string name, op;
  std::size_t tokens, heads, head_dim, rotary_dim, offset;
  rotary::pairing pairing;
  std::vector<std::int64_t> positions;
  std::vector<T> input, expected;

  explicit rotation(const json& record)
      : name(record.at("name")),
        op(record.at("op")),
        tokens(record.at("tokens")),
        heads(record.at("heads")),
        head_dim(record.at("head_dim")),
        rotary_dim(record.at("rotary_dim")),
        offset(record.value("rotary_offset", std::size_t{0})),
        pairing(record.at("pairing") == "interleaved" ? pairing::interleaved : pairing::split_half),
        positions(record.at(op == "shift" ? "deltas" : "positions").get<std::vector<std::int64_t>>()),
        expected(values_of<T>(record, "expected")) {
    const std::size_t count = tokens * heads * head_dim;
    if (golden::given(record, "input_first")) {
      const std::vector<float> values = generated(record.at("input_lcg"), count);
      EXPECT_EQ(std::vector<float>(values.begin(), values.begin() + 4),
                record.at("input_first").get<std::vector<float>>());
      if constexpr (sizeof(T) == 4) input = values;
    } else {
      input = values_of<T>(record, "input");
    }
    EXPECT_EQ(input.size(), count);
    EXPECT_EQ(expected.size(), count);
    EXPECT_EQ(positions.size(), tokens);
  }

  // The two channels of pair j of the head that begins at `head`.
  std::size_t first(std::size_t head, std::size_t j) const {
    return head + offset + (pairing == pairing::interleaved ? 2 * j : j);
  }
  std::size_t second(std::size_t head, std::size_t j) const {
    return first(head, j) + (pairing == pairing::interleaved ? 1 : rotary_dim / 2);
  }
};

template <class Body>
void for_each_of(const char* dtype, const Body& body) {
  std::size_t records = 0;
  for (const json& record : rotations()) {
    if (record.at("dtype") != dtype) continue;
    SCOPED_TRACE(record.at("name").get<std::string>());
    body(record);
    ++records;
  }
  EXPECT_GT(records, 0u) << "no record has dtype " << dtype;
}

// ---- the operations

// Moving a rotated key is a rotation without the attention factor, which the key has already.
rotary::spectrum spectrum_for(const json& record) {
  const rotary::spectrum spectrum = golden::spectrum_from(record.at("parameters"));
  if (record.at("op") == "shift") return rotary::spectrum(spectrum.inv_freq(), 1.0, spectrum.step_ratio());
  return spectrum;
}

template <class T, class... Rows>
void apply(const std::string& op, const rotary::tensor_view<T>& x, const Rows&... rows) {
  if (op == "backward") return rotary::rotate_adjoint(x, rows...);
  if (op == "undo") return rotary::rotate_inverse(x, rows...);
  rotary::rotate(x, rows...);
}

template <class T, class... Rows>
void apply(const std::string& op, const rotary::tensor_view<const T>& from, const rotary::tensor_view<T>& to,
           const Rows&... rows) {
  if (op == "backward") return rotary::rotate_adjoint(from, to, rows...);
  if (op == "undo") return rotary::rotate_inverse(from, to, rows...);
  rotary::rotate(from, to, rows...);
}

template <class T>
rotary::tensor_view<T> view(std::vector<T>& x, const rotation<std::remove_const_t<T>>& of) {
  return rotary::thd(x.data(), of.tokens, of.heads, of.head_dim);
}

template <class T>
rotary::tensor_view<const T> view(const std::vector<T>& x, const rotation<T>& of) {
  return rotary::thd(x.data(), of.tokens, of.heads, of.head_dim);
}

template <class T>
std::vector<T> in_place(const rotation<T>& of, const rotary::spectrum& spectrum,
                        rotary::angles mode = rotary::angles::exact) {
  rotary::step_table<float> step(spectrum, mode);
  step.assign(of.positions.data(), of.tokens);
  std::vector<T> x = of.input;
  apply(of.op, view(x, of), step, rotary::layout(of.pairing, of.offset));
  return x;
}

template <class T>
std::vector<T> out_of_place(const rotation<T>& of, const rotary::spectrum& spectrum, rotary::pairing stored) {
  rotary::step_table<float> step(spectrum);
  step.assign(of.positions.data(), of.tokens);
  std::vector<T> to(of.input.size());
  std::memset(static_cast<void*>(to.data()), 0xa5, to.size() * sizeof(T));
  apply(of.op, view(of.input, of), view(to, of), step, rotary::layout(of.pairing, of.offset, stored));
  return to;
}

// From a table of all positions between the smallest and the largest, where that is small enough to make.
template <class T>
std::vector<T> from_range_table(const rotation<T>& of, const rotary::spectrum& spectrum) {
  const auto ends = std::minmax_element(of.positions.begin(), of.positions.end());
  if (*ends.second - *ends.first > 20000) return in_place(of, spectrum);
  const rotary::table<float> table(spectrum, *ends.second - *ends.first + 1, *ends.first);
  std::vector<T> x = of.input;
  apply(of.op, view(x, of), table, rotary::positions(of.positions.data(), of.positions.size()),
        rotary::layout(of.pairing, of.offset));
  return x;
}

template <class T>
void expect_same_bits(const std::vector<T>& a, const std::vector<T>& b, const char* what) {
  ASSERT_EQ(a.size(), b.size());
  EXPECT_EQ(std::memcmp(a.data(), b.data(), a.size() * sizeof(T)), 0) << what;
}

// The ways of doing one rotation, which must give the same bits.
template <class T>
std::vector<T> rotated_every_way(const rotation<T>& of, const rotary::spectrum& spectrum) {
  const std::vector<T> result = in_place(of, spectrum);
  expect_same_bits(result, out_of_place(of, spectrum, of.pairing), "out of place");
  expect_same_bits(result, from_range_table(of, spectrum), "from a range table");
  return result;
}

// ---- against the exact results

// Compares the pairs within 3 * 2^-24 of their length, and the channels outside the block by their bits. Returns the
// largest error in these units of 2^-24.
double expect_exact(const rotation<float>& of, const std::vector<float>& got) {
  std::vector<bool> rotated(got.size(), false);
  double worst = 0.0;
  for (std::size_t head = 0; head < got.size(); head += of.head_dim) {
    for (std::size_t j = 0; j < of.rotary_dim / 2; ++j) {
      const std::size_t a = of.first(head, j), b = of.second(head, j);
      rotated[a] = rotated[b] = true;
      const double length = std::hypot(double{of.input[a]}, double{of.input[b]});
      for (const std::size_t i : {a, b}) {
        const double error = std::fabs(double{got[i]} - double{of.expected[i]}) / (0x1p-24 * length);
        worst = reference::larger(worst, error);
      }
    }
  }
  EXPECT_LE(worst, 3.0) << "units of 2^-24 times the length of the pair";
  for (std::size_t i = 0; i < got.size(); ++i) {
    if (rotated[i]) continue;
    EXPECT_EQ(std::memcmp(&got[i], &of.input[i], sizeof(float)), 0) << "channel outside the block: " << i;
  }
  return worst;
}

TEST(GoldenRotations, FloatWithinThreeUnitsOfTheLengthOfThePair) {
  backends::on_each([](rotary::backend which) {
    double worst = 0.0;
    for_each_of("f32", [&](const json& record) {
      const rotation<float> of(record);
      worst = reference::larger(worst, expect_exact(of, rotated_every_way(of, spectrum_for(record))));
    });
    std::printf("%s: float within %.2f * 2^-24 of the length of the pair\n", rotary::backend_name(which), worst);
  });
}

TEST(GoldenRotations, Bfloat16BitForBit) {
  backends::on_each([](rotary::backend which) {
    std::size_t values = 0, different = 0;
    for_each_of("bf16", [&](const json& record) {
      const rotation<bfloat16> of(record);
      const std::vector<bfloat16> got = rotated_every_way(of, spectrum_for(record));
      for (std::size_t i = 0; i < got.size(); ++i) different += got[i].bits != of.expected[i].bits;
      values += got.size();
      EXPECT_EQ(different, 0u) << "values up to here";
    });
    std::printf("%s: %zu of %zu bfloat16 values are not the correctly rounded ones\n", rotary::backend_name(which),
                different, values);
  });
}

// Distance in units in the last place: neighbours differ by 1, across zero too.
int ulps(float16 a, float16 b) {
  const auto order = [](float16 x) { return (x.bits & 0x8000) != 0 ? -(x.bits & 0x7fff) : int{x.bits}; };
  return std::abs(order(a) - order(b));
}

TEST(GoldenRotations, Float16WithinOneUlpInOneValueOfAThousand) {
  backends::on_each([](rotary::backend which) {
    std::size_t values = 0, different = 0;
    for_each_of("f16", [&](const json& record) {
      const rotation<float16> of(record);
      const std::vector<float16> got = rotated_every_way(of, spectrum_for(record));
      for (std::size_t i = 0; i < got.size(); ++i) {
        ASSERT_LE(ulps(got[i], of.expected[i]), 1) << "element " << i;
        different += got[i].bits != of.expected[i].bits;
      }
      values += got.size();
    });
    std::printf("%s: %zu of %zu float16 values are not the correctly rounded ones, none by more than one ulp\n",
                rotary::backend_name(which), different, values);
    EXPECT_LE(static_cast<double>(different), 0.001 * static_cast<double>(values)) << "of " << values << " values";
  });
}

// ---- conventions of other programs: the same signs, pairs, offsets and orders of channels

// Both sides are known to be near the exact result, which bounds what is between them.
template <class T>
void expect_near_recorded(const rotation<T>& of, const std::vector<T>& got, const json& oracle, double permitted) {
  const std::vector<T> theirs = values_of<T>(oracle, "output");
  ASSERT_EQ(theirs.size(), of.input.size());
  double most = 0.0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    const double difference = std::fabs(static_cast<double>(got[i]) - static_cast<double>(theirs[i]));
    most = reference::larger(most, difference);
  }
  EXPECT_LE(most, oracle.at("max_abs_diff").template get<double>() + permitted);
}

struct comparisons {
  std::size_t all = 0, deinterleaved = 0;
};

template <class T>
void expect_conventions(const json& record, const char* program, double permitted, comparisons& made) {
  if (!golden::given(record, program)) return;
  const json& oracle = record.at(program);
  if (!oracle.contains("output") && !oracle.contains("output_bits")) return;
  const rotation<T> of(record);
  const bool deinterleaved = oracle.value("layout", "same") != "same";  // as DeepSeek stores it
  const pairing stored = deinterleaved ? pairing::split_half : of.pairing;
  expect_near_recorded(of, out_of_place(of, spectrum_for(record), stored), oracle, permitted);
  made.all += 1;
  made.deinterleaved += deinterleaved;
}

TEST(GoldenRotations, ConventionsOfTransformersAndGgml) {
  for (const char* program : {"hf", "ggml"}) {
    SCOPED_TRACE(program);
    comparisons made;
    for_each_of("f32", [&](const json& r) { expect_conventions<float>(r, program, 4.3 * 0x1p-24, made); });
    for_each_of("f16", [&](const json& r) { expect_conventions<float16>(r, program, 0.0, made); });
    for_each_of("bf16", [&](const json& r) { expect_conventions<bfloat16>(r, program, 0.0, made); });
    EXPECT_GT(made.all, 0u);
    EXPECT_TRUE(made.deinterleaved > 0 || program != std::string("hf"));
  }
}

// ---- the float modes: what other programs compute, to the last digits

double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  double most = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = std::fabs(double{a[i]} - double{b[i]});
    most = reference::larger(most, difference);
  }
  return most;
}

// Calls body(record, rotation, output of the program) for float records whose channels are in the library's order.
template <class Body>
void for_each_float_output(const char* program, const Body& body) {
  for_each_of("f32", [&](const json& record) {
    if (!golden::given(record, program) || !record.at(program).contains("output")) return;
    if (record.at(program).value("layout", "same") != "same") return;
    const rotation<float> of(record);
    body(record, of, values_of<float>(record.at(program), "output"));
  });
}

// transformers' own inverse frequencies, which it computes in float too.
std::map<std::string, rotary::spectrum> spectra_of_transformers() {
  std::map<std::string, rotary::spectrum> result;
  const json file = golden::load("spectra");
  for (const json& record : file.at("records")) {
    if (!golden::given(record, "hf_float32")) continue;
    const json& theirs = record.at("hf_float32");
    result.emplace(record.at("name").get<std::string>(),
                   rotary::spectrum(theirs.at("inv_freq").get<std::vector<double>>(), theirs.at("attention_factor")));
  }
  return result;
}

TEST(GoldenRotations, AnglesFloat32IsWhatTransformersComputes) {
  const std::map<std::string, rotary::spectrum> spectra = spectra_of_transformers();
  std::size_t compared = 0;
  double of_exact = 0.0, of_mode = 0.0;
  for_each_float_output("hf", [&](const json& record, const rotation<float>& of, const std::vector<float>& theirs) {
    const auto spectrum = spectra.find(record.at("spectrum"));
    if (spectrum == spectra.end()) return;
    const double difference = largest_difference(in_place(of, spectrum->second, rotary::angles::float32), theirs);
    EXPECT_LE(difference, 3.0 * 0x1p-24);
    of_mode = reference::larger(of_mode, difference);
    of_exact = reference::larger(of_exact, largest_difference(in_place(of, spectrum_for(record)), theirs));
    ++compared;
  });
  std::printf("%zu records, largest difference to transformers: angles::float32 %.2g, exact %.2g\n", compared, of_mode,
              of_exact);
  EXPECT_GT(compared, 0u);
  EXPECT_GT(of_exact, 1000.0 * of_mode) << "these records cannot tell the two modes apart";
}

// Whether a record's spectrum is theta's with one scale, or with divisors that are floats: ggml's angles then have the
// roundings of the mode, and no more.
bool same_arithmetic_as_ggml(const json& parameters) {
  const std::string policy = parameters.at("policy");
  if (policy != "longrope") return policy != "yarn" && policy != "llama3";
  for (const double factor : parameters.at("factors")) {
    if (static_cast<double>(static_cast<float>(factor)) != factor) return false;
  }
  return true;
}

TEST(GoldenRotations, AnglesFloat32RecurrenceIsWhatGgmlComputes) {
  std::size_t compared = 0, others = 0;
  double of_exact = 0.0, of_mode = 0.0;
  for_each_float_output("ggml", [&](const json& record, const rotation<float>& of, const std::vector<float>& theirs) {
    const rotary::spectrum spectrum = spectrum_for(record);
    const double exact = largest_difference(in_place(of, spectrum), theirs);
    const double mode = largest_difference(in_place(of, spectrum, rotary::angles::float32_recurrence), theirs);
    const json& parameters = record.at("parameters");
    if (same_arithmetic_as_ggml(parameters)) {
      EXPECT_LE(mode, 3.0 * 0x1p-24);
      of_mode = reference::larger(of_mode, mode);
      of_exact = reference::larger(of_exact, exact);
      ++compared;
    } else if (parameters.at("policy") != "longrope" && parameters.value("truncate", true) && exact > 1e-4) {
      // Ramps, whose ends ggml computes in float; it cannot leave them untruncated.
      EXPECT_LE(mode, 0.01 * exact);
      ++others;
    }
  });
  std::printf("%zu records, largest difference to ggml: angles::float32_recurrence %.2g, exact %.2g\n", compared,
              of_mode, of_exact);
  EXPECT_GT(compared, 0u);
  EXPECT_GT(others, 0u);
  EXPECT_GT(of_exact, 1000.0 * of_mode) << "these records cannot tell the two modes apart";
}

}  // namespace
