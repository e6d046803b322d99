// append, shift and split_qkv of memory whose offsets 32 bits would wrap: 65,536 tokens, slots or blocks that lie
// 65,536 elements apart, in mappings of which only what is used is there. Compared with the same calls on dense memory.
#include <gtest/gtest.h>

#include <cstring>
#include <rotary/kv_cache.hpp>
#include <rotary/kv_shift.hpp>
#include <rotary/rotary.hpp>
#include <rotary/split_qkv.hpp>
#include <string>
#include <vector>

#include "caches.hpp"
#include "sparse.hpp"

namespace {

using caches::bfloat16;
using caches::numbers;
using caches::q8_0;
using rotary::slot_list;
using rotary::table;

constexpr std::size_t many = 65536;
constexpr std::ptrdiff_t apart = 65536;
constexpr std::size_t heads = 2, dim = 64;
const std::size_t used[] = {1, 32767, 32768, 65535};  // offsets of up to 2^32 elements; 2^31 between the middle ones
constexpr std::size_t used_count = 4;

// k and v of `many` tokens, all but the used ones skipped, into a cache.
TEST(FarStrides, OfTheTokensOfAppend) {
  const sparse::memory memory(many * static_cast<std::size_t>(apart) * sizeof(float));
  if (!memory.exists()) GTEST_SKIP() << "this system gives no sparse mapping of 16 GiB";
  const table<float> rows(rotary::make_spectrum(dim, 10000.0), 100);
  const std::vector<float> given = numbers<float>(used_count * 2 * heads * dim, 1);  // k, then v of each token
  std::vector<std::int32_t> ids(many), used_ids;
  for (std::size_t t = 0; t < many; ++t) ids[t] = static_cast<std::int32_t>(t % 97);
  for (const std::size_t token : used) used_ids.push_back(ids[token]);
  const auto of_used = rotary::thd(given.data(), used_count, 2 * heads, dim);
  std::vector<bfloat16> k_expected(used_count * heads * dim), v_expected(k_expected);
  rotary::append(rotary::heads(of_used, 0, heads), rotary::heads(of_used, heads, heads),
                 rotary::dense_nhd(k_expected.data(), used_count, heads, dim),
                 rotary::dense_nhd(v_expected.data(), used_count, heads, dim), slot_list::range(0, used_count), rows,
                 {used_ids.data(), used_count});
  for (const bool reversed : {false, true}) {
    std::vector<std::int32_t> slots(many, -1);
    auto all = rotary::thd(memory.data<float>(), many, 2 * heads, dim);
    all.token_stride = reversed ? -apart : apart;
    if (reversed) all.data += static_cast<std::ptrdiff_t>(many - 1) * apart;
    for (std::size_t i = 0; i < used_count; ++i) {
      slots[used[i]] = static_cast<std::int32_t>(i);
      std::memcpy(all.data + static_cast<std::ptrdiff_t>(used[i]) * all.token_stride, &given[i * 2 * heads * dim],
                  2 * heads * dim * sizeof(float));
    }
    for (const std::size_t count : {1u, 3u}) {
      std::vector<bfloat16> k(k_expected.size(), bfloat16(0.0f)), v(k);
      for (std::size_t index = 0; index < count; ++index) {
        rotary::append(rotary::heads(all, 0, heads), rotary::heads(all, heads, heads),
                       rotary::dense_nhd(k.data(), used_count, heads, dim),
                       rotary::dense_nhd(v.data(), used_count, heads, dim), {slots.data(), many}, rows,
                       {ids.data(), many}, {}, {index, count});
      }
      EXPECT_EQ(std::memcmp(k.data(), k_expected.data(), k.size() * sizeof(bfloat16)), 0) << reversed;
      EXPECT_EQ(std::memcmp(v.data(), v_expected.data(), v.size() * sizeof(bfloat16)), 0) << reversed;
    }
  }
}

/// Keys into the places of a wide cache, then moved there.
template <class T>
void expect_wide(rotary::cache_view<T> cache, const std::vector<std::int64_t>& slots) {
  constexpr std::size_t elements = dim / caches::channels_in<T>;
  const std::size_t count = slots.size();
  const std::vector<float> k = numbers<float>(count * heads * dim, 2);
  const rotary::spectrum spectrum = rotary::make_spectrum(dim, 10000.0);
  const table<float> rows(spectrum, 100);
  std::vector<T> memory(count * heads * elements);
  const auto near = rotary::dense_nhd(memory.data(), count, heads, dim);
  const slot_list all_near = slot_list::range(0, count), all_wide(slots.data(), count);
  const auto expect_same = [&](const char* after) {
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t slot = static_cast<std::size_t>(slots[i]);
      for (std::size_t h = 0; h < heads; ++h) {
        const T* const got = cache.data + static_cast<std::ptrdiff_t>(slot / cache.block_size) * cache.block_stride +
                             static_cast<std::ptrdiff_t>(slot % cache.block_size) * cache.slot_stride +
                             static_cast<std::ptrdiff_t>(h) * cache.head_stride;
        const T* const expected = &memory[(i * heads + h) * elements];
        EXPECT_EQ(std::memcmp(got, expected, elements * sizeof(T)), 0) << after << ", slot " << slot;
      }
    }
  };
  rotary::append(rotary::thd(k.data(), count, heads, dim), near, all_near, rows, 40);
  rotary::append(rotary::thd(k.data(), count, heads, dim), cache, all_wide, rows, 40);
  expect_same("appended");
  rotary::shift(near, all_near, spectrum, -17);
  for (std::size_t index = 0; index < 3; ++index) rotary::shift(cache, all_wide, spectrum, -17, {}, {index, 3});
  expect_same("shifted");
}

template <class T>
void expect_wide_caches() {
  const std::size_t bytes = many * static_cast<std::size_t>(apart) * sizeof(T);
  const sparse::memory memory(bytes);
  if (!memory.exists()) GTEST_SKIP() << "this system gives no sparse mapping of " << (bytes >> 30) << " GiB";
  constexpr std::ptrdiff_t head = dim / caches::channels_in<T>, far = (std::ptrdiff_t{1} << 31) + 64;
  T* const low = memory.data<T>();
  T* const high = low + static_cast<std::ptrdiff_t>(many - 1) * apart;
  const auto slot = [](std::size_t block, std::size_t place) { return static_cast<std::int64_t>(block * 16 + place); };
  const std::vector<std::int64_t> slots = {1, 32767, 32768, 65535};
  const std::vector<std::int64_t> in_blocks = {slot(1, 3), slot(32767, 15), slot(32768, 0), slot(65535, 7)};
  expect_wide<T>({low, 1, many, heads, dim, 0, apart, head}, slots);
  expect_wide<T>({high, 1, many, heads, dim, 0, -apart, head}, slots);
  expect_wide<T>({low, many, 16, heads, dim, apart, 2 * head, head}, in_blocks);
  expect_wide<T>({high, many, 16, heads, dim, -apart, 2 * head, head}, in_blocks);
  expect_wide<T>({low, 1, 16, heads, dim, 0, head, far}, {0, 9, 15});
  expect_wide<T>({low + far, 1, 16, heads, dim, 0, head, -far}, {0, 9, 15});
}

TEST(FarStrides, OfTheCacheOfAppendAndShift) { expect_wide_caches<bfloat16>(); }
TEST(FarStrides, OfAQuantisedCache) { expect_wide_caches<q8_0>(); }

TEST(FarStrides, OfSplitQkv) {
  constexpr std::ptrdiff_t far = (std::ptrdiff_t{1} << 31) + 64;
  const sparse::memory from(static_cast<std::size_t>(far + 1024) * sizeof(float));
  const sparse::memory to(static_cast<std::size_t>(far + 1024) * sizeof(bfloat16));
  if (!from.exists() || !to.exists()) GTEST_SKIP() << "this system gives no sparse mappings of 8 and 4 GiB";
  const table<float> rows(rotary::make_spectrum(dim, 10000.0), 100);
  const std::vector<float> given = numbers<float>(2 * 4 * dim, 3);
  std::vector<bfloat16> q(2 * 2 * dim), k(2 * dim), v(2 * dim);
  const auto near = rotary::thd(given.data(), 2, 4, dim);
  rotary::split_qkv(near, rotary::thd(q.data(), 2, 2, dim), rotary::thd(k.data(), 2, 1, dim),
                    rotary::thd(v.data(), 2, 1, dim), rows, 50);
  for (const bool reversed : {false, true}) {
    const std::ptrdiff_t stride = reversed ? -far : far;
    auto packed = rotary::thd(from.data<float>() + (reversed ? far : 0), 2, 4, dim);
    auto all = rotary::thd(to.data<bfloat16>() + (reversed ? 0 : far), 2, 4, dim);
    packed.token_stride = stride;
    all.token_stride = -stride;
    for (std::ptrdiff_t t = 0; t < 2; ++t) {
      std::memcpy(packed.data + t * stride, &given[static_cast<std::size_t>(t) * 4 * dim], 4 * dim * sizeof(float));
    }
    rotary::split_qkv(packed, rotary::heads(all, 0, 2), rotary::heads(all, 2, 1), rotary::heads(all, 3, 1), rows, 50);
    for (std::size_t t = 0; t < 2; ++t) {
      const bfloat16* const got = all.data + static_cast<std::ptrdiff_t>(t) * all.token_stride;
      EXPECT_EQ(std::memcmp(got, &q[t * 2 * dim], 2 * dim * sizeof(bfloat16)), 0) << t;
      EXPECT_EQ(std::memcmp(got + 2 * dim, &k[t * dim], dim * sizeof(bfloat16)), 0) << t;
      EXPECT_EQ(std::memcmp(got + 3 * dim, &v[t * dim], dim * sizeof(bfloat16)), 0) << t;
    }
  }
}

}  // namespace
