// append over types, layouts and slots: against the rotation's definition in double, and against rotate bit for bit.
// Two programs instantiate it, for numbers and for quantised caches, to compile side by side.
#ifndef ROTARY_TESTS_APPEND_SCENES_HPP
#define ROTARY_TESTS_APPEND_SCENES_HPP

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <rotary/rotary.hpp>
#include <string>
#include <vector>

#include "caches.hpp"
#include "every_backend.hpp"
#include "reference.hpp"

namespace append_scenes {

using caches::filled;
using caches::is_quantised;
using caches::numbers;
using rotary::layout;
using rotary::pairing;
using rotary::slot_list;
using rotary::spectrum;
using rotary::step_table;

template <class From, class To>
struct types {
  using from = From;
  using to = To;
};

template <class Types>
class Append : public testing::Test {};
struct names {
  template <class Types>
  static std::string GetName(int) {
    return std::string(caches::name_of<typename Types::from>()) + "_to_" + caches::name_of<typename Types::to>();
  }
};
TYPED_TEST_SUITE_P(Append);

// The shape of one call. Slots are scattered, some in order, and one token in seven is left out.
struct scene {
  const char* order;
  std::size_t batch, tokens, heads, head_dim, rotary_dim;
  layout how;
  std::size_t blocks, block_size;

  std::size_t all() const { return batch * tokens; }
  std::vector<std::int64_t> slots() const {
    std::vector<std::int64_t> result;
    for (std::size_t i = 0; i < all(); ++i) {
      const std::size_t run = i / 5, runs = blocks * block_size / 5;
      result.push_back(static_cast<std::int64_t>((run * 13 % runs) * 5 + i % 5));  // 13 divides no number of runs
      if (i % 7 == 6) result.back() = slot_list::skip;
    }
    return result;
  }
  std::vector<std::int64_t> positions() const {
    std::vector<std::int64_t> result;
    for (std::size_t i = 0; i < all(); ++i) {
      const std::int64_t t = static_cast<std::int64_t>(i);
      result.push_back(t % 11 < 6 ? 100 + t : 70000 - t * t * 3);
    }
    return result;
  }
  spectrum turns() const { return spectrum(reference::inverse_frequencies(rotary_dim, 10000.0), 1.25); }
};

inline const std::vector<scene>& scenes() {
  using p = pairing;
  static const std::vector<scene> all = {
      {"nhd", 1, 23, 2, 64, 64, p::split_half, 5, 16},
      {"hnd", 2, 19, 3, 96, 96, p::interleaved, 9, 16},
      {"strided", 1, 31, 3, 96, 36, {p::split_half, 22}, 4, 23},
      {"hnd", 3, 11, 1, 160, 64, {p::interleaved, 96}, 1, 80},
      {"strided", 2, 9, 2, 32, 32, {p::interleaved, 0, p::split_half}, 3, 11},
      {"nhd", 1, 17, 5, 64, 10, {p::split_half, 50, p::interleaved}, 6, 8},
  };
  return all;
}

template <class T>
rotary::tensor_view<const T> view_of(const std::vector<T>& x, const scene& s, std::size_t head_dim) {
  return rotary::bhsd(x.data(), s.batch, s.heads, s.tokens, head_dim);
}

// The channels of token i and head h of a [batch, heads, tokens, head_dim] tensor.
template <class T>
const T* head_of(const std::vector<T>& x, const scene& s, std::size_t i, std::size_t h, std::size_t head_dim) {
  return x.data() + (((i / s.tokens) * s.heads + h) * s.tokens + i % s.tokens) * head_dim;
}

// Rotated in double, from the definition.
inline std::vector<double> rotated(const std::vector<double>& in, const scene& s, const reference::rows<double>& rows,
                                   std::size_t token) {
  std::vector<double> out = in;
  reference::rotate_block(in.data() + s.how.offset, out.data() + s.how.offset, rows.pairs,
                          rows.cos.data() + token * rows.pairs, rows.sin.data() + token * rows.pairs,
                          s.how.pairing == pairing::interleaved, s.how.stored == pairing::interleaved);
  return out;
}

TYPED_TEST_P(Append, PutsTheRotationOfEveryKeyIntoItsSlot) {
  using From = typename TypeParam::from;
  using To = typename TypeParam::to;
  for (const scene& s : scenes()) {
    SCOPED_TRACE(s.order + std::to_string(s.head_dim));
    const std::vector<From> k = numbers<From>(s.all() * s.heads * s.head_dim, 5, 3.0);
    const std::vector<std::int64_t> slots = s.slots(), positions = s.positions();
    const spectrum of = s.turns();
    const reference::rows<double> rows(of.inv_freq(), positions, 1.25);
    step_table<float> step(of);
    step.assign(positions.data(), positions.size());
    filled<To> cache(s.order, s.blocks, s.block_size, s.heads, s.head_dim);
    backends::on_each([&](rotary::backend) {
      cache.reset();
      rotary::append(view_of(k, s, s.head_dim), cache.view, {slots.data(), slots.size()}, step, s.how);
      std::vector<bool> used(s.blocks * s.block_size);
      double worst = 0.0;
      for (std::size_t i = 0; i < s.all(); ++i) {
        if (slots[i] < 0) continue;
        const std::size_t slot = static_cast<std::size_t>(slots[i]);
        used[slot] = true;
        for (std::size_t h = 0; h < s.heads; ++h) {
          const std::vector<double> in = caches::decode(head_of(k, s, i, h, s.head_dim), s.head_dim, 1.0f);
          const std::vector<double> exact = rotated(in, s, rows, i);
          const float scale = cache.scale_of(h);
          const std::vector<double> got = caches::decode(cache.head(slot, h), s.head_dim, scale);
          for (std::size_t c = 0; c < s.head_dim; ++c) {
            const std::size_t block = c / 32 * 32;
            double largest = 0.0;  // in its block of q8_0
            for (std::size_t n = block; n < block + 32; ++n) largest = std::fmax(largest, std::fabs(exact[n]));
            const double right = caches::expected<To>(exact[c], scale);
            const double share = std::fabs(got[c] - right) / caches::permitted<To>(right, largest, scale);
            worst = reference::larger(worst, share);
          }
        }
      }
      EXPECT_LE(worst, 1.0);
      std::size_t touched = 0;
      for (std::size_t slot = 0; slot < used.size(); ++slot) {
        for (std::size_t h = 0; h < s.heads && !used[slot]; ++h) {
          const unsigned char* const bytes = reinterpret_cast<const unsigned char*>(cache.head(slot, h));
          touched += static_cast<std::size_t>(
              std::count_if(bytes, bytes + cache.head_bytes(), [](unsigned char b) { return b != 0xa5; }));
        }
      }
      EXPECT_EQ(touched, 0u) << "bytes of slots that no token has";
    });
  }
}

// What the cache must hold, from rotate into a dense tensor, quantised by the test's own loops.
template <class From, class To, class... Rows>
std::vector<unsigned char> expected_bytes(const std::vector<From>& k, const scene& s, filled<To>& cache,
                                          const Rows&... rows) {
  using dense = std::conditional_t<is_quantised<To>, float, To>;
  std::vector<dense> turned(k.size());
  rotary::rotate(view_of(k, s, s.head_dim), rotary::bhsd(turned.data(), s.batch, s.heads, s.tokens, s.head_dim),
                 rows..., s.how);
  cache.reset();
  const std::vector<std::int64_t> slots = s.slots();
  for (std::size_t i = 0; i < s.all(); ++i) {
    for (std::size_t h = 0; h < s.heads && slots[i] >= 0; ++h) {
      To* const to = cache.head(static_cast<std::size_t>(slots[i]), h);
      const dense* const from = head_of(turned, s, i, h, s.head_dim);
      if constexpr (is_quantised<To>) {
        caches::quantise(from, s.head_dim, cache.scale_of(h), to);
      } else {
        std::copy(from, from + s.head_dim, to);
      }
    }
  }
  return cache.bytes();
}

TYPED_TEST_P(Append, HasTheBitsOfRotateForAnySlicing) {
  using From = typename TypeParam::from;
  using To = typename TypeParam::to;
  for (const scene& s : scenes()) {
    SCOPED_TRACE(s.order + std::to_string(s.head_dim));
    const std::vector<From> k = numbers<From>(s.all() * s.heads * s.head_dim, 6);
    const std::vector<std::int64_t> slots = s.slots(), positions = s.positions();
    const std::vector<std::int32_t> slots32(slots.begin(), slots.end());
    step_table<float> step(s.turns());
    step.assign(positions.data(), positions.size());
    filled<To> cache(s.order, s.blocks, s.block_size, s.heads, s.head_dim);
    backends::on_each([&](rotary::backend) {
      const std::vector<unsigned char> expected = expected_bytes(k, s, cache, step);
      for (const std::size_t count : {std::size_t{1}, std::size_t{2}, std::size_t{7}, s.all() * s.heads + 3}) {
        cache.reset();
        for (std::size_t index = count; index-- > 0;) {
          rotary::append(view_of(k, s, s.head_dim), cache.view, {slots32.data(), slots32.size()}, step, s.how,
                         {index, count});
        }
        EXPECT_TRUE(cache.bytes() == expected) << count << " slices";
      }
    });
  }
}

// ---- keys that are rotated where they are, too

TYPED_TEST_P(Append, OfRotatedKeysGivesBoth) {
  using From = typename TypeParam::from;
  using To = typename TypeParam::to;
  for (scene s : scenes()) {
    SCOPED_TRACE(s.order + std::to_string(s.head_dim));
    s.how.stored = s.how.pairing;
    const std::vector<From> k = numbers<From>(s.all() * s.heads * s.head_dim, 11);
    const std::vector<std::int64_t> slots = s.slots(), positions = s.positions();
    step_table<float> step(s.turns());
    step.assign(positions.data(), positions.size());
    filled<To> cache(s.order, s.blocks, s.block_size, s.heads, s.head_dim);
    const std::vector<unsigned char> expected = expected_bytes(k, s, cache, step);
    std::vector<From> turned = k;
    rotary::rotate(rotary::bhsd(turned.data(), s.batch, s.heads, s.tokens, s.head_dim), step, s.how);
    for (const std::size_t count : {1u, 5u}) {
      std::vector<From> live = k;
      cache.reset();
      for (std::size_t index = 0; index < count; ++index) {
        rotary::rotate_and_append(rotary::bhsd(live.data(), s.batch, s.heads, s.tokens, s.head_dim), cache.view,
                                  {slots.data(), slots.size()}, step, s.how, {index, count});
      }
      EXPECT_TRUE(cache.bytes() == expected);
      EXPECT_EQ(std::memcmp(live.data(), turned.data(), live.size() * sizeof(From)), 0) << "keys, skipped ones too";
    }
  }
}

REGISTER_TYPED_TEST_SUITE_P(Append, PutsTheRotationOfEveryKeyIntoItsSlot, HasTheBitsOfRotateForAnySlicing,
                            OfRotatedKeysGivesBoth);

}  // namespace append_scenes

#endif
