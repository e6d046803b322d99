// What the tests of the adapters in examples/engines share: heads rotated by their definition in long double, and the
// errors of the float angles that most engines compute.
#ifndef ROTARY_TESTS_ENGINES_ENGINES_HPP
#define ROTARY_TESTS_ENGINES_ENGINES_HPP

#include <gtest/gtest.h>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <rotary/rotary.hpp>
#include <string>
#include <vector>

#include "../reference.hpp"
#include "../refusals.hpp"

namespace engines_test {

using reference::numbers;

template <class T>
double number(T value) {
  return static_cast<double>(value);
}

/// Half an ulp of the data's type at 1, beside the roundings of float arithmetic.
template <class T>
constexpr double rounding = 0.0;
template <>
inline constexpr double rounding<rotary::float16> = 0x1p-11;
template <>
inline constexpr double rounding<rotary::bfloat16> = 0x1p-8;

/// Compares a head with the definition: `pairs` pairs from channel 0 on turn by cos[j], sin[j] (with their magnitude),
/// the rest is copied. `angles` is the error permitted in cos and sin.
template <class T>
void expect_head(const T* in, const T* out, std::size_t head_dim, bool interleaved,
                 const reference::rows<long double>& by, std::size_t row, const std::string& what,
                 double angles = 0.0) {
  const std::size_t pairs = by.pairs;
  for (std::size_t j = 0; j < pairs; ++j) {
    const std::size_t a = reference::first_channel(interleaved, j);
    const std::size_t b = reference::second_channel(interleaved, pairs, j);
    const long double c = by.cos[row * pairs + j], s = by.sin[row * pairs + j];
    const long double x = static_cast<long double>(number(in[a])), y = static_cast<long double>(number(in[b]));
    const double length = static_cast<double>(std::hypot(x, y)) * static_cast<double>(std::hypot(c, s));
    const double permitted = length * (3.0 * 0x1p-24 + rounding<T> + 1.5 * angles);
    ASSERT_NEAR(number(out[a]), static_cast<double>(x * c - y * s), permitted) << what << ", pair " << j;
    ASSERT_NEAR(number(out[b]), static_cast<double>(x * s + y * c), permitted) << what << ", pair " << j;
  }
  for (std::size_t i = 2 * pairs; i < head_dim; ++i) {
    ASSERT_EQ(std::memcmp(&in[i], &out[i], sizeof(T)), 0) << what << ", channel " << i << " outside the block";
  }
}

/// The largest error in cos and sin over the pairs, of angles computed as float(position) * inv_freq[j] in float.
inline double float_angle_error(const std::vector<float>& inv_freq, double theta, std::int64_t position) {
  const std::vector<double> exact = reference::inverse_frequencies(2 * inv_freq.size(), theta);
  double most = 0.0;
  for (std::size_t j = 0; j < exact.size(); ++j) {
    const float angle = static_cast<float>(position) * inv_freq[j];
    const reference::phasor at = reference::phasor_at(position, exact[j]);
    most = reference::larger(most, std::fabs(std::cos(double{angle}) - static_cast<double>(at.cos)));
    most = reference::larger(most, std::fabs(std::sin(double{angle}) - static_cast<double>(at.sin)));
  }
  return most;
}

/// Inverse frequencies as float programs compute them: 1 / pow(theta, 2j / d).
inline std::vector<float> float_inverse_frequencies(std::size_t rotary_dim, float theta) {
  std::vector<float> inv_freq(rotary_dim / 2);
  for (std::size_t j = 0; j < inv_freq.size(); ++j) {
    inv_freq[j] = 1.0f / std::pow(theta, static_cast<float>(2 * j) / static_cast<float>(rotary_dim));
  }
  return inv_freq;
}

/// What a test prints must be what the adapters' comments and README.md say, two digits, within 5 %.
inline void expect_figure(double measured, double stated) { EXPECT_NEAR(measured, stated, 0.05 * stated); }
/// Of last places, which depend on what compilers fuse: at most that.
inline void expect_at_most(double measured, double stated) { EXPECT_LE(measured, 1.05 * stated); }

/// The call must throw rotary::error with a text that starts with the adapter's or library's name and has `part`.
template <class Call>
void expect_refused(const Call& call, const std::string& part) {
  const std::string text = refusals::text_of(call);
  EXPECT_NE(text.find(part), std::string::npos) << "no \"" << part << "\" in: " << text;
}

}  // namespace engines_test

#endif
