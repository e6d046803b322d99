// Rotates q and k of one attention layer of Llama-3.1-8B and shows that the result is right, and what it costs.
// Needs nothing but the C++ standard library. Returns 1 if a result lies outside the limit printed beside it.
#include <chrono>
#include <cmath>
#include <cstdio>
#include <rotary/rotary.hpp>
#include <vector>

#include "golden_llama3.hpp"

namespace {

constexpr std::size_t tokens = 4096, q_heads = 32, k_heads = 8, head_dim = 128, pairs = head_dim / 2;
constexpr double rope_theta = 500000.0;
constexpr double float_rounding = 1.0 / (1 << 24), bfloat16_rounding = 1.0 / (1 << 8);  // half an ulp of 1

// ---- what the checks share

bool all_within_limits = true;

void check(const char* what, double value, double limit) {
  const bool within = value <= limit;  // false for a NaN
  all_within_limits = all_within_limits && within;
  std::printf("   %-72s %9.2g %9.2g   %s\n", what, value, limit, within ? "ok" : "TOO LARGE");
}

// The larger of the two. Unlike std::fmax it keeps a NaN.
double larger(double a, double b) { return std::isnan(a) || b <= a ? a : b; }

void heading(int number, const char* text) { std::printf("\n%d. %s\n", number, text); }

void columns(const char* left) { std::printf("   %-72s %9s %9s\n", left, "largest", "limit"); }

// Numbers in (-1, 1), the same on every machine.
template <class T>
std::vector<T> random_numbers(std::size_t count, std::uint32_t seed) {
  std::vector<T> values(count);
  for (T& value : values) {
    seed = 1664525u * seed + 1013904223u;
    value = static_cast<T>(static_cast<float>(seed >> 8) / 8388608.0f - 1.0f);
  }
  return values;
}

template <class Row>
rotary::step_table<Row> rows_at(const rotary::spectrum& spectrum, const std::vector<std::int64_t>& positions,
                                rotary::angles mode = rotary::angles::exact) {
  rotary::step_table<Row> step(spectrum, mode);
  step.assign(positions.data(), positions.size());
  return step;
}

// ---- 1. the spectrum

void show_region(const char* what, const rotary::spectrum& spectrum, std::size_t first, std::size_t last) {
  const double two_pi = 6.283185307179586;
  std::printf("   pairs %2zu to %2zu: %-34s one turn in %8.0f to %8.0f tokens\n", first, last, what,
              two_pi / spectrum.inv_freq()[first], two_pi / spectrum.inv_freq()[last]);
}

void show_spectrum(const rotary::spectrum& spectrum) {
  const std::vector<double> unscaled = rotary::inverse_frequencies(head_dim, rope_theta);
  std::size_t kept = 0, slowed = pairs;
  while (kept < pairs && std::fabs(spectrum.inv_freq()[kept] / unscaled[kept] - 1.0) < 1e-9) ++kept;
  while (slowed > 0 && std::fabs(spectrum.inv_freq()[slowed - 1] / unscaled[slowed - 1] * 8.0 - 1.0) < 1e-9) --slowed;

  heading(1, "Spectrum: how fast each pair of channels turns, with Llama 3.1's scaling for long contexts");
  show_region("short waves, as they were trained", spectrum, 0, kept - 1);
  show_region("between, a blend of both", spectrum, kept, slowed - 1);
  show_region("long waves, slowed 8 times", spectrum, slowed, pairs - 1);
  const bool as_published = kept == 29 && slowed == 35;
  all_within_limits = all_within_limits && as_published;
  std::printf("   the regions begin at pairs 0, 29 and 35, as published: %s\n", as_published ? "ok" : "NO");
}

// ---- 2. agreement with recorded results

double difference_to(const float (&recorded)[384], const rotary::spectrum& spectrum, rotary::angles mode) {
  using namespace golden_llama3;
  std::vector<float> x(input, input + golden_llama3::tokens * heads * golden_llama3::head_dim);
  rotary::rotate(rotary::thd(x.data(), golden_llama3::tokens, heads, golden_llama3::head_dim),
                 rows_at<float>(spectrum, {positions[0], positions[1], positions[2]}, mode));
  double most = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) most = larger(most, std::fabs(double{x[i]} - double{recorded[i]}));
  return most;
}

void show_agreement(const rotary::spectrum& spectrum) {
  using namespace golden_llama3;
  const rotary::spectrum theirs(std::vector<double>(transformers_inv_freq, transformers_inv_freq + pairs));
  heading(2, "Agreement with recorded results, float, positions 0, 8192 and 131071");
  columns("difference of an element (inputs lie between -1 and 1)");
  check("exact angles, to arithmetic with 80 digits", difference_to(exact, spectrum, rotary::angles::exact),
        4.3 * float_rounding);
  check("angles::float32, to transformers", difference_to(transformers, theirs, rotary::angles::float32),
        12 * float_rounding);
  check("exact angles, to transformers (the error of its angles in float)",
        difference_to(transformers, spectrum, rotary::angles::exact), 0.004);
}

// ---- 3. lengths

// The largest relative change of a pair's length. Split-half pairing: pair j is channels j and j + 64.
template <class T>
double drift(const std::vector<T>& before, const std::vector<T>& after) {
  double most = 0.0;
  for (std::size_t head = 0; head < before.size(); head += head_dim) {
    for (std::size_t j = head; j < head + pairs; ++j) {
      const double was = std::hypot(static_cast<double>(before[j]), static_cast<double>(before[j + pairs]));
      const double is = std::hypot(static_cast<double>(after[j]), static_cast<double>(after[j + pairs]));
      most = larger(most, std::fabs(is / was - 1.0));
    }
  }
  return most;
}

template <class T>
double drift_of_layer(const rotary::table<float>& table) {
  const std::vector<T> before = random_numbers<T>(tokens * q_heads * head_dim, 3);
  std::vector<T> q = before;
  rotary::rotate(rotary::bshd(q.data(), 1, tokens, q_heads, head_dim), table, 0);
  return drift(before, q);
}

void show_drift(const rotary::table<float>& table) {
  heading(3, "Norm drift: a rotation keeps the length of every pair");
  columns("relative change of a length, all of q");
  check("float", drift_of_layer<float>(table), 4.3 * float_rounding);
  check("bfloat16", drift_of_layer<rotary::bfloat16>(table), 1.01 * bfloat16_rounding);
}

// ---- 4. relative position

// q . k for each query head, with one query at position m and one key at position n; 4 query heads share a key head.
// Divided by the lengths of q and k.
template <class T>
std::vector<double> scores(const rotary::spectrum& spectrum, std::int64_t m, std::int64_t n) {
  std::vector<T> q = random_numbers<T>(q_heads * head_dim, 1), k = random_numbers<T>(k_heads * head_dim, 2);
  rotary::rotate(rotary::thd(q.data(), 1, q_heads, head_dim), rows_at<float>(spectrum, {m}));
  rotary::rotate(rotary::thd(k.data(), 1, k_heads, head_dim), rows_at<float>(spectrum, {n}));
  std::vector<double> result;
  for (std::size_t head = 0; head < q_heads; ++head) {
    double dot = 0.0, q_square = 0.0, k_square = 0.0;
    for (std::size_t i = 0; i < head_dim; ++i) {
      const double a = static_cast<double>(q[head * head_dim + i]);
      const double b = static_cast<double>(k[head / (q_heads / k_heads) * head_dim + i]);
      dot += a * b;
      q_square += a * a;
      k_square += b * b;
    }
    result.push_back(dot / std::sqrt(q_square * k_square));
  }
  return result;
}

template <class T>
double change_of_scores(const rotary::spectrum& spectrum, std::int64_t further) {
  const std::vector<double> near = scores<T>(spectrum, 5, 2), far = scores<T>(spectrum, 5 + further, 2 + further);
  double most = 0.0;
  for (std::size_t head = 0; head < q_heads; ++head) most = larger(most, std::fabs(near[head] - far[head]));
  return most;
}

void show_relative_position(const rotary::spectrum& spectrum) {
  heading(4, "Relative position: q . k depends on the distance of two tokens, not on where they are");
  columns("change of q . k / (|q| |k|) from positions (5, 2), all heads");
  check("float, to (105, 102)", change_of_scores<float>(spectrum, 100), 4.3 * float_rounding);
  check("float, to (100005, 100002)", change_of_scores<float>(spectrum, 100000), 4.3 * float_rounding);
  check("bfloat16, to (105, 102)", change_of_scores<rotary::bfloat16>(spectrum, 100), bfloat16_rounding);
  check("bfloat16, to (100005, 100002)", change_of_scores<rotary::bfloat16>(spectrum, 100000), bfloat16_rounding);
}

// ---- 5. speed

// What any pass over the memory costs: x *= c in place, as plain C++, 16 floats at a time so that every compiler
// makes vectors of it.
void multiply(std::vector<float>& x, float c) {
  for (std::size_t i = 0; i + 16 <= x.size(); i += 16) {
    float* const block = x.data() + i;
    for (std::size_t j = 0; j < 16; ++j) block[j] *= c;
  }
}

template <class Work>
double microseconds(const Work& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - start).count();
}

template <class T>
void show_speed(const char* type, const rotary::table<float>& table) {
  std::vector<T> q = random_numbers<T>(tokens * q_heads * head_dim, 1);
  std::vector<T> k = random_numbers<T>(tokens * k_heads * head_dim, 2);
  const std::size_t bytes = (q.size() + k.size()) * sizeof(T);
  std::vector<float> as_many_bytes(bytes / sizeof(float), 1.0f);
  double rotation = 1e30, floor = 1e30;
  for (int repeat = 0; repeat < 15; ++repeat) {
    rotation = std::fmin(rotation, microseconds([&] {
                           rotary::rotate(rotary::bshd(q.data(), 1, tokens, q_heads, head_dim), table, 0);
                           rotary::rotate(rotary::bshd(k.data(), 1, tokens, k_heads, head_dim), table, 0);
                         }));
    floor = std::fmin(floor, microseconds([&] { multiply(as_many_bytes, -1.0f); }));
  }
  std::printf("   %-10s %4.0f MiB %14.0f %14.0f %10.2f\n", type, static_cast<double>(bytes) / (1 << 20), rotation,
              floor, rotation / floor);
}

}  // namespace

int main() {
  std::printf("rotary quickstart: q and k of one attention layer of Llama-3.1-8B\n");
  std::printf("%zu query heads and %zu key heads of %zu channels, %zu tokens\n", q_heads, k_heads, head_dim, tokens);

  // All that a program needs: a spectrum from the model's configuration, a table of its rows, and rotate.
  const rotary::spectrum spectrum = rotary::make_spectrum(head_dim, rope_theta, rotary::llama3{8.0, 1.0, 4.0, 8192});
  const rotary::table<float> table(spectrum, tokens);

  show_spectrum(spectrum);
  show_agreement(spectrum);
  show_drift(table);
  show_relative_position(spectrum);

  heading(5, "Speed: q and k in place, one thread, best of 15; no limit, since it depends on the machine");
  std::printf("   the widest instructions in use: %s\n", rotary::backend_name(rotary::active_backend()));
  std::printf("   %-10s %8s %14s %14s %10s\n", "", "", "rotate, us", "x *= c, us", "ratio");
  show_speed<float>("float", table);
  show_speed<rotary::bfloat16>("bfloat16", table);
  std::printf("   x *= c is a plain loop over as many bytes of floats: what reading and writing the memory costs.\n");

  std::printf("\n%s\n", all_within_limits ? "Everything is within its limits." : "Something is outside its limit.");
  return all_within_limits ? 0 : 1;
}
