// Compiled with -ffast-math, which lets compilers multiply by a reciprocal where a quotient is asked for.
#include <gtest/gtest.h>

#include <rotary/kv_cache.hpp>
#include <vector>

#include "every_backend.hpp"

namespace {

TEST(Float8Cache, HoldsRoundedQuotientsUnderFastMath) {
  constexpr std::size_t heads = 3, dim = 72;  // no whole number of vectors
  float of_cache = 0.0f;
  std::vector<float> v(heads * dim);
  std::vector<rotary::float8_e4m3fn> cache(v.size()), keys(v.size());
  const float k[heads * dim] = {};
  const rotary::table<float> rows(rotary::make_spectrum(dim, 10000.0), 1);
  backends::on_each([&](rotary::backend) {
    std::size_t wrong = 0;
    for (int round = 0; round < 500; ++round) {
      of_cache = 1.0f + 0.00193f * static_cast<float>(round);
      for (std::size_t i = 0; i < v.size();
           ++i) {  // near the middle between two neighbours of e4m3, in both directions
        const std::uint32_t at = static_cast<std::uint32_t>(round * 216) + static_cast<std::uint32_t>(i);
        const float middle =
            (1.0f + (2.0f * static_cast<float>(at % 8) + 1.0f) / 16.0f) * (at / 8 % 2 == 0 ? 4.0f : 0.125f);
        v[i] = middle * of_cache * (1.0f + (static_cast<float>(at / 16 % 5) - 2.0f) * 0x1p-23f);
      }
      const auto view = [&](std::vector<rotary::float8_e4m3fn>& data) {
        auto made = rotary::dense_nhd(data.data(), 1, heads, dim);
        made.scale = &of_cache;
        return made;
      };
      rotary::append(rotary::thd(k, 1, heads, dim), rotary::thd(v.data(), 1, heads, dim), view(keys), view(cache),
                     rotary::slot_list::range(0, 1), rows, 0);
      for (std::size_t i = 0; i < v.size(); ++i) {
        const volatile double by = of_cache;  // so that this division stays one
        const auto quotient = static_cast<float>(static_cast<double>(v[i]) / by);
        wrong += cache[i].bits != rotary::float8_e4m3fn(quotient).bits;
      }
    }
    EXPECT_EQ(wrong, 0u);
  });
}

}  // namespace
