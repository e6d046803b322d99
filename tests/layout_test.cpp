// What a layout and a slice stand for, by numbers that are known.
#include <gtest/gtest.h>

#include <cmath>
#include <rotary/rotary.hpp>
#include <vector>

#include "every_backend.hpp"

namespace {

using rotary::layout;
using rotary::pairing;

TEST(Layout, ConvertsFromAPairing) {
  constexpr layout by_default;
  static_assert(by_default.pairing == pairing::split_half && by_default.stored == pairing::split_half, "");
  static_assert(by_default.offset == 0, "");
  constexpr layout same = pairing::interleaved;
  static_assert(same.pairing == pairing::interleaved && same.stored == pairing::interleaved && same.offset == 0, "");
  constexpr layout behind(pairing::interleaved, 128);
  static_assert(behind.offset == 128 && behind.stored == pairing::interleaved, "");
  constexpr layout deepseek(pairing::interleaved, 7, pairing::split_half);
  static_assert(deepseek.pairing == pairing::interleaved && deepseek.stored == pairing::split_half, "");
  static_assert(deepseek.offset == 7, "");
}

// x = (1, 2, 3, 4) at position 1, rotary_dim 4, theta 10000: constants of a public fault, computed by others.
class KnownNumbers : public testing::Test {
 protected:
  const rotary::table<double> table_{rotary::make_spectrum(4, 10000.0), 2};

  static void expect(const std::vector<double>& got, const std::vector<double>& expected) {
    ASSERT_EQ(got.size(), expected.size());
    for (std::size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], expected[i], 1e-14) << "channel " << i;
  }
};

TEST_F(KnownNumbers, InPlace) {
  backends::on_each([&](rotary::backend) {
    std::vector<double> x = {1, 2, 3, 4};
    rotary::rotate(rotary::thd(x.data(), 1, 1, 4), table_, 1);
    expect(x, {-1.9841106485555498, 1.9599006674966639, 2.4623779024123157, 4.0197996683349944});
    x = {1, 2, 3, 4};
    rotary::rotate(rotary::thd(x.data(), 1, 1, 4), table_, 1, pairing::interleaved);
    expect(x, {-1.1426396637476533, 1.9220755965441759, 2.9598506679133292, 4.0297995016691611});
  });
}

TEST_F(KnownNumbers, StoredInTheOtherPairing) {
  backends::on_each([&](rotary::backend) {
    const std::vector<double> x = {1, 2, 3, 4};
    std::vector<double> y(4);
    const layout to_half(pairing::interleaved, 0, pairing::split_half);
    rotary::rotate(rotary::thd(x.data(), 1, 1, 4), rotary::thd(y.data(), 1, 1, 4), table_, 1, to_half);
    expect(y, {-1.1426396637476533, 2.9598506679133292, 1.9220755965441759, 4.0297995016691611});
    const layout to_interleaved(pairing::split_half, 0, pairing::interleaved);
    rotary::rotate(rotary::thd(x.data(), 1, 1, 4), rotary::thd(y.data(), 1, 1, 4), table_, 1, to_interleaved);
    expect(y, {-1.9841106485555498, 2.4623779024123157, 1.9599006674966639, 4.0197996683349944});
  });
}

TEST_F(KnownNumbers, BlockBehindOtherChannels) {
  backends::on_each([&](rotary::backend) {
    std::vector<double> x = {9, 8, 7, 1, 2, 3, 4, 6};
    rotary::rotate(rotary::thd(x.data(), 1, 1, 8), table_, 1, layout(pairing::split_half, 3));
    expect(x, {9, 8, 7, -1.9841106485555498, 1.9599006674966639, 2.4623779024123157, 4.0197996683349944, 6});
  });
}

TEST_F(KnownNumbers, NegativePosition) {
  const rotary::table<double> table(rotary::make_spectrum(4, 10000.0), 3, -2);
  backends::on_each([&](rotary::backend) {
    std::vector<double> x = {1, 2, 3, 4};
    rotary::rotate(rotary::thd(x.data(), 1, 1, 4), table, -1);
    expect(x, {3.0647152602918292, 2.0398993341699972, 0.77943593279652265, 3.9798003349983278});
  });
}

// Which (token, head) pairs a part of the work touches: cos is 2, sin 0, and all numbers are 1 before.
std::vector<int> touched(const rotary::slice& part, std::size_t batch, std::size_t tokens, std::size_t heads) {
  const std::vector<float> cos(1, 2.0f), sin(1, 0.0f);
  const rotary::table_view<float> rows = {cos.data(), sin.data(), 100, 1, 0, 1, 0, 2.0};
  std::vector<float> x(batch * tokens * heads * 2, 1.0f);
  rotary::rotate(rotary::bshd(x.data(), batch, tokens, heads, 2), rows, 0, {}, part);
  std::vector<int> result;
  for (std::size_t i = 0; i < x.size(); i += 2) {
    EXPECT_EQ(x[i], x[i + 1]);
    result.push_back(x[i] == 1.0f ? 0 : x[i] == 2.0f ? 1 : -1);
  }
  return result;
}

TEST(Slice, PartsCoverEverythingOnceAndEvenly) {
  for (const std::size_t count : {1u, 2u, 3u, 7u, 29u, 30u, 31u, 1000u}) {
    std::vector<int> times(30, 0);
    std::size_t largest = 0, smallest = 30;
    for (std::size_t index = 0; index < count; ++index) {
      const std::vector<int> part = touched({index, count}, 2, 3, 5);
      std::size_t size = 0;
      for (std::size_t i = 0; i < part.size(); ++i) {
        ASSERT_NE(part[i], -1) << "rotated twice";
        times[i] += part[i];
        size += static_cast<std::size_t>(part[i]);
      }
      largest = size > largest ? size : largest;
      smallest = size < smallest ? size : smallest;
    }
    EXPECT_EQ(times, std::vector<int>(30, 1)) << count << " parts";
    EXPECT_LE(largest - smallest, 1u) << count << " parts";
  }
}

TEST(Slice, ManyMorePartsThanWork) {
  constexpr std::size_t most = static_cast<std::size_t>(-1);
  EXPECT_EQ(touched({29, most}, 2, 3, 5)[29], 1);
  EXPECT_EQ(touched({30, most}, 2, 3, 5), std::vector<int>(30, 0));
  EXPECT_EQ(touched({most - 1, most}, 2, 3, 5), std::vector<int>(30, 0));
}

}  // namespace
