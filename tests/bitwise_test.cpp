// What must not change a single bit of the result: where the result goes, how the work is split, where memory lies, who
// runs it, and what other pairs hold.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <rotary/rotary.hpp>
#include <thread>
#include <type_traits>
#include <vector>

#include "every_backend.hpp"
#include "reference.hpp"
#include "type_names.hpp"

namespace {

using rotary::layout;
using rotary::pairing;
using rotary::slice;
using rotary::tensor_view;

constexpr pairing pairings[] = {pairing::split_half, pairing::interleaved};

template <class T>
using row_of = std::conditional_t<std::is_same<T, double>::value, double, float>;

struct shape {
  std::size_t batch, tokens, heads, head_dim, rotary_dim, offset;
  std::size_t size() const { return batch * tokens * heads * head_dim; }
  std::size_t units() const { return batch * tokens * heads; }
};

// Whole heads and parts, vectors with and without a rest; the last one is larger than a core's caches.
constexpr shape shapes[] = {{1, 1, 32, 128, 128, 0}, {2, 19, 4, 80, 72, 0}, {2, 3, 5, 29, 20, 7},
                            {1, 37, 1, 64, 64, 0},   {3, 2, 3, 6, 6, 0},    {1, 70, 36, 128, 128, 0},
                            {2, 40, 40, 112, 88, 11}};

// [batch, tokens, heads, head_dim], or heads before tokens.
template <class T>
tensor_view<T> view_of(T* data, const shape& of, bool head_major) {
  return head_major ? rotary::bhsd(data, of.batch, of.heads, of.tokens, of.head_dim)
                    : rotary::bshd(data, of.batch, of.tokens, of.heads, of.head_dim);
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

template <class T>
class Bitwise : public testing::Test {
 protected:
  using Row = row_of<T>;

  // Calls check(shape, head_major, how, table) for all of them, on each backend.
  template <class Check>
  void on_all(const Check& check) {
    for (const shape& of : shapes) {
      const rotary::table<Row> table(rotary::make_spectrum(of.rotary_dim, 10000.0), 300, 130900);
      for (const bool head_major : {false, true}) {
        for (const pairing how : pairings) {
          SCOPED_TRACE(testing::Message() << "[" << of.batch << ", " << of.tokens << ", " << of.heads << ", "
                                          << of.head_dim << "], rotary_dim " << of.rotary_dim << ", offset "
                                          << of.offset << (head_major ? ", heads before tokens" : "")
                                          << (how == pairing::interleaved ? ", interleaved" : ", split_half"));
          backends::on_each([&](rotary::backend) { check(of, head_major, layout(how, of.offset), table); });
          if (this->HasFatalFailure()) return;
        }
      }
    }
  }

  static constexpr std::int64_t first = 131000;
};

using Elements = testing::Types<float, double, rotary::float16, rotary::bfloat16>;
TYPED_TEST_SUITE(Bitwise, Elements, type_names);

TYPED_TEST(Bitwise, InPlaceEqualsOutOfPlace) {
  using T = TypeParam;
  this->on_all([&](const shape& of, bool head_major, const layout& how, const auto& table) {
    const std::vector<T> given = reference::numbers<T>(of.size(), 51);
    std::vector<T> in_place = given, elsewhere(of.size());
    rotary::rotate(view_of(in_place.data(), of, head_major), table, this->first, how);
    ASSERT_FALSE(same_bits(in_place, given));
    // Into the other order of memory, and back by a copy that turns nothing.
    rotary::rotate(view_of(given.data(), of, head_major), view_of(elsewhere.data(), of, !head_major), table,
                   this->first, how);
    std::vector<T> back(of.size());
    const rotary::table<row_of<T>> nothing(rotary::make_spectrum(0, 10000.0), 300, 130900);
    rotary::rotate(view_of(static_cast<const T*>(elsewhere.data()), of, !head_major),
                   view_of(back.data(), of, head_major), nothing, this->first);
    ASSERT_TRUE(same_bits(in_place, back));
  });
}

TYPED_TEST(Bitwise, AnyNumberOfSlices) {
  using T = TypeParam;
  this->on_all([&](const shape& of, bool head_major, const layout& how, const auto& table) {
    const std::vector<T> given = reference::numbers<T>(of.size(), 51);
    std::vector<T> whole = given;
    rotary::rotate(view_of(whole.data(), of, head_major), table, this->first, how);
    for (const std::size_t count :
         {std::size_t{2}, std::size_t{3}, std::size_t{7}, of.units() - 1, of.units(), 2 * of.units() + 1}) {
      if (of.units() > 1000 && count > 7 && count != of.units() - 1) continue;
      std::vector<T> in_place = given, elsewhere(of.size());
      for (std::size_t i = count; i-- > 0;) {
        rotary::rotate(view_of(in_place.data(), of, head_major), table, this->first, how, slice{i, count});
        rotary::rotate(view_of(given.data(), of, head_major), view_of(elsewhere.data(), of, head_major), table,
                       this->first, how, slice{i, count});
      }
      ASSERT_TRUE(same_bits(in_place, whole)) << count << " slices in place";
      ASSERT_TRUE(same_bits(elsewhere, whole)) << count << " slices out of place";
    }
  });
}

TYPED_TEST(Bitwise, AnyAlignment) {
  using T = TypeParam;
  this->on_all([&](const shape& of, bool head_major, const layout& how, const auto& table) {
    if (of.units() > 1000) return;
    const std::vector<T> given = reference::numbers<T>(of.size(), 51);
    std::vector<T> whole = given;
    rotary::rotate(view_of(whole.data(), of, head_major), table, this->first, how);
    for (const std::size_t shift : {1u, 2u, 3u, 5u, 8u, 15u, 31u}) {
      std::vector<T> memory(of.size() + 31), elsewhere(of.size() + 31);
      std::copy(given.begin(), given.end(), memory.begin() + static_cast<std::ptrdiff_t>(shift));
      rotary::rotate(view_of(static_cast<const T*>(memory.data() + shift), of, head_major),
                     view_of(elsewhere.data() + 31 - shift, of, head_major), table, this->first, how);
      rotary::rotate(view_of(memory.data() + shift, of, head_major), table, this->first, how);
      ASSERT_EQ(std::memcmp(memory.data() + shift, whole.data(), of.size() * sizeof(T)), 0) << "at element " << shift;
      ASSERT_EQ(std::memcmp(elsewhere.data() + 31 - shift, whole.data(), of.size() * sizeof(T)), 0) << shift;
    }
  });
}

TYPED_TEST(Bitwise, EachSequenceAndEachHeadByItself) {
  using T = TypeParam;
  this->on_all([&](const shape& of, bool head_major, const layout& how, const auto& table) {
    if (of.units() > 1000) return;
    const std::vector<T> given = reference::numbers<T>(of.size(), 51);
    std::vector<T> whole = given, parts = given;
    rotary::rotate(view_of(whole.data(), of, head_major), table, this->first, how);
    const tensor_view<T> all = view_of(parts.data(), of, head_major);
    for (std::size_t b = 0; b < of.batch; ++b) {
      tensor_view<T> sequence = all;
      sequence.data += static_cast<std::ptrdiff_t>(b) * all.batch_stride;
      sequence.batch = 1;
      for (std::size_t h = 0; h < of.heads; ++h) {
        rotary::rotate(rotary::heads(sequence, h, 1), table, this->first, how);
      }
    }
    ASSERT_TRUE(same_bits(parts, whole));
  });
}

TYPED_TEST(Bitwise, AHundredTimes) {
  using T = TypeParam;
  this->on_all([&](const shape& of, bool head_major, const layout& how, const auto& table) {
    const std::vector<T> given = reference::numbers<T>(of.size(), 51);
    std::vector<T> whole = given;
    rotary::rotate(view_of(whole.data(), of, head_major), table, this->first, how);
    const int times = of.units() > 1000 ? 5 : 100;
    for (int i = 0; i < times; ++i) {
      std::vector<T> again = given;
      rotary::rotate(view_of(again.data(), of, head_major), table, this->first, how);
      ASSERT_TRUE(same_bits(again, whole)) << "call " << i;
    }
  });
}

TYPED_TEST(Bitwise, TwoThreads) {
  using T = TypeParam;
  this->on_all([&](const shape& of, bool head_major, const layout& how, const auto& table) {
    const std::vector<T> given = reference::numbers<T>(of.size(), 51);
    std::vector<T> whole = given, in_place = given, elsewhere(of.size());
    rotary::rotate(view_of(whole.data(), of, head_major), table, this->first, how);
    const auto work = [&](std::size_t index) {
      rotary::rotate(view_of(in_place.data(), of, head_major), table, this->first, how, slice{index, 2});
      rotary::rotate(view_of(given.data(), of, head_major), view_of(elsewhere.data(), of, head_major), table,
                     this->first, how, slice{index, 2});
    };
    std::thread other(work, 1);
    work(0);
    other.join();
    ASSERT_TRUE(same_bits(in_place, whole));
    ASSERT_TRUE(same_bits(elsewhere, whole));
  });
}

// Noise of any bits, many of them NaNs with a payload, around the block.
TYPED_TEST(Bitwise, ChannelsOutsideTheBlockStay) {
  using T = TypeParam;
  this->on_all([&](const shape& of, bool head_major, const layout& how, const auto& table) {
    if (of.units() > 1000 || of.rotary_dim == of.head_dim) return;
    std::vector<T> given = reference::numbers<T>(of.size(), 51);
    reference::random_bits random(52);
    const auto outside = [&](std::size_t i) { return i % of.head_dim - of.offset >= of.rotary_dim; };
    std::size_t channels = 0;
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (!outside(i)) continue;
      ++channels;
      for (std::size_t byte = 0; byte < sizeof(T); byte += 2) {
        const std::uint16_t bits =
            static_cast<std::uint16_t>(byte + 2 == sizeof(T) ? random.next16() | 0x7f80u : random.next16());
        std::memcpy(reinterpret_cast<unsigned char*>(&given[i]) + byte, &bits, 2);
      }
    }
    ASSERT_EQ(channels, of.units() * (of.head_dim - of.rotary_dim));
    std::vector<T> x = given, y(of.size());
    const auto check = [&](const std::vector<T>& got) {
      for (std::size_t i = 0; i < got.size(); ++i) {
        if (outside(i)) {
          ASSERT_EQ(std::memcmp(&got[i], &given[i], sizeof(T)), 0) << "channel " << i % of.head_dim;
        }
      }
    };
    rotary::rotate(view_of(x.data(), of, head_major), table, this->first, how, {}, 3.0);
    check(x);
    rotary::rotate_adjoint(view_of(given.data(), of, head_major), view_of(y.data(), of, head_major), table, this->first,
                           how, {}, 3.0);
    check(y);
    rotary::rotate_inverse(view_of(x.data(), of, head_major), table, this->first, how, {}, 3.0);
    check(x);
  });
}

// A NaN or an infinity in one pair changes no bit of another.
TYPED_TEST(Bitwise, WhatIsNotFiniteStaysInItsPair) {
  using T = TypeParam;
  constexpr std::size_t heads = 3;
  for (const std::size_t d : {6u, 20u, 72u, 128u}) {
    const std::int32_t position = 99;
    rotary::step_table<row_of<T>> step(rotary::make_spectrum(d, 10000.0));
    step.assign(&position, 1);
    const std::vector<T> given = reference::numbers<T>(heads * d, 51);
    for (const pairing read : pairings) {
      for (const pairing write : pairings) {
        const bool in_place = read == write;
        const auto rotated = [&](const std::vector<T>& x) {
          std::vector<T> y = x;
          if (in_place) {
            rotary::rotate(rotary::thd(y.data(), 1, heads, d), step, read);
          } else {
            rotary::rotate(rotary::thd(x.data(), 1, heads, d), rotary::thd(y.data(), 1, heads, d), step,
                           layout(read, 0, write));
          }
          return y;
        };
        backends::on_each([&](rotary::backend which) {
          const std::vector<T> clean = rotated(given);
          for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
            for (std::size_t j = 0; j < d / 2; ++j) {
              std::vector<T> x = given;
              const bool from_interleaved = read == pairing::interleaved,
                         to_interleaved = write == pairing::interleaved;
              const std::size_t at = j % 2 == 0 ? reference::first_channel(from_interleaved, j)
                                                : reference::second_channel(from_interleaved, d / 2, j);
              x[d + at] = static_cast<T>(bad);
              const std::vector<T> y = rotated(x);
              const std::size_t a = d + reference::first_channel(to_interleaved, j);
              const std::size_t b = d + reference::second_channel(to_interleaved, d / 2, j);
              for (std::size_t i = 0; i < y.size(); ++i) {
                const bool same = std::memcmp(&y[i], &clean[i], sizeof(T)) == 0;
                ASSERT_EQ(same, i != a && i != b)
                    << "rotary_dim " << d << ", pair " << j << ", channel " << i << ", " << rotary::backend_name(which);
              }
              ASSERT_FALSE(std::isfinite(static_cast<float>(y[a])));
              ASSERT_FALSE(std::isfinite(static_cast<float>(y[b])));
            }
          }
        });
        if (this->HasFatalFailure()) return;
      }
    }
  }
}

// Rows give the same bits whichever way an engine keeps them.
TYPED_TEST(Bitwise, AnyFormOfRows) {
  using T = TypeParam;
  this->on_all([&](const shape& of, bool head_major, const layout& how, const auto& table) {
    if (of.units() > 1000) return;
    const auto rows = table.view();
    std::vector<row_of<T>> pairwise(2 * rows.rows * rows.pairs), twice(pairwise.size());
    for (std::size_t i = 0; i < rows.rows * rows.pairs; ++i) {
      const auto at =
          static_cast<std::ptrdiff_t>(i / rows.pairs) * rows.row_stride + static_cast<std::ptrdiff_t>(i % rows.pairs);
      pairwise[2 * i] = rows.cos[at];
      pairwise[2 * i + 1] = twice[2 * i] = twice[2 * i + 1] = rows.sin[at];
    }
    const std::vector<T> given = reference::numbers<T>(of.size(), 51);
    std::vector<T> expected = given;
    rotary::rotate(view_of(expected.data(), of, head_major), table, this->first, how);
    for (const auto* sin : {pairwise.data() + 1, twice.data(), twice.data() + 1}) {
      auto other = rows;
      other.cos = pairwise.data();
      other.sin = sin;
      other.pair_step = 2;
      other.row_stride = static_cast<std::ptrdiff_t>(2 * rows.pairs);
      std::vector<T> x = given;
      rotary::rotate(view_of(x.data(), of, head_major), other, this->first, how);
      ASSERT_TRUE(same_bits(x, expected));
    }
  });
}

// One row for all tokens (row_stride 0) is as many equal rows.
TYPED_TEST(Bitwise, ARowThatAllTokensShare) {
  using T = TypeParam;
  using row = row_of<T>;
  for (const shape& of : shapes) {
    const std::size_t pairs = of.rotary_dim / 2;
    const rotary::table<row> table(rotary::make_spectrum(of.rotary_dim, 10000.0), 1, 777);
    const rotary::table_view<row> shared = {table.view().cos, table.view().sin, of.tokens, pairs, 0, 1, 777};
    std::vector<row> rows;
    for (std::size_t t = 0; t < of.tokens; ++t) {
      rows.insert(rows.end(), shared.cos, shared.cos + pairs);
      rows.insert(rows.end(), shared.sin, shared.sin + pairs);
    }
    const rotary::table_view<row> equal = {
        rows.data(), rows.data() + pairs, of.tokens, pairs, static_cast<std::ptrdiff_t>(2 * pairs), 1, 777};
    const std::vector<T> numbers = reference::numbers<T>(of.size(), 51);
    for (const pairing how : pairings) {
      for (const bool head_major : {false, true}) {
        for (const double scale : {1.0, 0.5}) {
          std::vector<T> want = numbers, got = numbers;
          rotary::rotate(view_of(want.data(), of, head_major), equal, 777, {how, of.offset}, {}, scale);
          for (std::size_t i = 0; i < 3; ++i) {
            rotary::rotate(view_of(got.data(), of, head_major), shared, 777, {how, of.offset}, {i, 3}, scale);
          }
          EXPECT_TRUE(same_bits(want, got)) << of.head_dim << " " << head_major << " " << scale;
          const auto from = view_of(numbers.data(), of, head_major);  // into memory of the other order
          rotary::rotate(from, view_of(want.data(), of, !head_major), equal, 777, {how, of.offset}, {}, scale);
          rotary::rotate(from, view_of(got.data(), of, !head_major), shared, 777, {how, of.offset}, {}, scale);
          EXPECT_TRUE(same_bits(want, got)) << of.head_dim << " " << head_major << " " << scale;
        }
      }
    }
  }
}

// Two threads that rotate different tensors by one table, in place and from one type into another, do not meet.
TEST(Threads, ShareATable) {
  const rotary::table<float> table(rotary::make_spectrum(64, 10000.0), 64);
  const std::vector<float> given = reference::numbers<float>(64 * 4 * 64, 51);
  std::vector<float> expected = given;
  rotary::rotate(rotary::thd(expected.data(), 64, 4, 64), table, 0);
  std::vector<std::vector<float>> results(4, given);
  std::vector<std::thread> threads;
  for (std::vector<float>& x : results) {
    threads.emplace_back([&table, &x, &given] {
      for (int i = 0; i < 50; ++i) {
        x = given;
        rotary::rotate(rotary::thd(x.data(), 64, 4, 64), table, 0);
      }
    });
  }
  for (std::thread& t : threads) t.join();
  for (const std::vector<float>& x : results) EXPECT_EQ(x, expected);
}

}  // namespace
