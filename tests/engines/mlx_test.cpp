// examples/engines/mlx.hpp: against the definition of mlx.core.fast.rope, and how far MLX's arithmetic is from exact.
#include "mlx.hpp"

#include <limits>

#include "engines.hpp"

namespace {

using namespace engines_test;
using engines::mlx::rope;
using rotary::bfloat16;
using rotary::float16;

// (offset[b] + t) * scale * inv_freq, in long double.
reference::rows<long double> defined(const std::vector<double>& inv_freq, double scale, int offset, int tokens) {
  reference::rows<long double> rows;
  rows.pairs = inv_freq.size();
  for (int t = 0; t < tokens; ++t) {
    for (const double w : inv_freq) {
      const long double angle =
          static_cast<long double>(offset + t) * static_cast<long double>(scale) * static_cast<long double>(w);
      rows.cos.push_back(std::cos(angle));
      rows.sin.push_back(std::sin(angle));
    }
  }
  return rows;
}

template <class T>
void expect_definition(rope& of, const std::vector<double>& inv_freq, double scale, bool traditional,
                       const std::vector<int>& shape, const std::vector<int>& offsets) {
  const std::size_t batch = static_cast<std::size_t>(shape.front()), channels = static_cast<std::size_t>(shape.back());
  const std::size_t tokens = static_cast<std::size_t>(shape[shape.size() - 2]);
  std::size_t heads = 1;
  for (std::size_t i = 1; i + 2 < shape.size(); ++i) heads *= static_cast<std::size_t>(shape[i]);
  const std::vector<T> x = numbers<T>(batch * heads * tokens * channels);
  std::vector<T> out(x.size()), in_place = x;
  of(x.data(), shape.data(), static_cast<int>(shape.size()), offsets.data(), offsets.size(), out.data());
  of(in_place.data(), shape.data(), static_cast<int>(shape.size()), offsets.data(), offsets.size(), in_place.data());
  EXPECT_EQ(std::memcmp(out.data(), in_place.data(), x.size() * sizeof(T)), 0);
  for (std::size_t b = 0; b < batch; ++b) {
    const int offset = offsets.size() == 1 ? offsets[0] : offsets[b];
    const auto rows = defined(inv_freq, scale, offset, static_cast<int>(tokens));
    for (std::size_t h = 0; h < heads; ++h) {
      for (std::size_t t = 0; t < tokens; ++t) {
        const std::size_t at = ((b * heads + h) * tokens + t) * channels;
        expect_head(&x[at], &out[at], channels, traditional, rows, t,
                    "row " + std::to_string(b) + ", token " + std::to_string(t), 5e5 * 2.3e-16);
      }
    }
  }
}

TEST(Mlx, IsItsDefinition) {
  for (const bool traditional : {false, true}) {
    SCOPED_TRACE(traditional ? "traditional" : "not traditional");
    const std::vector<double> inv_freq = reference::inverse_frequencies(20, 50000.0);
    rope of_base(20, traditional, 50000.0, 0.125);
    expect_definition<float>(of_base, inv_freq, 0.125, traditional, {2, 3, 5, 24}, {7, -40});
    expect_definition<float>(of_base, inv_freq, 0.125, traditional, {2, 3, 5, 20}, {400000});
    expect_definition<float>(of_base, inv_freq, 0.125, traditional, {1, 4, 30}, {5});
    expect_definition<bfloat16>(of_base, inv_freq, 0.125, traditional, {3, 1, 2, 2, 24}, {0, 1, 2});
    expect_definition<float16>(of_base, inv_freq, 0.125, traditional, {2, 2, 1, 24}, {9, 90});

    std::vector<float> freqs;
    std::vector<double> of_freqs;
    for (int j = 0; j < 6; ++j) {
      freqs.push_back(1.0f + 3.7f * static_cast<float>(j * j));
      of_freqs.push_back(1.0 / double{freqs.back()});
    }
    rope given(12, traditional, freqs.data(), 2.0);
    expect_definition<float>(given, of_freqs, 2.0, traditional, {2, 2, 3, 16}, {1, 1000});
  }
}

// ---- how far MLX's arithmetic is from the exact result

TEST(Mlx, FigureOfFloatAngles) {
  std::vector<float> inv_freq(64);
  for (std::size_t j = 0; j < inv_freq.size(); ++j) {
    inv_freq[j] = std::exp(-static_cast<float>(j) * (std::log(10000.0f) / 64.0f));
  }
  const double error = float_angle_error(inv_freq, 10000.0, 131071);
  std::printf("MLX's float angles at position 131071 (base 10000, dims 128): %.2g off in cos and sin\n", error);
  expect_figure(error, 5.0e-3);
}

// cos, sin, both products and their difference rounded to bfloat16, as MLX's graph of array operations does on the CPU.
TEST(Mlx, FigureOfBfloat16Arithmetic) {
  const std::vector<double> inv_freq = reference::inverse_frequencies(128, 10000.0);
  const auto rounded = [](double value) { return number(bfloat16(value)); };
  reference::random_bits random(7);
  double theirs = 0.0, ours = 0.0;
  for (int position = 0; position < 256; ++position) {
    std::vector<bfloat16> x(128), out(128);
    for (std::size_t j = 0; j < 64; ++j) {
      const double turn = 3.14159 * random.next_unit();
      x[j] = bfloat16(0.99 * std::cos(turn));
      x[j + 64] = bfloat16(0.99 * std::sin(turn));
    }
    const int shape[3] = {1, 1, 128};
    static rope of(128, false, 10000.0, 1.0);
    of(x.data(), shape, 3, &position, 1, out.data());
    for (std::size_t j = 0; j < 64; ++j) {
      const reference::phasor at = reference::phasor_at(position, inv_freq[j]);
      const double c = static_cast<double>(at.cos), s = static_cast<double>(at.sin);
      const double a = number(x[j]), b = number(x[j + 64]), exact = a * c - b * s;
      const double mlx = rounded(rounded(a * rounded(c)) - rounded(b * rounded(s)));
      theirs = reference::larger(theirs, std::fabs(mlx - exact));
      ours = reference::larger(ours, std::fabs(number(out[j]) - exact));
    }
  }
  std::printf("bfloat16 pairs of length 0.99: MLX on the CPU %.2g off, the adapter %.2g\n", theirs, ours);
  EXPECT_LE(ours, 0x1p-9 + 4e-7);
  expect_figure(ours, 2.0e-3);
  expect_figure(theirs, 6.7e-3);
}

TEST(Mlx, RefusesWhatDoesNotFit) {
  expect_refused([] { rope odd(7, false, 10000.0, 1.0); }, "rotary_dim is 7");
  expect_refused([] { rope below(-2, false, 10000.0, 1.0); }, "dims is -2");
  expect_refused([] { rope still(8, false, 10000.0, 0.0); }, "factor");
  const float freqs[3] = {1.0f, 0.0f, 2.0f};
  expect_refused([&] { rope zero(6, false, freqs, 1.0); }, "inv_freq[1]");
  expect_refused([] { rope none(6, false, static_cast<const float*>(nullptr), 1.0); }, "freqs");
  expect_refused([&] { rope odd(5, false, freqs, 1.0); }, "dims is 5");

  rope of(8, false, 10000.0, 1.0);
  std::vector<float> x(64, 7.0f);
  const std::vector<float> before = x;
  const int offsets[3] = {0, 1, 2};
  const auto call = [&](std::vector<int> shape, std::size_t count) {
    return [=, &of, &x, &offsets] {
      of(x.data(), shape.data(), static_cast<int>(shape.size()), offsets, count, x.data());
    };
  };
  expect_refused(call({8, 8}, 1), "ndim is 2");
  expect_refused(call({2, 2, 2, 8}, 3), "offset's size is 3");
  expect_refused(call({2, 2, 2, 6}, 1), "head_dim = 6");
  expect_refused(call({2, -2, 2, 8}, 1), "shape is -2");
  expect_refused(call({2, 65536, 65536, 65536, 65536, 3, 8}, 1), "shape is 65536");
  const int most = std::numeric_limits<int>::max();
  EXPECT_NO_THROW(call({2, 0, most, 8}, 2)());
  EXPECT_EQ(x, before);
}

}  // namespace
