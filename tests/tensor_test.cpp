// The makers of views: which element is where, and which sizes are refused.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <numeric>
#include <rotary/cache.hpp>
#include <rotary/tensor.hpp>
#include <type_traits>
#include <vector>

#include "refusals.hpp"

namespace {

using refusals::expect_refused;
using rotary::tensor_view;

constexpr std::size_t batch = 2, tokens = 3, heads = 5, head_dim = 4;

std::vector<int> numbered(std::size_t size) {
  std::vector<int> result(size);
  std::iota(result.begin(), result.end(), 0);
  return result;
}

template <class T>
T& at(const tensor_view<T>& x, std::size_t b, std::size_t t, std::size_t h, std::size_t d) {
  return x.data[static_cast<std::ptrdiff_t>(b) * x.batch_stride + static_cast<std::ptrdiff_t>(t) * x.token_stride +
                static_cast<std::ptrdiff_t>(h) * x.head_stride + static_cast<std::ptrdiff_t>(d)];
}

// Compares each element's number with the one that `number` gives for (b, t, h, d).
template <class Number>
void expect_elements(const tensor_view<int>& x, const Number& number) {
  for (std::size_t b = 0; b < x.batch; ++b) {
    for (std::size_t t = 0; t < x.tokens; ++t) {
      for (std::size_t h = 0; h < x.heads; ++h) {
        for (std::size_t d = 0; d < x.head_dim; ++d) {
          ASSERT_EQ(at(x, b, t, h, d), static_cast<int>(number(b, t, h, d)))
              << b << ", " << t << ", " << h << ", " << d;
        }
      }
    }
  }
}

void expect_sizes(const tensor_view<int>& x, std::size_t b, std::size_t t, std::size_t h, std::size_t d) {
  EXPECT_EQ(x.batch, b);
  EXPECT_EQ(x.tokens, t);
  EXPECT_EQ(x.heads, h);
  EXPECT_EQ(x.head_dim, d);
}

TEST(Tensor, BshdIsBatchTokensHeadsChannels) {
  std::vector<int> memory = numbered(batch * tokens * heads * head_dim);
  const tensor_view<int> x = rotary::bshd(memory.data(), batch, tokens, heads, head_dim);
  expect_sizes(x, batch, tokens, heads, head_dim);
  expect_elements(x, [](std::size_t b, std::size_t t, std::size_t h, std::size_t d) {
    return ((b * tokens + t) * heads + h) * head_dim + d;
  });
}

TEST(Tensor, BhsdIsBatchHeadsTokensChannels) {
  std::vector<int> memory = numbered(batch * tokens * heads * head_dim);
  const tensor_view<int> x = rotary::bhsd(memory.data(), batch, heads, tokens, head_dim);
  expect_sizes(x, batch, tokens, heads, head_dim);
  expect_elements(x, [](std::size_t b, std::size_t t, std::size_t h, std::size_t d) {
    return ((b * heads + h) * tokens + t) * head_dim + d;
  });
}

TEST(Tensor, ThdIsOneSequence) {
  std::vector<int> memory = numbered(tokens * heads * head_dim);
  const tensor_view<int> x = rotary::thd(memory.data(), tokens, heads, head_dim);
  expect_sizes(x, 1, tokens, heads, head_dim);
  expect_elements(
      x, [](std::size_t, std::size_t t, std::size_t h, std::size_t d) { return (t * heads + h) * head_dim + d; });
}

TEST(Tensor, PackedQkvGivesQAndK) {
  constexpr std::size_t q = 3, kv = 1, all = q + 2 * kv;
  std::vector<int> memory = numbered(batch * tokens * all * head_dim);
  const tensor_view<int> qkv = rotary::bshd(memory.data(), batch, tokens, all, head_dim);
  expect_sizes(rotary::heads(qkv, 0, q), batch, tokens, q, head_dim);
  expect_elements(rotary::heads(qkv, 0, q), [](std::size_t b, std::size_t t, std::size_t h, std::size_t d) {
    return ((b * tokens + t) * all + h) * head_dim + d;
  });
  expect_sizes(rotary::heads(qkv, q, kv), batch, tokens, kv, head_dim);
  expect_elements(rotary::heads(qkv, q, kv), [](std::size_t b, std::size_t t, std::size_t h, std::size_t d) {
    return ((b * tokens + t) * all + q + h) * head_dim + d;
  });
}

TEST(Tensor, HeadsOfHeadMajorMemory) {
  std::vector<int> memory = numbered(batch * tokens * heads * head_dim);
  const tensor_view<int> x = rotary::heads(rotary::bhsd(memory.data(), batch, heads, tokens, head_dim), 2, 3);
  expect_sizes(x, batch, tokens, 3, head_dim);
  expect_elements(x, [](std::size_t b, std::size_t t, std::size_t h, std::size_t d) {
    return ((b * heads + h + 2) * tokens + t) * head_dim + d;
  });
}

TEST(Tensor, ChannelsKeepTheStrides) {
  std::vector<int> memory = numbered(batch * tokens * heads * 192);
  const tensor_view<int> x = rotary::channels(rotary::bshd(memory.data(), batch, tokens, heads, 192), 128, 64);
  expect_sizes(x, batch, tokens, heads, 64);
  expect_elements(x, [](std::size_t b, std::size_t t, std::size_t h, std::size_t d) {
    return ((b * tokens + t) * heads + h) * 192 + 128 + d;
  });
}

TEST(Cache, ChannelsKeepTheStridesAndTheScale) {
  std::vector<rotary::float8_e4m3fn> memory(3 * 4 * 2 * 24);
  const float scale[2] = {0.5f, 2.0f};
  auto whole = rotary::paged_hnd(memory.data(), 3, 2, 4, 24);
  whole.scale = scale;
  whole.scale_stride = 1;
  const auto part = rotary::channels(whole, 16, 8);
  EXPECT_EQ(part.data, memory.data() + 16);
  EXPECT_EQ(part.head_dim, 8u);
  EXPECT_EQ(part.blocks, 3u);
  EXPECT_EQ(part.block_size, 4u);
  EXPECT_EQ(part.heads, 2u);
  EXPECT_EQ(part.block_stride, 192);
  EXPECT_EQ(part.slot_stride, 24);
  EXPECT_EQ(part.head_stride, 96);
  EXPECT_EQ(part.scale, scale);
  EXPECT_EQ(part.scale_stride, 1);
}

TEST(Cache, ChannelsOfQ80AreWholeBlocks) {
  std::vector<rotary::q8_0> memory(5 * 3);
  const auto whole = rotary::dense_nhd(memory.data(), 5, 1, 96);
  const auto part = rotary::channels(whole, 32, 64);
  EXPECT_EQ(part.data, memory.data() + 1);
  EXPECT_EQ(part.head_dim, 64u);
  EXPECT_EQ(part.slot_stride, 3);
  expect_refused([&] { rotary::channels(whole, 16, 64); }, "channels", {"first is 16", "count is 64", "of 32"});
  expect_refused([&] { rotary::channels(whole, 32, 48); }, "channels", {"first is 32", "count is 48", "of 32"});
}

TEST(Tensor, ReversedHeads) {
  std::vector<int> memory = numbered(tokens * heads * head_dim);
  tensor_view<int> x = rotary::thd(memory.data() + (heads - 1) * head_dim, tokens, heads, head_dim);
  x.head_stride = -x.head_stride;
  const tensor_view<int> part = rotary::heads(x, 1, 2);
  expect_elements(part, [](std::size_t, std::size_t t, std::size_t h, std::size_t d) {
    return (t * heads + heads - 1 - (h + 1)) * head_dim + d;
  });
}

TEST(Tensor, WritableViewsServeAsReadable) {
  std::vector<float> memory(24);
  const tensor_view<const float> x = rotary::thd(memory.data(), 2, 3, 4);
  EXPECT_EQ(x.data, memory.data());
  EXPECT_EQ(x.token_stride, 12);
  EXPECT_EQ(x.head_stride, 4);
  EXPECT_TRUE((std::is_convertible<tensor_view<float>, tensor_view<const float>>::value));
  EXPECT_FALSE((std::is_convertible<tensor_view<const float>, tensor_view<float>>::value));
  EXPECT_FALSE((std::is_convertible<tensor_view<float>, tensor_view<double>>::value));
}

TEST(Tensor, SizesOfZeroAllowNullPointers) {
  float* const none = nullptr;
  EXPECT_EQ(rotary::bshd(none, 2, 0, 32, 128).batch_stride, 0);
  EXPECT_EQ(rotary::bhsd(none, 2, 32, 0, 128).head_stride, 0);
  EXPECT_EQ(rotary::heads(rotary::thd(none, 4, 0, 128), 0, 0).data, nullptr);
  EXPECT_EQ(rotary::heads(rotary::thd(none, 0, 40, 128), 32, 4).data, nullptr);
  EXPECT_EQ(rotary::channels(rotary::thd(none, 0, 40, 192), 128, 64).data, nullptr);
  EXPECT_EQ(rotary::channels(rotary::dense_nhd(none, 0, 1, 192), 128, 64).data, nullptr);
}

TEST(Tensor, StridesOfMoreThan32Bits) {
  float* const none = nullptr;
  EXPECT_EQ(rotary::bshd(none, 3, 524289, 32, 128).batch_stride, std::ptrdiff_t{524289} * 4096);
  EXPECT_EQ(rotary::bhsd(none, 3, 32, 524289, 128).head_stride, std::ptrdiff_t{524289} * 128);
  EXPECT_EQ(rotary::bshd(none, 1, 65536, 512, 128).batch_stride, std::ptrdiff_t{1} << 32);
}

TEST(Tensor, RefusesChannelsAndHeadsThatAreNotThere) {
  std::vector<float> memory(2 * 3 * 8);
  const tensor_view<float> x = rotary::thd(memory.data(), 2, 3, 8);
  expect_refused([&] { rotary::channels(x, 3, 6); }, "channels", {"first is 3", "count is 6", "head_dim = 8"});
  expect_refused([&] { rotary::channels(x, 9, 0); }, "channels", {"first is 9", "head_dim = 8"});
  expect_refused([&] { rotary::heads(x, 1, 3); }, "heads", {"first is 1", "count is 3", "heads = 3"});
  expect_refused([&] { rotary::heads(x, 4, 0); }, "heads", {"first is 4", "heads = 3"});
  // first + count wraps around
  constexpr std::size_t most = std::numeric_limits<std::size_t>::max();
  expect_refused([&] { rotary::channels(x, 2, most); }, "channels", {"18446744073709551615"});
  expect_refused([&] { rotary::heads(x, most, 2); }, "heads", {"18446744073709551615"});
  EXPECT_EQ(rotary::channels(x, 8, 0).head_dim, 0u);
  const auto cache = rotary::dense_nhd(memory.data(), 2, 3, 8);
  expect_refused([&] { rotary::channels(cache, 3, 6); }, "channels", {"first is 3", "count is 6", "head_dim = 8"});
  expect_refused([&] { rotary::channels(cache, 2, most); }, "channels", {"18446744073709551615"});
  EXPECT_EQ(rotary::channels(cache, 8, 0).head_dim, 0u);
  EXPECT_EQ(rotary::heads(x, 3, 0).heads, 0u);
}

TEST(Tensor, RefusesSizesThatOverflow) {
  float x = 0;
  constexpr std::size_t big = std::size_t{1} << 33;
  expect_refused([&] { rotary::bshd(&x, 1, 1, big, big); }, "bshd", {"8589934592 x 8589934592"});
  expect_refused([&] { rotary::bshd(&x, 1, big, big, 4); }, "bshd", {"8589934592 x 34359738368"});
  expect_refused([&] { rotary::bshd(&x, big, big, 1, 4); }, "bshd", {"8589934592 x 34359738368"});
  expect_refused([&] { rotary::bhsd(&x, 1, 1, big, big); }, "bhsd", {"8589934592 x 8589934592"});
  expect_refused([&] { rotary::bhsd(&x, 1, big, big, 4); }, "bhsd", {"8589934592 x 34359738368"});
  expect_refused([&] { rotary::bhsd(&x, big, 1, big, 4); }, "bhsd", {"8589934592 x 34359738368"});
  expect_refused([&] { rotary::thd(&x, big, big, 4); }, "thd", {"8589934592"});
  // The bytes must fit, too: 2^61 doubles do not.
  double y = 0;
  expect_refused([&] { rotary::thd(&y, 1, 1, std::size_t{1} << 61); }, "thd", {"2305843009213693952"});
}

}  // namespace
