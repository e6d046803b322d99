// examples/engines/vllm.hpp: against the operator's definition for the cache that it was given, and what that cache
// costs.
#include "vllm.hpp"

#include "engines.hpp"

namespace {

using namespace engines_test;
using rotary::bfloat16;
using rotary::float16;

// [max_position, cos | sin] by exact angles, rounded once to T.
template <class T>
std::vector<T> cache_of(const std::vector<double>& inv_freq, std::int64_t count) {
  std::vector<T> cache;
  for (std::int64_t p = 0; p < count; ++p) {
    std::vector<T> sines;
    for (const double w : inv_freq) {
      const reference::phasor at = reference::phasor_at(p, w);
      cache.push_back(static_cast<T>(static_cast<double>(at.cos)));
      sines.push_back(static_cast<T>(static_cast<double>(at.sin)));
    }
    cache.insert(cache.end(), sines.begin(), sines.end());
  }
  return cache;
}

// The definition, by the cache's own numbers.
template <class T>
reference::rows<long double> rows_of(const std::vector<T>& cache, std::size_t pairs,
                                     const std::vector<std::int64_t>& positions) {
  reference::rows<long double> rows;
  rows.pairs = pairs;
  for (const std::int64_t p : positions) {
    for (std::size_t j = 0; j < pairs; ++j) {
      const std::size_t at = static_cast<std::size_t>(p) * 2 * pairs + j;
      rows.cos.push_back(static_cast<long double>(number(cache[at])));
      rows.sin.push_back(static_cast<long double>(number(cache[at + pairs])));
    }
  }
  return rows;
}

template <class T>
void expect_definition(std::size_t head_size, std::size_t rot_dim, bool is_neox, bool with_key) {
  SCOPED_TRACE(std::to_string(head_size) + " channels, " + std::to_string(rot_dim) + " rotate");
  const std::vector<std::int64_t> positions = {3, 0, 49, 3, 20};
  const std::size_t heads = 3, kv_heads = 1, q_stride = 5 * head_size + 1, k_stride = 2 * head_size;
  const std::vector<T> cache = cache_of<T>(reference::inverse_frequencies(rot_dim, 10000.0), 50);
  const std::vector<T> q = numbers<T>(5 * q_stride, 1), k = numbers<T>(5 * k_stride, 2);
  std::vector<T> q_out = q, k_out = k;
  const auto signed_size = [](std::size_t n) { return static_cast<std::int64_t>(n); };
  for (std::size_t part = 0; part < 2; ++part) {
    engines::vllm::rotary_embedding<T>(positions.data(), 5, q_out.data(), signed_size(heads * head_size),
                                       signed_size(q_stride), with_key ? k_out.data() : nullptr,
                                       with_key ? signed_size(kv_heads * head_size) : -7,  // means nothing then
                                       signed_size(k_stride), signed_size(head_size), cache.data(), 50,
                                       signed_size(rot_dim), is_neox, {part, 2});
  }
  const reference::rows<long double> rows = rows_of(cache, rot_dim / 2, positions);
  for (std::size_t t = 0; t < 5; ++t) {
    for (std::size_t h = 0; h < heads; ++h) {
      const std::size_t at = t * q_stride + h * head_size;
      expect_head(&q[at], &q_out[at], head_size, !is_neox, rows, t, "query, token " + std::to_string(t));
    }
    for (std::size_t i = heads * head_size; i < q_stride; ++i) {
      ASSERT_EQ(std::memcmp(&q[t * q_stride + i], &q_out[t * q_stride + i], sizeof(T)), 0) << "between tokens";
    }
    if (with_key) {
      expect_head(&k[t * k_stride], &k_out[t * k_stride], head_size, !is_neox, rows, t,
                  "key, token " + std::to_string(t));
    }
  }
  if (with_key) return;
  EXPECT_EQ(std::memcmp(k.data(), k_out.data(), k.size() * sizeof(T)), 0);
}

TEST(Vllm, IsItsDefinition) {
  for (const bool is_neox : {true, false}) {
    for (const bool with_key : {true, false}) {
      expect_definition<float>(64, 64, is_neox, with_key);
      expect_definition<float>(30, 20, is_neox, with_key);
      expect_definition<bfloat16>(80, 32, is_neox, with_key);
      expect_definition<float16>(80, 32, is_neox, with_key);
    }
  }
}

// ---- what the cache's type costs, against exact rows

template <class T>
double rounding_error() {
  const std::vector<double> inv_freq = reference::inverse_frequencies(128, 10000.0);
  const std::vector<T> cache = cache_of<T>(inv_freq, 512);
  double most = 0.0;
  for (std::size_t p = 0; p < 512; ++p) {
    for (std::size_t j = 0; j < 64; ++j) {
      const reference::phasor at = reference::phasor_at(static_cast<std::int64_t>(p), inv_freq[j]);
      most = reference::larger(most, std::fabs(number(cache[p * 128 + j]) - static_cast<double>(at.cos)));
      most = reference::larger(most, std::fabs(number(cache[p * 128 + 64 + j]) - static_cast<double>(at.sin)));
    }
  }
  return most;
}

TEST(Vllm, FiguresOfTheCache) {
  const double bf16 = rounding_error<bfloat16>(), f16 = rounding_error<float16>();
  std::printf("vLLM's cache in the data's type: cos and sin %.2g off in bfloat16, %.2g in float16\n", bf16, f16);
  EXPECT_LE(bf16, 0x1p-9);
  EXPECT_LE(f16, 0x1p-12);
  expect_figure(bf16, 2.0e-3);
  expect_figure(f16, 2.4e-4);
  const double angles = float_angle_error(float_inverse_frequencies(128, 10000.0f), 10000.0, 131071);
  std::printf("vLLM's float angles at position 131071 (theta 10000, 128 channels): %.2g off in cos and sin\n", angles);
  expect_figure(angles, 4.2e-3);
}

// The recommended replacement has the same layout and no second error.
TEST(Vllm, TableHasTheRowsOfTheCache) {
  const std::vector<double> inv_freq = reference::inverse_frequencies(32, 10000.0);
  const std::vector<bfloat16> cache = cache_of<bfloat16>(inv_freq, 100);
  const rotary::table<bfloat16> table(rotary::make_spectrum(32, 10000.0), 100);
  EXPECT_EQ(table.view().row_stride, 32);
  EXPECT_EQ(table.view().sin, table.view().cos + 16);
  std::size_t different = 0;
  for (std::size_t i = 0; i < cache.size(); ++i) different += table.view().cos[i].bits != cache[i].bits;
  EXPECT_EQ(different, 0u);
}

TEST(Vllm, RefusesWhatDoesNotFit) {
  std::vector<float> q(64, 7.0f), k(64, 7.0f);
  const std::vector<float> before = q, cache(40 * 8, 0.5f);
  std::vector<std::int64_t> at = {0, 1};
  const auto call = [&](std::int64_t tokens, std::int64_t q_hidden, std::int64_t k_hidden, std::int64_t head_size,
                        std::int64_t rot_dim, std::int64_t q_stride = 32) {
    return [=, &q, &k, &cache, &at] {
      engines::vllm::rotary_embedding<float>(at.data(), tokens, q.data(), q_hidden, q_stride, k.data(), k_hidden, 32,
                                             head_size, cache.data(), 40, rot_dim, true);
    };
  };
  expect_refused(call(2, 20, 16, 8, 8), "query's size is 20");
  expect_refused(call(2, 16, 20, 8, 8), "key's size is 20");
  expect_refused(call(2, 16, 16, 0, 8), "head_size is 0");
  expect_refused(call(2, 16, 16, 8, 7), "rot_dim is 7");
  expect_refused(call(2, 16, 16, 4, 8), "head_dim = 4");
  expect_refused(call(-1, 16, 16, 8, 8), "tokens is -1");
  expect_refused(call(2, 16, 16, 8, 8, 8), "overlap");
  expect_refused(
      [&] {
        engines::vllm::rotary_embedding<float>(at.data(), 2, q.data(), 16, 32, k.data(), 16, 32, 8, nullptr, 40, 8,
                                               true);
      },
      "cos_sin_cache");
  at[1] = 40;
  expect_refused(call(2, 16, 16, 8, 8), "40");
  at[1] = -1;
  expect_refused(call(2, 16, 16, 8, 8), "-1");
  EXPECT_EQ(q, before);
  EXPECT_EQ(k, before);
}

}  // namespace
