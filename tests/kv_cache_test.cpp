// append: rows of all kinds, values, conversions, memory, and what it refuses.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <new>
#include <numeric>
#include <rotary/kv_cache.hpp>
#include <rotary/kv_shift.hpp>
#include <rotary/rotary.hpp>
#include <string>
#include <vector>

#include "allocations.hpp"
#include "append_scenes.hpp"
#include "caches.hpp"
#include "every_backend.hpp"
#include "memory_habits.hpp"
#include "reference.hpp"
#include "refusals.hpp"
#include "vector_conversions.hpp"

namespace {

using caches::bfloat16;
using caches::filled;
using caches::float16;
using caches::float8_e4m3fn;
using caches::float8_e5m2;
using caches::is_quantised;
using caches::numbers;
using caches::q8_0;
using refusals::expect_refused;
using rotary::layout;
using rotary::pairing;
using rotary::slice;
using rotary::slot_list;
using rotary::spectrum;
using rotary::step_table;
using rotary::table;
using rotary::table_view;

using append_scenes::expected_bytes;
using append_scenes::scene;
using append_scenes::scenes;
using append_scenes::view_of;

}  // namespace

namespace append_scenes {
using numbers_only = testing::Types<types<float, float>, types<float, caches::bfloat16>, types<float, caches::float16>,
                                    types<caches::bfloat16, caches::bfloat16>, types<caches::float16, caches::float16>,
                                    types<caches::bfloat16, float>, types<double, caches::bfloat16>>;
INSTANTIATE_TYPED_TEST_SUITE_P(Numbers, Append, numbers_only, names);
}  // namespace append_scenes

namespace {

// ---- rows of other kinds

template <class Row>
void expect_bits_of_rotate(const table_view<Row>& rows, const rotary::positions& where, const scene& s) {
  const std::vector<float> k = numbers<float>(s.all() * s.heads * s.head_dim, 7);
  const std::vector<std::int64_t> slots = s.slots();
  filled<bfloat16> cache(s.order, s.blocks, s.block_size, s.heads, s.head_dim);
  const std::vector<unsigned char> expected = expected_bytes(k, s, cache, rows, where);
  cache.reset();
  rotary::append(view_of(k, s, s.head_dim), cache.view, {slots.data(), slots.size()}, rows, where, s.how);
  EXPECT_TRUE(cache.bytes() == expected);
}

TEST(AppendRows, OfTablesOfAnyTypeAndStep) {
  for (const scene& s : scenes()) {
    SCOPED_TRACE(s.order + std::to_string(s.head_dim));
    const spectrum of = s.turns();
    std::vector<std::int32_t> ids;
    for (std::size_t i = 0; i < s.all(); ++i) ids.push_back(static_cast<std::int32_t>(i * i % 90) - 40);
    std::vector<std::int32_t> offsets;
    for (std::size_t b = 0; b < s.batch; ++b) offsets.push_back(static_cast<std::int32_t>(b) * 9 - 20);
    const table<float> floats(of, 200, -100);
    const table<double> doubles(of, 200, -100);
    const table<bfloat16> shorts(of, 200, -100);
    for (const rotary::positions& where : {rotary::positions(-13), rotary::positions(ids.data(), ids.size()),
                                           rotary::positions::per_sequence(offsets.data(), offsets.size())}) {
      expect_bits_of_rotate(floats.view(), where, s);
      expect_bits_of_rotate(doubles.view(), where, s);
      expect_bits_of_rotate(shorts.view(), where, s);
      std::vector<float> alternating;
      for (std::size_t n = 0; n < 200 * of.pairs(); ++n) {
        const std::size_t row = n / of.pairs() * 2 * of.pairs() + n % of.pairs();
        alternating.push_back(floats.view().cos[row]);
        alternating.push_back(floats.view().sin[row]);
      }
      const table_view<float> pairs = {alternating.data(),
                                       alternating.data() + 1,
                                       200,
                                       of.pairs(),
                                       static_cast<std::ptrdiff_t>(2 * of.pairs()),
                                       2,
                                       -100};
      expect_bits_of_rotate(pairs, where, s);
    }
  }
}

TEST(AppendRows, OfOneStepForAllSequences) {
  scene s = scenes()[1];
  const std::vector<std::int64_t> positions = s.positions();
  step_table<float> step(s.turns());
  step.assign(positions.data(), s.tokens);
  const std::vector<float> k = numbers<float>(s.all() * s.heads * s.head_dim, 8);
  const std::vector<std::int64_t> slots = s.slots();
  filled<float16> cache(s.order, s.blocks, s.block_size, s.heads, s.head_dim);
  const std::vector<unsigned char> expected = expected_bytes(k, s, cache, step);
  cache.reset();
  rotary::append(view_of(k, s, s.head_dim), cache.view, {slots.data(), slots.size()}, step, s.how);
  EXPECT_TRUE(cache.bytes() == expected);
}

TEST(AppendRows, OfNoPairsCopyTheKeys) {
  const std::vector<float> k = numbers<float>(6 * 2 * 40, 9);
  const table<float> none(spectrum(rotary::list<double>()), 10);
  filled<float> cache("nhd", 2, 5, 2, 40);
  rotary::append(rotary::thd(k.data(), 6, 2, 40), cache.view, slot_list::range(3, 6), none, 0);
  EXPECT_EQ(std::memcmp(cache.head(3, 0), k.data(), k.size() * sizeof(float)), 0);
}

// A call beyond the second cache goes past the caches and asks for lines ahead.
TEST(AppendRows, OfALargeCallHaveTheSameBits) {
  const scene s = {"nhd", 1, 100, 2, 64, 64, pairing::split_half, 7, 16};
  const std::vector<float> k = numbers<float>(s.all() * s.heads * s.head_dim, 10);
  const std::vector<std::int64_t> slots = s.slots(), positions = s.positions();
  step_table<float> step(s.turns());
  step.assign(positions.data(), positions.size());
  guarded::array<bfloat16> memory(7 * 16 * 2 * 64);
  const auto cache = rotary::paged_nhd(memory.data(), 7, 16, 2, 64);
  ASSERT_EQ(reinterpret_cast<std::uintptr_t>(memory.data()) % 64, 0u);
  std::vector<std::vector<unsigned char>> results;
  for (const auto& of_call : habits::all) {
    std::memset(static_cast<void*>(memory.data()), 0, memory.size() * sizeof(bfloat16));
    const habits::for_a_while meanwhile(of_call);
    rotary::append(view_of(k, s, s.head_dim), cache, {slots.data(), slots.size()}, step, s.how);
    const unsigned char* const bytes = reinterpret_cast<const unsigned char*>(memory.data());
    results.emplace_back(bytes, bytes + memory.size() * sizeof(bfloat16));
  }
  for (const auto& result : results) EXPECT_TRUE(result == results[0]);
}

// ---- values

template <class From, class To>
void expect_values_put(const char* order) {
  const std::size_t tokens = 21, k_heads = 2, v_heads = 3, k_dim = 40, v_dim = 64;
  const std::vector<float> k = numbers<float>(tokens * k_heads * k_dim, 12);
  const std::vector<From> v = numbers<From>(tokens * v_heads * v_dim, 13, 2.0);
  std::vector<std::int32_t> slots(tokens);
  for (std::size_t i = 0; i < tokens; ++i) slots[i] = i == 4 ? -1 : static_cast<std::int32_t>(i * 11 % 24);
  const table<float> rows(rotary::make_spectrum(k_dim, 500.0), 100);
  filled<float> k_cache("nhd", 3, 8, k_heads, k_dim), keys_alone("nhd", 3, 8, k_heads, k_dim);
  filled<To> v_cache(order, 3, 8, v_heads, v_dim), expected(order, 3, 8, v_heads, v_dim);
  for (std::size_t i = 0; i < tokens; ++i) {
    for (std::size_t h = 0; h < v_heads && slots[i] >= 0; ++h) {
      const From* const from = v.data() + (i * v_heads + h) * v_dim;
      To* const to = expected.head(static_cast<std::size_t>(slots[i]), h);
      if constexpr (is_quantised<To>) {
        std::vector<float> wide;
        for (std::size_t c = 0; c < v_dim; ++c) wide.push_back(static_cast<float>(caches::value(from[c])));
        caches::quantise(wide.data(), v_dim, v_cache.scale_of(h), to);
      } else {
        for (std::size_t c = 0; c < v_dim; ++c) to[c] = To(static_cast<float>(from[c]));
      }
    }
  }
  const auto keys = rotary::thd(k.data(), tokens, k_heads, k_dim);
  const auto values = rotary::thd(v.data(), tokens, v_heads, v_dim);
  const slot_list where(slots.data(), tokens);
  const rotary::backend active = rotary::active_backend();
  rotary::append(keys, keys_alone.view, where, rows, 7);
  backends::on_each([&](rotary::backend which) {
    for (const std::size_t count : {1u, 4u}) {
      k_cache.reset();
      v_cache.reset();
      for (std::size_t index = 0; index < count; ++index) {
        rotary::append(keys, values, k_cache.view, v_cache.view, where, rows, 7, {}, {index, count});
      }
      EXPECT_TRUE(v_cache.bytes() == expected.bytes()) << order;
      EXPECT_TRUE(which != active || k_cache.bytes() == keys_alone.bytes()) << "keys differ from those put alone";
    }
  });
}

TEST(AppendValues, AreCopiedOrConverted) {
  for (const char* order : {"nhd", "hnd", "strided"}) {
    expect_values_put<float, float>(order);
    expect_values_put<float, bfloat16>(order);
    expect_values_put<bfloat16, bfloat16>(order);
    expect_values_put<float16, float>(order);
    expect_values_put<float, float8_e4m3fn>(order);
    expect_values_put<bfloat16, float8_e5m2>(order);
    expect_values_put<float16, q8_0>(order);
  }
}

TEST(AppendValues, KeepEveryBitOfTheSameType) {
  std::vector<bfloat16> v(65536);
  for (std::size_t i = 0; i < v.size(); ++i) v[i].bits = static_cast<std::uint16_t>(i);
  const std::vector<float> k = numbers<float>(512 * 8, 14);
  const table<float> rows(rotary::make_spectrum(8, 100.0), 600);
  filled<float> k_cache("nhd", 32, 16, 1, 8);
  filled<bfloat16> v_cache("nhd", 32, 16, 1, 128);
  rotary::append(rotary::thd(k.data(), 512, 1, 8), rotary::thd<const bfloat16>(v.data(), 512, 1, 128), k_cache.view,
                 v_cache.view, slot_list::range(0, 512), rows, 5);
  EXPECT_EQ(std::memcmp(v_cache.head(0, 0), v.data(), v.size() * sizeof(bfloat16)), 0);
}

// ---- every conversion of the vectors

// Values go through the conversions alone. `from` in heads of 64 numbers, cut to whole ones.
template <class From, class To>
std::vector<To> put_as_values(const std::vector<From>& from, const float* scale) {
  const std::size_t tokens = from.size() / 64;
  const std::vector<float> k(tokens * 2, 1.0f);
  const table<float> rows(rotary::make_spectrum(2, 100.0), static_cast<std::int64_t>(tokens));
  std::vector<float> k_memory(tokens * 2);
  std::vector<To> result(tokens * 64 + 64);
  To* to = result.data();
  while (reinterpret_cast<std::uintptr_t>(to) % 64 != 0) ++to;
  auto cache = rotary::dense_nhd(to, tokens, 1, 64);
  cache.scale = scale;
  rotary::append(rotary::thd(k.data(), tokens, 1, 2), rotary::thd(from.data(), tokens, 1, 64),
                 rotary::dense_nhd(k_memory.data(), tokens, 1, 2), cache, slot_list::range(0, tokens), rows, 0);
  return {to, to + tokens * 64};
}

template <class T>
constexpr reference::format format_of = std::is_same<T, float16>::value ? reference::binary16 : reference::bfloat;

template <class Half>
void expect_converted() {
  const std::vector<float> all = vector_conversions::numbers_around<float, Half>();
  backends::on_each([&](rotary::backend) {
    for (const auto& of_call : {habits::all[0], habits::all[1]}) {  // without and with stores past the caches
      const habits::for_a_while meanwhile(of_call);
      const std::vector<Half> got = put_as_values<float, Half>(all, nullptr);
      ASSERT_GE(got.size() + 64, all.size());
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < got.size(); ++i) {
        if (std::isnan(all[i])) {
          wrong +=
              (got[i].bits & 0x7fffu) <= format_of<Half>.infinity || (got[i].bits >> 15 != 0) != std::signbit(all[i]);
        } else {
          wrong += got[i].bits != reference::encode(format_of<Half>, static_cast<long double>(all[i]));
        }
      }
      EXPECT_EQ(wrong, 0u);
    }
  });
}

TEST(AppendConversions, OfTiesAndTheirNeighboursToSixteenBits) {
  expect_converted<float16>();
  expect_converted<bfloat16>();
}

// Close to the middle of two 16-bit numbers, where a float in between would be that middle.
template <class To>
void expect_doubles_rounded_once(double middle) {
  std::vector<double> all;
  for (int i = 0; i < 64; ++i) all.push_back(middle * (i % 2 == 0 ? 1 + 1e-12 : 1 - 1e-12) * (i % 4 < 2 ? 1 : -1));
  backends::on_each([&](rotary::backend) {
    const std::vector<To> got = put_as_values<double, To>(all, nullptr);
    for (std::size_t i = 0; i < got.size(); ++i) {
      EXPECT_EQ(got[i].bits, reference::encode(format_of<To>, static_cast<long double>(all[i]))) << i;
    }
  });
}

TEST(AppendConversions, OfDoublesRoundOnce) {
  expect_doubles_rounded_once<bfloat16>(1.0 + 0x1p-8);
  expect_doubles_rounded_once<float16>(1.0 + 3 * 0x1p-11);
}

// float8_test compares the scalar conversions with the definition.
template <class Float8>
void expect_float8() {
  std::vector<float> all;
  for (unsigned k = 0; k < 65536; ++k) {
    all.push_back(reference::bits_as<float>(k << 16));  // every bfloat16, and ties of float8 with their neighbours
    all.push_back(static_cast<float>(reference::decode(reference::binary16, static_cast<std::uint16_t>(k))));
    for (const float x : {std::nextafter(all.back(), HUGE_VALF), std::nextafter(all.back(), -HUGE_VALF)}) {
      all.push_back(x);
    }
  }
  for (const float scale : {1.0f, 0.037f}) {
    backends::on_each([&](rotary::backend) {
      const std::vector<Float8> got = put_as_values<float, Float8>(all, &scale);
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < got.size(); ++i) wrong += got[i].bits != Float8(all[i] / scale).bits;
      EXPECT_EQ(wrong, 0u) << scale;
    });
  }
}

TEST(AppendConversions, OfEveryFloat16AndBfloat16ToFloat8) {
  expect_float8<float8_e4m3fn>();
  expect_float8<float8_e5m2>();
}

// Every byte of float8 is read as its number: pairs that stand still come back as they were.
template <class Float8>
void expect_read_and_written_back() {
  const float scale = 0.25f;
  backends::on_each([&](rotary::backend) {
    std::vector<Float8> keys(256);
    for (unsigned k = 0; k < 256; ++k) keys[k].bits = static_cast<std::uint8_t>(k < 128 ? 2 * k : 2 * k - 255);
    const std::vector<Float8> before = keys;
    auto cache = rotary::dense_nhd(keys.data(), 1, 1, 256);
    cache.scale = &scale;
    rotary::shift(cache, slot_list::range(0, 1), spectrum(rotary::list<double>(128)), 5, pairing::interleaved);
    for (unsigned k = 0; k < 256; ++k) {
      const float value = static_cast<float>(before[k]), partner = static_cast<float>(before[k ^ 1]);
      if (!std::isfinite(value) || !std::isfinite(partner)) continue;
      EXPECT_EQ(keys[k].bits & 0x7fu, before[k].bits & 0x7fu) << k;  // but for the sign of zero
    }
  });
}

TEST(AppendConversions, OfEveryFloat8ToFloatAndBack) {
  expect_read_and_written_back<float8_e4m3fn>();
  expect_read_and_written_back<float8_e5m2>();
}

// q, k and v of one packed tensor, into blocks that hold keys and values by turns, [blocks, 2, block_size, heads, dim].
TEST(AppendValues, FromAPackedTensorIntoACombinedCache) {
  const std::size_t tokens = 20, heads = 2, dim = 48, block = 8;
  const std::vector<float> qkv = numbers<float>(tokens * 8 * dim, 15);
  const auto all = rotary::thd(qkv.data(), tokens, 8, dim);
  const table<float> rows(rotary::make_spectrum(dim, 10000.0), 100);
  guarded::array<float> memory(3 * 2 * block * heads * dim);
  auto k_cache = rotary::paged_nhd(memory.data(), 3, block, heads, dim);
  k_cache.block_stride *= 2;
  auto v_cache = k_cache;
  v_cache.data += block * heads * dim;
  rotary::append(rotary::heads(all, 4, heads), rotary::heads(all, 6, heads), k_cache, v_cache,
                 slot_list::range(2, tokens), rows, 31);
  std::vector<float> turned = qkv;
  rotary::rotate(rotary::heads(rotary::thd(turned.data(), tokens, 8, dim), 4, heads), rows, 31);
  for (std::size_t t = 0; t < tokens; ++t) {
    const std::size_t slot = t + 2, at = (slot / block * 2 * block + slot % block) * heads * dim;
    EXPECT_EQ(std::memcmp(&memory[at], &turned[(t * 8 + 4) * dim], heads * dim * sizeof(float)), 0) << t;
    EXPECT_EQ(std::memcmp(&memory[at + block * heads * dim], &qkv[(t * 8 + 6) * dim], heads * dim * sizeof(float)), 0);
  }
}

// ---- memory and numbers

TEST(AppendMemory, NothingIsAllocated) {
  const std::vector<float> k = numbers<float>(300 * 2 * 64, 16);
  std::vector<std::int32_t> slots(300);
  for (std::size_t i = 0; i < 300; ++i) slots[i] = static_cast<std::int32_t>(i * 7 % 304);
  const spectrum of = rotary::make_spectrum(64, 10000.0);
  step_table<float> step(of);
  step.assign(slots.data(), 300);
  filled<bfloat16> k_cache("hnd", 19, 16, 2, 64);
  filled<q8_0> v_cache("nhd", 19, 16, 2, 64);
  const auto keys = rotary::thd(k.data(), 300, 2, 64);
  const std::size_t before = allocations::count;
  rotary::append(keys, keys, k_cache.view, v_cache.view, {slots.data(), 300}, step);
  rotary::shift(k_cache.view, {slots.data(), 300}, step);
  rotary::shift(v_cache.view, {slots.data(), 300}, of, -12);
  EXPECT_EQ(allocations::count, before);
  std::vector<float> counted(3);
  EXPECT_GT(allocations::count, before) << "the counter does not count";
}

TEST(AppendNumbers, NanAndInfinityStayInTheirPair) {
  for (const pairing how : {pairing::split_half, pairing::interleaved}) {
    std::vector<float> k = numbers<float>(2 * 2 * 64, 18);
    const std::vector<float> clean = k;
    k[5] = std::numeric_limits<float>::quiet_NaN();
    k[64 + 9] = -std::numeric_limits<float>::infinity();
    const table<float> rows(rotary::make_spectrum(64, 10000.0), 100);
    filled<float8_e5m2> cache("nhd", 1, 2, 2, 64), of_clean("nhd", 1, 2, 2, 64);
    filled<float16> halves("nhd", 1, 2, 2, 64);
    rotary::append(rotary::thd(k.data(), 2, 2, 64), cache.view, slot_list::range(0, 2), rows, 30, how);
    rotary::append(rotary::thd(clean.data(), 2, 2, 64), of_clean.view, slot_list::range(0, 2), rows, 30, how);
    rotary::append(rotary::thd(k.data(), 2, 2, 64), halves.view, slot_list::range(0, 2), rows, 30, how);
    const std::size_t pairs = 32;
    const auto pair_of = [&](std::size_t c) { return how == pairing::interleaved ? c / 2 : c % pairs; };
    for (std::size_t c = 0; c < 128; ++c) {
      const bool of_nan = c < 64 && pair_of(c) == pair_of(5), of_infinity = c >= 64 && pair_of(c - 64) == pair_of(9);
      const double got = caches::decode(cache.head(0, 0), 128, 0.011f)[c];
      const double half = caches::value(halves.head(0, 0)[c]);
      EXPECT_EQ(std::isnan(got), of_nan) << c;
      EXPECT_EQ(std::isnan(half), of_nan) << c;
      EXPECT_EQ(std::isinf(half), of_infinity) << c;
      const unsigned bits = cache.head(0, 0)[c].bits;
      EXPECT_TRUE(!of_infinity || (bits & 0x7fu) == 0x7bu) << "not saturated: " << bits;
      EXPECT_TRUE(of_nan || of_infinity || bits == of_clean.head(0, 0)[c].bits) << c;
    }
  }
}

// Blocks at the edges of q8_0, which the values take without a rotation.
TEST(AppendNumbers, BlocksOfQ80AtTheirEdges) {
  const float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> v(6 * 32, 0.0f);
  for (std::size_t i = 0; i < 32; ++i) {
    v[32 + i] = (static_cast<float>(i) - 15.5f) * (i % 2 == 0 ? 1.0f : -1.0f);  // halves: away from zero
    v[64 + i] = static_cast<float>(i);
    v[96 + i] = static_cast<float>(i);
    v[128 + i] = static_cast<float>(i) * 1e-40f;
    v[160 + i] = static_cast<float>(i) * 2e5f;
  }
  v[32] = 127.0f;  // so that d is 1
  v[64 + 7] = nan;
  v[96 + 30] = -inf;
  const std::vector<float> k(8, 1.0f);
  const table<float> rows(rotary::make_spectrum(8, 100.0), 10);
  filled<float> k_cache("nhd", 1, 1, 1, 8);
  filled<q8_0> v_cache("nhd", 1, 1, 6, 32);
  backends::on_each([&](rotary::backend) {
    v_cache.reset();
    rotary::append(rotary::thd(k.data(), 1, 1, 8), rotary::thd<const float>(v.data(), 1, 6, 32), k_cache.view,
                   v_cache.view, slot_list::range(0, 1), rows, 3);
    for (std::size_t block = 0; block < 6; ++block) {
      const q8_0& got = *v_cache.head(0, block);
      q8_0 expected;
      if (block == 0 || block == 1 || block == 5) {
        caches::quantise(&v[block * 32], 32, 1.0f, &expected);
      } else {
        expected.scale.bits = block == 4 ? 0 : 0x7e00;
        std::memset(expected.values, 0, 32);
      }
      EXPECT_EQ(got.scale.bits, expected.scale.bits) << block;
      EXPECT_EQ(std::memcmp(got.values, expected.values, 32), 0) << block;
    }
  });
}

// ---- nothing to do

TEST(AppendSizes, OfZeroAreNothing) {
  const table<float> rows(rotary::make_spectrum(8, 100.0), 10);
  const float* const none = nullptr;
  filled<float> cache("nhd", 2, 4, 2, 8);
  const std::vector<unsigned char> before = cache.bytes();
  rotary::append(rotary::thd(none, 0, 2, 8), cache.view, {static_cast<const std::int32_t*>(nullptr), 0}, rows, 0);
  rotary::append(rotary::thd(none, 3, 0, 8), rotary::paged_nhd<float>(nullptr, 2, 4, 0, 8), slot_list::range(0, 3),
                 rows, 0);
  const std::vector<std::int32_t> skipped(3, -1);
  rotary::append(rotary::thd<const float>(std::vector<float>(48).data(), 3, 2, 8), cache.view, {skipped.data(), 3},
                 rows, 0);
  EXPECT_TRUE(cache.bytes() == before);
}

// ---- slots

TEST(Slots, ScatteredOverAWideCacheAreAcceptedAndTheOneTwiceIsFound) {
  constexpr std::size_t count = 5000, range = 3000000;
  std::vector<std::int64_t> slots(count);
  for (std::size_t i = 0; i < count; ++i) slots[i] = static_cast<std::int64_t>(i * 7919 * 31 % range);
  slots[17] = slots[4000] = slot_list::skip;
  EXPECT_NO_THROW(slot_list(slots.data(), count).check("append", range));
  for (const std::size_t at : {std::size_t{0}, std::size_t{2500}, count - 2}) {
    std::vector<std::int64_t> twice = slots;
    twice[count - 1] = twice[at];
    const std::string value = "slot_ids[4999] is " + std::to_string(twice[at]);
    expect_refused([&] { slot_list(twice.data(), count).check("append", range); }, "append", {value.c_str()});
  }
}

// ---- refusals

struct refused_call {
  std::vector<float> k = numbers<float>(4 * 2 * 32, 20), v = numbers<float>(4 * 2 * 32, 21);
  std::vector<std::int32_t> slots = {3, 9, -1, 0};
  table<float> rows{rotary::make_spectrum(32, 10000.0), 100};
  filled<float> k_cache{"nhd", 2, 5, 2, 32}, v_cache{"nhd", 2, 5, 2, 32};
  rotary::tensor_view<float> keys = rotary::thd(k.data(), 4, 2, 32), values = rotary::thd(v.data(), 4, 2, 32);
  std::vector<unsigned char> before = k_cache.bytes();

  void call() const { rotary::append(keys, values, k_cache.view, v_cache.view, {slots.data(), slots.size()}, rows, 7); }
  void expect(std::initializer_list<const char*> parts) {
    expect_refused([&] { call(); }, "append", parts);
    EXPECT_TRUE(k_cache.bytes() == before && v_cache.bytes() == before) << "written before";
  }
};

template <class Change>
void expect_refused_after(const Change& change, std::initializer_list<const char*> parts) {
  refused_call c;
  change(c);
  c.expect(parts);
}

TEST(AppendRefuses, SlotsThatTheCacheLacks) {
  EXPECT_NO_THROW(refused_call().call());
  expect_refused_after([](refused_call& c) { c.slots = {3, 9, -1, 10}; }, {"slot_ids[3] is 10", "10 slots"});
  expect_refused_after([](refused_call& c) { c.slots = {3, -2, -1, 0}; }, {"slot_ids[1] is -2", "-1"});
  expect_refused_after([](refused_call& c) { c.slots = {3, 9, 3, 0}; }, {"slot_ids[2] is 3", "once"});
  expect_refused_after([](refused_call& c) { c.slots = {3, 9, 1}; }, {"3 slots", "1 sequences of 4 tokens"});
  refused_call c;
  expect_refused([&] { rotary::append(c.keys, c.k_cache.view, slot_list::range(7, 4), c.rows, 0); }, "append",
                 {"4 from 7", "10"});
  expect_refused([&] { rotary::append(c.keys, c.k_cache.view, slot_list::range(-1, 4), c.rows, 0); }, "append",
                 {"4 from -1"});
  expect_refused(
      [&] {
        rotary::append(c.keys, c.k_cache.view, {static_cast<const std::int32_t*>(nullptr), 4}, c.rows, 0);
      },
      "append", {"slot_ids is a null pointer", "4 values"});
}

TEST(AppendRefuses, SizesThatDiffer) {
  expect_refused_after([](refused_call& c) { c.k_cache.view.heads = 1; }, {"k has 2 heads of 32", "1 heads of 32"});
  expect_refused_after([](refused_call& c) { c.v_cache.view.head_dim = 16; }, {"v has 2 heads of 32", "2 heads of 16"});
  expect_refused_after([](refused_call& c) { c.v_cache.view.blocks = 1; }, {"v cache has 1 blocks of 5", "2 of 5"});
  expect_refused_after([](refused_call& c) { c.values.tokens = 3; }, {"v has 1 sequences of 3 tokens", "k 1 of 4"});
}

TEST(AppendRefuses, MemoryThatOverlaps) {
  expect_refused_after([](refused_call& c) { c.keys.data = c.k_cache.view.data + 100; }, {"k and the k cache overlap"});
  expect_refused_after([](refused_call& c) { c.values.data = c.k_cache.view.data; }, {"v and the k cache overlap"});
  expect_refused_after([](refused_call& c) { c.v_cache.view.data = c.k_cache.view.data + 32; },
                       {"the k cache and the v cache overlap"});
  expect_refused_after([](refused_call& c) { c.k_cache.view.slot_stride = 32; }, {"strides 320, 32, 32", "overlap"});
  refused_call c;
  c.values.data = c.keys.data;
  expect_refused(
      [&] {
        rotary::rotate_and_append(c.keys, c.values, c.k_cache.view, c.v_cache.view, {c.slots.data(), 4}, c.rows, 7);
      },
      "rotate_and_append", {"k and v overlap"});
  EXPECT_NO_THROW(c.call()) << "both are only read";
}

TEST(AppendRefuses, PointersAndStrides) {
  expect_refused_after([](refused_call& c) { c.keys.data = nullptr; }, {"data pointer of k is null"});
  expect_refused_after([](refused_call& c) { c.k_cache.view.data = nullptr; }, {"data pointer of the k cache is null"});
  expect_refused_after(
      [](refused_call& c) { c.k_cache.view.block_stride = std::numeric_limits<std::ptrdiff_t>::max() / 2; },
      {"the k cache", "address space"});
}

TEST(AppendRefuses, PositionsBlocksAndSlices) {
  refused_call c;
  const slot_list slots(c.slots.data(), 4);
  expect_refused([&] { rotary::append(c.keys, c.k_cache.view, slots, c.rows, 97); }, "append", {"97 to 100", "100"});
  expect_refused(
      [&] {
        rotary::append(c.keys, c.k_cache.view, slots, c.rows, 0, {pairing::split_half, 2});
      },
      "append", {"offset 2", "head_dim = 32"});
  expect_refused(
      [&] {
        rotary::append(c.keys, c.k_cache.view, slots, c.rows, 0, {}, {2, 2});
      },
      "append", {"slice index is 2 of count 2"});
  step_table<float> step(rotary::make_spectrum(32, 10000.0));
  step.assign(c.slots.data(), 3);
  expect_refused([&] { rotary::append(c.keys, c.k_cache.view, slots, step); }, "append", {"3 rows", "4 tokens"});
  expect_refused([&] { rotary::rotate_and_append(c.keys, c.k_cache.view, slots, step); }, "rotate_and_append",
                 {"3 rows"});
  expect_refused(
      [&] {
        const layout changed(pairing::interleaved, 0, pairing::split_half);
        rotary::rotate_and_append(c.keys, c.k_cache.view, slots, c.rows, 0, changed);
      },
      "rotate_and_append", {"layout.stored"});
  EXPECT_TRUE(c.k_cache.bytes() == c.before);
}

TEST(AppendRefuses, ScalesAndBlocksOfQuantisedCaches) {
  refused_call c;
  const slot_list slots(c.slots.data(), 4);
  filled<float8_e4m3fn> cache("nhd", 2, 5, 2, 32);
  const auto call = [&] { rotary::append(c.keys, cache.view, slots, c.rows, 0); };
  const float* const scales = cache.view.scale;
  cache.view.scale = nullptr;
  expect_refused(call, "append", {"scale of the k cache is a null pointer"});
  for (const float bad : {0.0f, -1.0f, HUGE_VALF, std::numeric_limits<float>::quiet_NaN(), 1e-40f}) {
    const float pair[] = {1.0f, bad};
    cache.view.scale = pair;
    expect_refused(call, "append", {"scale of head 1 of the k cache is", "finite"});
    cache.view.scale_stride = 0;
    EXPECT_NO_THROW(call()) << "one scale for all";
    cache.view.scale_stride = 1;
  }
  c.k_cache.view.scale = scales;
  c.expect({"scale of the k cache is given"});

  filled<q8_0> blocks("nhd", 2, 5, 2, 32);
  blocks.view.head_dim = 24;
  c.keys.head_dim = 24;
  const table<float> narrow(rotary::make_spectrum(24, 100.0), 10);
  expect_refused([&] { rotary::append(c.keys, blocks.view, slots, narrow, 0); }, "append", {"is 24", "multiple of 32"});
  expect_refused([&] { rotary::paged_nhd<q8_0>(nullptr, 2, 5, 2, 80); }, "paged_nhd", {"80", "32"});
  const std::vector<float> wide(4 * 8192);
  std::vector<q8_0> memory(4 * 256);
  expect_refused(
      [&] {
        rotary::append(rotary::thd(wide.data(), 4, 1, 8192), rotary::dense_nhd(memory.data(), 4, 1, 8192),
                       slot_list::range(0, 4), c.rows, 0);
      },
      "append", {"8192", "4096"});
}

TEST(CacheViews, OfSizesBeyondTheAddressSpaceAreRefused) {
  constexpr std::size_t large = std::size_t{1} << 40;
  expect_refused([] { rotary::paged_nhd<float>(nullptr, large, large, 8, 128); }, "paged_nhd", {"1099511627776"});
  expect_refused([] { rotary::dense_hnd<float>(nullptr, large, large, 128); }, "paged_hnd", {"1099511627776"});
}

}  // namespace
