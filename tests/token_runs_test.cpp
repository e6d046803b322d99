// Tensors of many tokens: where tokens lie closer together than heads, a kernel takes runs of tokens whose rows follow
// each other. Whatever the runs, the result is that of one call per token, bit for bit.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <rotary/rotary.hpp>
#include <string>
#include <vector>

#include "every_backend.hpp"
#include "type_names.hpp"

namespace {

using rotary::bfloat16;
using rotary::float16;
using rotary::pairing;

constexpr std::size_t batch = 2, heads = 3, head_dim = 40, rotary_dim = 36, offset = 2, tokens = 700;

template <class T>
std::vector<T> numbers(std::size_t count) {
  std::vector<T> values(count);
  std::uint32_t seed = 7;
  for (T& value : values) {
    seed = 1664525u * seed + 1013904223u;
    value = static_cast<T>(static_cast<float>(seed >> 8) / 8388608.0f - 1.0f);
  }
  return values;
}

template <class Data, class Row>
struct types {
  using data = Data;
  using row = Row;
};

struct names_of_both {
  template <class Types>
  static std::string GetName(int) {
    return std::string(type_name<typename Types::data>()) + "_by_" + type_name<typename Types::row>();
  }
};

template <class Types>
class TokenRuns : public testing::Test {};
using EveryPair =
    testing::Types<types<float, float>, types<float, bfloat16>, types<float, float16>, types<float, double>,
                   types<double, float>, types<double, double>, types<bfloat16, float>, types<bfloat16, bfloat16>,
                   types<float16, float>, types<float16, float16>>;
TYPED_TEST_SUITE(TokenRuns, EveryPair, names_of_both);

// The same tokens, one call each; `where(b, t)` is the position of token t in sequence b.
template <class T, class Table, class Where>
void one_by_one(const rotary::tensor_view<T>& x, const Table& table, const Where& where, pairing how, double scale) {
  for (std::size_t b = 0; b < x.batch; ++b) {
    for (std::size_t t = 0; t < x.tokens; ++t) {
      T* const first =
          x.data + static_cast<std::ptrdiff_t>(b) * x.batch_stride + static_cast<std::ptrdiff_t>(t) * x.token_stride;
      const rotary::tensor_view<T> token = {first, 1, 1, x.heads, x.head_dim, 0, 0, x.head_stride};
      rotary::rotate(token, table, where(b, t), {how, offset}, {}, scale);
    }
  }
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

TYPED_TEST(TokenRuns, AreOneCallPerToken) {
  using T = typename TypeParam::data;
  const rotary::table<typename TypeParam::row> table(rotary::make_spectrum(rotary_dim, 10000.0), 5000, -1000);
  // Runs of 1, 2, 3, … following positions, so that they begin and end at every place in a run of the kernel.
  std::vector<std::int64_t> ids;
  for (std::int64_t run = 1; ids.size() < batch * tokens; ++run) {
    for (std::int64_t i = 0; i < run && ids.size() < batch * tokens; ++i) ids.push_back((run * 97) % 3000 - 900 + i);
  }
  const std::vector<T> input = numbers<T>(batch * tokens * heads * head_dim);
  backends::on_each([&](rotary::backend) {
    for (const pairing how : {pairing::split_half, pairing::interleaved}) {
      for (const double scale : {1.0, 0.75}) {
        std::vector<T> got = input, expected = input;
        rotary::rotate(rotary::bhsd(got.data(), batch, heads, tokens, head_dim), table, 3, {how, offset}, {}, scale);
        one_by_one(
            rotary::bhsd(expected.data(), batch, heads, tokens, head_dim), table,
            [](std::size_t, std::size_t t) { return 3 + static_cast<std::int64_t>(t); }, how, scale);
        EXPECT_TRUE(same_bits(got, expected)) << "bhsd, one offset";

        const auto id = [&](std::size_t b, std::size_t t) { return ids[b * tokens + t]; };
        got = expected = input;
        rotary::rotate(rotary::bhsd(got.data(), batch, heads, tokens, head_dim), table,
                       rotary::positions(ids.data(), ids.size()), {how, offset}, {}, scale);
        one_by_one(rotary::bhsd(expected.data(), batch, heads, tokens, head_dim), table, id, how, scale);
        EXPECT_TRUE(same_bits(got, expected)) << "bhsd, an id per token";

        got = expected = input;
        rotary::rotate(rotary::bshd(got.data(), batch, tokens, 1, heads * head_dim), table,
                       rotary::positions(ids.data(), ids.size()), {how, offset}, {}, scale);
        one_by_one(rotary::bshd(expected.data(), batch, tokens, 1, heads * head_dim), table, id, how, scale);
        EXPECT_TRUE(same_bits(got, expected)) << "one head";
      }
    }
  });
}

TYPED_TEST(TokenRuns, OutOfPlaceCopyTheChannelsOutside) {
  using T = typename TypeParam::data;
  const rotary::table<typename TypeParam::row> table(rotary::make_spectrum(rotary_dim, 10000.0), tokens);
  const std::vector<T> input = numbers<T>(heads * tokens * head_dim);
  backends::on_each([&](rotary::backend) {
    std::vector<T> got(input.size()), expected = input;
    rotary::rotate(rotary::bhsd(input.data(), 1, heads, tokens, head_dim),
                   rotary::bhsd(got.data(), 1, heads, tokens, head_dim), table, 0, {pairing::split_half, offset});
    rotary::rotate(rotary::bhsd(expected.data(), 1, heads, tokens, head_dim), table, 0, {pairing::split_half, offset});
    EXPECT_TRUE(same_bits(got, expected));
  });
}

// More pairs than a row's room on the kernel's stack, so that a head is rotated in parts.
TYPED_TEST(TokenRuns, OfVeryWideHeads) {
  using T = typename TypeParam::data;
  constexpr std::size_t wide = 2 * 5003, few = 3;
  const rotary::spectrum of = rotary::make_spectrum(wide, 10000.0);
  const rotary::table<typename TypeParam::row> table(of, few + 40);
  const std::vector<T> input = numbers<T>(few * 2 * wide);
  backends::on_each([&](rotary::backend) {
    for (const pairing how : {pairing::split_half, pairing::interleaved}) {
      std::vector<T> got = input;
      rotary::rotate(rotary::bhsd(got.data(), 1, 2, few, wide), table, 40, how, {}, 0.5);
      for (std::size_t h = 0; h < 2; ++h) {
        for (std::size_t t = 0; t < few; ++t) {
          const std::size_t head = (h * few + t) * wide;
          for (std::size_t j = 0; j < wide / 2; ++j) {
            const std::size_t a = head + (how == pairing::split_half ? j : 2 * j);
            const std::size_t b = how == pairing::split_half ? a + wide / 2 : a + 1;
            const long double angle = static_cast<long double>(40 + t) * static_cast<long double>(of.inv_freq()[j]);
            const long double x = static_cast<long double>(static_cast<double>(input[a]));
            const long double y = static_cast<long double>(static_cast<double>(input[b]));
            const double expected = static_cast<double>(0.5L * (x * std::cos(angle) - y * std::sin(angle)));
            const double bound = sizeof(T) == 2 || sizeof(typename TypeParam::row) == 2 ? 0x1p-7 : 0x1p-22;
            ASSERT_NEAR(static_cast<double>(got[a]), expected, bound)
                << "head " << h << " token " << t << " pair " << j;
          }
        }
      }
    }
  });
}

}  // namespace
