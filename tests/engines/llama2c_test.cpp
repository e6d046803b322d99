// examples/engines/llama2c.hpp: against the loop's definition, and how far the loop's float angles are from exact ones.
#include "llama2c.hpp"

#include "engines.hpp"

namespace {

using namespace engines_test;

TEST(Llama2c, RotatesQueryAndTheKeyInTheCache) {
  const int head_size = 12, dim = 36, kv_dim = 24, seq_len = 300, layer = 1;
  const rotary::table<float> table = engines::llama2c::make_table(head_size, seq_len);
  const std::vector<double> inv_freq = reference::inverse_frequencies(12, 10000.0);
  for (const int pos : {0, 1, 17, 299}) {
    const std::vector<float> q = numbers<float>(36, 1), cache = numbers<float>(24 * 300 * 2, 2);
    std::vector<float> q_out = q, cache_out = cache;
    const std::size_t k = 24 * static_cast<std::size_t>(layer * seq_len + pos);
    engines::llama2c::rope(q_out.data(), &cache_out[k], dim, kv_dim, head_size, pos, table);
    const reference::rows<long double> row(inv_freq, {pos});
    for (std::size_t h = 0; h < 3; ++h) expect_head(&q[12 * h], &q_out[12 * h], 12, true, row, 0, "q");
    for (std::size_t h = 0; h < 2; ++h) expect_head(&cache[k + 12 * h], &cache_out[k + 12 * h], 12, true, row, 0, "k");
    for (std::size_t i = 0; i < cache.size(); ++i) {
      if (i >= k && i < k + 24) continue;
      ASSERT_EQ(cache[i], cache_out[i]) << "beyond the key";
    }
  }
}

TEST(Llama2c, FigureOfFloatAngles) {
  const auto expect = [](int position, double stated) {
    const double error = float_angle_error(float_inverse_frequencies(128, 10000.0f), 10000.0, position);
    std::printf("llama2.c's float angles at position %d (head_size 128): %.2g off in cos and sin\n", position, error);
    expect_figure(error, stated);
  };
  expect(2047, 4.2e-5);
  expect(131071, 4.2e-3);
}

TEST(Llama2c, RefusesWhatDoesNotFit) {
  const rotary::table<float> table = engines::llama2c::make_table(8, 4);
  std::vector<float> q(16, 7.0f), k(16, 7.0f);
  const std::vector<float> before = q;
  const auto call = [&](int dim, int kv_dim, int head_size, int pos) {
    return [=, &q, &k, &table] { engines::llama2c::rope(q.data(), k.data(), dim, kv_dim, head_size, pos, table); };
  };
  expect_refused(call(12, 8, 8, 0), "dim is 12");
  expect_refused(call(16, 12, 8, 0), "kv_dim is 12");
  expect_refused(call(16, 8, 0, 0), "head_size is 0");
  expect_refused(call(16, 8, 4, 0), "head_size is 4");
  expect_refused(call(16, 8, 8, 4), "positions 4 to 4");
  expect_refused(call(16, 8, 8, -1), "positions -1 to -1");
  expect_refused([] { engines::llama2c::make_table(7, 4); }, "rotary_dim is 7");
  expect_refused([] { engines::llama2c::make_table(8, -4); }, "count is -4");
  EXPECT_EQ(q, before);
  EXPECT_EQ(k, before);
}

}  // namespace
