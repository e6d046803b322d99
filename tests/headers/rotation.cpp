// Rotations of float and bfloat16 in both pairings by every backend of this CPU, against a plain computation in double.
// FLOAT_ONLY leaves out bfloat16, which takes most of the time to compile.
// ROTATION_NAME is the name of the function that returns how many checks failed. Uses no templates of the standard
// library itself, so that two copies with different flags in one program share nothing but what the library brings.
#include <math.h>
#include <stdio.h>

#ifdef HOSTILE_MACROS
#  include "hostile_macros.hpp"
#endif
#include <rotary/rotary.hpp>

int ROTATION_NAME();

namespace {

constexpr std::size_t tokens = 3, heads = 2, head_dim = 44, rotary_dim = 38, offset = 4;
constexpr int first_position = 1000;
constexpr double theta = 500000.0;

template <class T>
int check(const rotary::table<float>& table, rotary::pairing pairing, double unit_roundoff) {
  T x[tokens * heads * head_dim];
  float before[tokens * heads * head_dim];
  for (std::size_t i = 0; i < tokens * heads * head_dim; ++i) {
    before[i] = static_cast<float>(static_cast<int>(i * 37 % 64) - 32) / 16.0f;  // exact in every type
    x[i] = static_cast<T>(before[i]);
  }
  rotary::rotate(rotary::bshd(x, 1, tokens, heads, head_dim), table, first_position, rotary::layout(pairing, offset));

  const bool interleaved = pairing == rotary::pairing::interleaved;
  double expected[head_dim];
  int failures = 0;
  for (std::size_t row = 0; row < tokens * heads; ++row) {
    const float* from = before + row * head_dim;
    for (std::size_t i = 0; i < head_dim; ++i) expected[i] = static_cast<double>(from[i]);
    for (std::size_t j = 0; j < rotary_dim / 2; ++j) {
      const std::size_t i0 = offset + (interleaved ? 2 * j : j);
      const std::size_t i1 = interleaved ? i0 + 1 : i0 + rotary_dim / 2;
      const double position = first_position + static_cast<int>(row / heads);
      const double angle = position * pow(theta, -2.0 * static_cast<double>(j) / static_cast<double>(rotary_dim));
      const double x0 = static_cast<double>(from[i0]), x1 = static_cast<double>(from[i1]);
      expected[i0] = x0 * cos(angle) - x1 * sin(angle);
      expected[i1] = x0 * sin(angle) + x1 * cos(angle);
    }
    for (std::size_t i = 0; i < head_dim; ++i) {
      const bool rotated = i >= offset && i < offset + rotary_dim;
      const double actual = static_cast<double>(static_cast<float>(x[row * head_dim + i]));
      const double bound = rotated ? unit_roundoff * 4 : 0.0;  // elements are at most 2, so results at most 2 * sqrt(2)
      if (!(fabs(actual - expected[i]) <= bound)) {
        printf("row %zu channel %zu: %.9g, expected %.9g\n", row, i, actual, expected[i]);
        ++failures;
      }
    }
  }
  return failures;
}

#ifdef __cpp_exceptions
// A NaN must be refused even where the compiler was told that there are none.
int check_refusal(double theta_value) {
  try {
    rotary::make_spectrum(rotary_dim, theta_value);
  } catch (const rotary::error&) {
    return 0;
  }
  printf("rope_theta %g was accepted\n", theta_value);
  return 1;
}
#endif

}  // namespace

int ROTATION_NAME() {
  const rotary::table<float> table(rotary::make_spectrum(rotary_dim, theta), 16, first_position);
  int failures = 0;
  const rotary::backend backends[] = {rotary::backend::baseline, rotary::backend::avx2, rotary::backend::avx512,
                                      rotary::backend::avx512_bf16, rotary::backend::avx512_fp16};
  const rotary::pairing pairings[] = {rotary::pairing::split_half, rotary::pairing::interleaved};
  for (const rotary::backend backend : backends) {
    if (!rotary::detail::backend_available(backend)) continue;
    rotary::detail::force_backend(backend);
    printf("%s\n", rotary::backend_name(rotary::active_backend()));
    for (const rotary::pairing pairing : pairings) {
      failures += check<float>(table, pairing, 0x1p-22);
#ifndef FLOAT_ONLY
      failures += check<rotary::bfloat16>(table, pairing, 0x1p-8);
#endif
    }
  }
  rotary::detail::force_backend();
#ifdef __cpp_exceptions
  const std::uint64_t nan_bits = 0x7ff8000000000000u, infinity_bits = 0x7ff0000000000000u;
  failures += check_refusal(rotary::detail::bit_cast<double>(nan_bits)) +
              check_refusal(rotary::detail::bit_cast<double>(infinity_bits)) + check_refusal(-1.0);
#endif
  return failures == 0 ? 0 : 1;
}
