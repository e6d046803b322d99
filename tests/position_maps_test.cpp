// Makers of position ids: against lists written by hand, and against the definitions where they are too long for that.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <rotary/position_maps.hpp>
#include <rotary/rotary.hpp>
#include <vector>

#include "refusals.hpp"

namespace {

using refusals::expect_refused;
using rotary::dual_chunk;
using rotary::positions;

template <class Id>
using ids = std::vector<Id>;

template <class Id>
class PositionMaps : public testing::Test {};
using id_types = testing::Types<std::int32_t, std::int64_t>;
TYPED_TEST_SUITE(PositionMaps, id_types, );

TYPED_TEST(PositionMaps, WritesAnyPositions) {
  using Id = TypeParam;
  const Id offsets[] = {5, -1}, shared[] = {9, 4, 4}, cu_seqlens[] = {0, 2, 2, 6};
  const auto written = [](const positions& where, std::size_t batch, std::size_t tokens) {
    ids<Id> result(batch * tokens);
    rotary::write_positions(where, batch, tokens, result.data(), result.size());
    return result;
  };
  EXPECT_EQ(written(7, 2, 3), (ids<Id>{7, 8, 9, 7, 8, 9}));
  EXPECT_EQ(written(positions::per_sequence(offsets, 2), 2, 3), (ids<Id>{5, 6, 7, -1, 0, 1}));
  EXPECT_EQ(written(positions(shared, 3), 2, 3), (ids<Id>{9, 4, 4, 9, 4, 4}));
  EXPECT_EQ(written(positions::ragged(cu_seqlens, 3), 1, 6), (ids<Id>{0, 1, 0, 1, 2, 3}));
  EXPECT_EQ(written(3, 0, 5), ids<Id>{});
}

TYPED_TEST(PositionMaps, SelfExtend) {
  using Id = TypeParam;
  const ids<Id> at = {0, 3, 4, 7, 8, 11, 100, -1, -4, -5};
  ids<Id> queries(at.size()), keys = at;
  rotary::self_extend_query_positions(at.data(), at.size(), 4, 6, queries.data());
  rotary::self_extend_key_positions(keys.data(), keys.size(), 4, keys.data());  // in place
  EXPECT_EQ(keys, (ids<Id>{0, 0, 1, 1, 2, 2, 25, -1, -1, -2}));
  EXPECT_EQ(queries, (ids<Id>{5, 5, 6, 6, 7, 7, 30, 4, 4, 3}));
}

// The distance grows by 1 / group beyond the window, and is the window itself at its edge.
TYPED_TEST(PositionMaps, SelfExtendContinuesTheWindow) {
  using Id = TypeParam;
  constexpr Id group = 8, window = 64;
  for (Id k = 0; k < 200; k = static_cast<Id>(k + group)) {
    for (Id distance = window; distance < 400; distance = static_cast<Id>(distance + group)) {
      Id query = static_cast<Id>(k + distance), key = k;
      rotary::self_extend_query_positions(&query, 1, group, window, &query);
      rotary::self_extend_key_positions(&key, 1, group, &key);
      EXPECT_EQ(query - key, window + (distance - window) / group);
    }
  }
}

TYPED_TEST(PositionMaps, DualChunkAttention) {
  using Id = TypeParam;
  // chunk_size 10, local_size 3: c = 7.
  const ids<Id> at = {0, 2, 3, 6, 7, 9, 20, 21, -1};
  const auto mapped = [&](dual_chunk which) {
    ids<Id> result(at.size());
    rotary::dual_chunk_positions(which, at.data(), at.size(), 10, 3, result.data());
    return result;
  };
  EXPECT_EQ(mapped(dual_chunk::key), (ids<Id>{0, 2, 3, 6, 0, 2, 6, 0, 6}));
  EXPECT_EQ(mapped(dual_chunk::query_intra), (ids<Id>{0, 2, 3, 6, 0, 2, 6, 0, 6}));
  EXPECT_EQ(mapped(dual_chunk::query_successive), (ids<Id>{7, 9, 10, 10, 7, 9, 10, 7, 10}));
  EXPECT_EQ(mapped(dual_chunk::query_inter), (ids<Id>(9, 10)));
  EXPECT_EQ(mapped(dual_chunk::query_successive_critical), (ids<Id>{7, 9, 10, 13, 7, 9, 13, 7, 13}));
  EXPECT_EQ(mapped(dual_chunk::query_inter_critical), (ids<Id>{10, 12, 13, 16, 10, 12, 16, 10, 16}));
  // More than half of the chunk is local: 2c - 1 is less than chunk_size.
  ids<Id> inter = at;
  rotary::dual_chunk_positions(dual_chunk::query_inter, inter.data(), inter.size(), 10, 6, inter.data());
  EXPECT_EQ(inter, (ids<Id>(9, 7)));
}

TYPED_TEST(PositionMaps, ContextParallelRanks) {
  using Id = TypeParam;
  const auto zigzag = [](std::size_t rank) {
    ids<Id> result(4);
    rotary::zigzag_positions(rank, 3, 12, result.data(), 4);
    return result;
  };
  EXPECT_EQ(zigzag(0), (ids<Id>{0, 1, 10, 11}));
  EXPECT_EQ(zigzag(1), (ids<Id>{2, 3, 8, 9}));
  EXPECT_EQ(zigzag(2), (ids<Id>{4, 5, 6, 7}));
  ids<Id> striped(4);
  rotary::striped_positions(2, 3, 12, striped.data(), 4);
  EXPECT_EQ(striped, (ids<Id>{2, 5, 8, 11}));
}

TYPED_TEST(PositionMaps, RanksTogetherHaveEveryTokenOnce) {
  using Id = TypeParam;
  constexpr std::size_t ranks = 5, tokens = 70;
  ids<Id> zigzag(tokens), striped(tokens), all(tokens);
  std::iota(all.begin(), all.end(), Id{0});
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    rotary::zigzag_positions(rank, ranks, tokens, zigzag.data() + rank * 14, 14);
    rotary::striped_positions(rank, ranks, tokens, striped.data() + rank * 14, 14);
  }
  std::sort(zigzag.begin(), zigzag.end());
  std::sort(striped.begin(), striped.end());
  EXPECT_EQ(zigzag, all);
  EXPECT_EQ(striped, all);
}

// ---- refusals, after which the array is as it was

TEST(Refusals, SelfExtendSizes) {
  std::int32_t at[] = {1, 2};
  std::int32_t* const none = nullptr;
  expect_refused([&] { rotary::self_extend_query_positions(at, 2, 0, 6, at); }, "self_extend_query_positions",
                 {"group is 0", "1 to 2147483647"});
  expect_refused([&] { rotary::self_extend_query_positions(at, 2, 4, -6, at); }, "self_extend_query_positions",
                 {"window is -6"});
  expect_refused([&] { rotary::self_extend_key_positions(at, 2, std::int64_t{1} << 31, at); },
                 "self_extend_key_positions", {"group is 2147483648"});
  expect_refused([&] { rotary::self_extend_key_positions(none, 2, 4, at); }, "self_extend_key_positions",
                 {"ids is a null pointer", "2"});
  expect_refused([&] { rotary::self_extend_key_positions(at, 2, 4, none); }, "self_extend_key_positions",
                 {"null pointer", "2"});
  EXPECT_EQ(at[1], 2);
}

TEST(Refusals, DualChunkSizes) {
  std::int64_t at[] = {1, 2};
  expect_refused([&] { rotary::dual_chunk_positions(dual_chunk::key, at, 2, 0, 0, at); }, "dual_chunk_positions",
                 {"chunk_size is 0"});
  expect_refused([&] { rotary::dual_chunk_positions(dual_chunk::key, at, 2, 10, 10, at); }, "dual_chunk_positions",
                 {"local_size is 10", "chunk_size - 1, 9"});
  expect_refused([&] { rotary::dual_chunk_positions(dual_chunk::key, at, 2, 10, -1, at); }, "dual_chunk_positions",
                 {"local_size is -1"});
  std::int32_t narrow[] = {1, 2};
  expect_refused(
      [&] { rotary::dual_chunk_positions(dual_chunk::query_inter_critical, narrow, 2, 2147483646, 0, narrow); },
      "dual_chunk_positions", {"id 1 is 2147483648", "32 bits"});
  EXPECT_EQ(at[1], 2);
  EXPECT_EQ(narrow[0], 1);
}

TEST(Refusals, IdsBeyondTheLastPosition) {
  std::int64_t ids[2];
  expect_refused([&] { rotary::write_positions(std::int64_t{0x7fffffffffffffff}, 1, 2, ids, 2); }, "write_positions",
                 {"id 1", "2^63"});
}

TEST(Refusals, MapsIntoPartOfTheirSource) {
  std::int64_t ids[5] = {0, 5, 10, 15, 20};
  expect_refused([&] { rotary::self_extend_key_positions(ids, 4, 2, ids + 1); }, "self_extend_key_positions",
                 {"8 bytes from ids"});
  EXPECT_EQ(ids[1], 5);
}

TEST(Refusals, Ranks) {
  std::int32_t at[4] = {-7, -7, -7, -7};
  expect_refused([&] { rotary::zigzag_positions(3, 3, 12, at, 4); }, "zigzag_positions", {"rank is 3", "ranks, 3"});
  expect_refused([&] { rotary::zigzag_positions(0, 0, 12, at, 4); }, "zigzag_positions", {"rank is 0", "ranks, 0"});
  expect_refused([&] { rotary::zigzag_positions(0, 3, 9, at, 3); }, "zigzag_positions",
                 {"tokens is 9", "multiple of 2 * 3 ranks"});
  expect_refused([&] { rotary::zigzag_positions(0, 3, 13, at, 4); }, "zigzag_positions", {"tokens is 13"});
  expect_refused([&] { rotary::zigzag_positions(0, 3, 12, at, 12); }, "zigzag_positions",
                 {"count is 12", "tokens / ranks, 4"});
  expect_refused([&] { rotary::striped_positions(0, 3, 13, at, 4); }, "striped_positions",
                 {"tokens is 13", "1 * 3 ranks"});
  expect_refused([&] { rotary::striped_positions(1, std::size_t{1} << 31, std::size_t{1} << 32, at, 2); },
                 "striped_positions", {"id 1 is 2147483649", "32 bits"});
  EXPECT_EQ(at[0], -7);
}

TEST(Refusals, IdsThatDoNotFit) {
  std::int32_t at[6] = {};
  expect_refused([&] { rotary::write_positions(7, 2, 3, at, 5); }, "write_positions", {"count is 5", "2 * 3"});
  expect_refused([&] { rotary::write_positions(7, std::size_t{1} << 62, 4, at, 0); }, "write_positions",
                 {"count is 0"});
  expect_refused([&] { rotary::write_positions(std::int64_t{2147483646}, 1, 3, at, 3); }, "write_positions",
                 {"id 2 is 2147483648", "32 bits", "std::int64_t"});
  expect_refused([&] { rotary::write_positions(positions(at, 5), 2, 3, at, 6); }, "write_positions", {"5 positions"});
  EXPECT_EQ(at[0], 0);
}

}  // namespace
