// Which position each token gets, seen from the rows that a rotation reads.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <rotary/position_maps.hpp>
#include <rotary/rotary.hpp>
#include <vector>

#include "every_backend.hpp"
#include "refusals.hpp"

namespace {

using refusals::expect_refused;
using rotary::positions;

constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();

std::vector<std::int64_t> all_of(const positions& where, std::size_t batch, std::size_t tokens) {
  std::vector<std::int64_t> result;
  for (std::size_t b = 0; b < batch; ++b) {
    for (std::size_t t = 0; t < tokens; ++t) result.push_back(where.at(b, t, tokens));
  }
  return result;
}

using list = std::vector<std::int64_t>;

// The position that a rotation used for each token: the table's cosine is the position, its sine is 0.
template <class Where>
list used(const Where& where, std::size_t batch, std::size_t tokens) {
  constexpr std::int64_t first = -100;
  std::vector<double> cos, sin(201, 0.0);
  for (std::int64_t p = first; p <= 100; ++p) cos.push_back(static_cast<double>(p));
  const rotary::table_view<double> rows = {cos.data(), sin.data(), cos.size(), 1, 1, 1, first, 0.0};
  std::vector<double> x(batch * tokens * 3 * 2, 1.0);
  rotary::rotate(rotary::bshd(x.data(), batch, tokens, 3, 2), rows, where);
  list result;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (i % 6 == 0) result.push_back(static_cast<std::int64_t>(x[i]));
    EXPECT_EQ(x[i], static_cast<double>(result.back())) << "heads of one token differ";
  }
  return result;
}

TEST(Positions, OneIntegerIsTheFirstOfEverySequence) {
  EXPECT_EQ(used(7, 2, 3), (list{7, 8, 9, 7, 8, 9}));
  EXPECT_EQ(used(std::int64_t{-2}, 1, 4), (list{-2, -1, 0, 1}));
  EXPECT_EQ(used(std::size_t{98}, 1, 3), (list{98, 99, 100}));
  EXPECT_EQ(used(static_cast<unsigned char>(5), 1, 1), (list{5}));
  EXPECT_TRUE(positions(3).consecutive());
}

TEST(Positions, SharedIds) {
  const std::int32_t narrow[] = {50, -3, 0};
  const std::int64_t wide[] = {0, 100, -100};
  EXPECT_EQ(used(positions(narrow, 3), 2, 3), (list{50, -3, 0, 50, -3, 0}));
  EXPECT_EQ(used(positions(wide, 3), 2, 3), (list{0, 100, -100, 0, 100, -100}));
}

TEST(Positions, IdsOfEveryToken) {
  const std::int32_t narrow[] = {5, 6, 7, 40, 30, 20};
  const std::int64_t wide[] = {1, 1, 1, -1, -1, -1};
  EXPECT_EQ(used(positions(narrow, 6), 2, 3), (list{5, 6, 7, 40, 30, 20}));
  EXPECT_EQ(used(positions(wide, 6), 3, 2), (list{1, 1, 1, -1, -1, -1}));
  EXPECT_FALSE(positions(narrow, 6).consecutive());
}

TEST(Positions, OffsetOfEachSequence) {
  const std::int32_t narrow[] = {5, 9};
  const std::int64_t wide[] = {-5, 0};
  EXPECT_EQ(used(positions::per_sequence(narrow, 2), 2, 3), (list{5, 6, 7, 9, 10, 11}));
  EXPECT_EQ(used(positions::per_sequence(narrow, 2), 2, 1), (list{5, 9}));
  EXPECT_EQ(used(positions::per_sequence(wide, 2), 2, 2), (list{-5, -4, 0, 1}));
}

TEST(Positions, LeftPaddingLiesBelowZero) {
  const std::int32_t lengths_less_tokens[] = {-2, 0, -4};  // lengths 2, 4, 0 of 4 tokens
  const positions padded = positions::per_sequence(lengths_less_tokens, 3);
  EXPECT_EQ(used(padded, 3, 4), (list{-2, -1, 0, 1, 0, 1, 2, 3, -4, -3, -2, -1}));

  // A table from a negative position and a step_table rotate padding alike, and refuse what they lack.
  const rotary::spectrum of = rotary::make_spectrum(6, 10000.0);
  const rotary::table<double> table(of, 8, -4);
  std::vector<std::int32_t> ids(12);
  rotary::write_positions(padded, 3, 4, ids.data(), ids.size());
  rotary::step_table<double> step(of);
  step.assign(ids.data(), ids.size());
  std::vector<double> by_table(12 * 6, 1.0), by_step = by_table;
  rotary::rotate(rotary::bshd(by_table.data(), 3, 4, 1, 6), table, padded);
  rotary::rotate(rotary::bshd(by_step.data(), 3, 4, 1, 6), step);
  EXPECT_EQ(by_table, by_step);
  EXPECT_NE(by_table[0], 1.0);
  const rotary::table<double> from_zero(of, 8);
  expect_refused([&] { rotary::rotate(rotary::bshd(by_table.data(), 3, 4, 1, 6), from_zero, padded); }, "rotate",
                 {"positions -2", "from 0 on"});
}

TEST(Positions, RaggedSequences) {
  const std::int32_t narrow[] = {0, 3, 3, 4, 9}, narrow_offsets[] = {10, 50, -2, 7};
  const std::int64_t wide[] = {0, 0, 2, 2, 2}, wide_offsets[] = {1, 90, 2, 3};
  EXPECT_EQ(used(positions::ragged(narrow, 4), 1, 9), (list{0, 1, 2, 0, 0, 1, 2, 3, 4}));
  EXPECT_EQ(used(positions::ragged(narrow, 4, narrow_offsets), 1, 9), (list{10, 11, 12, -2, 7, 8, 9, 10, 11}));
  EXPECT_EQ(used(positions::ragged(wide, 4), 1, 2), (list{0, 1}));
  EXPECT_EQ(used(positions::ragged(wide, 4, wide_offsets), 1, 2), (list{90, 91}));
  EXPECT_EQ(used(positions::ragged(narrow, 1), 1, 3), (list{0, 1, 2}));
  EXPECT_NO_THROW(positions::ragged(narrow, 0).check("rotate", 1, 0));  // no sequences, no tokens
  EXPECT_FALSE(positions::ragged(narrow, 4).consecutive());
}

TEST(Positions, RaggedSequencesOfManySizes) {
  std::vector<std::int32_t> cu_seqlens = {0};
  list expected;
  for (std::int32_t s = 0; s < 100; ++s) {
    const std::int32_t length = s * 7 % 5;  // 0 to 4
    cu_seqlens.push_back(cu_seqlens.back() + length);
    for (std::int32_t t = 0; t < length; ++t) expected.push_back(t);
  }
  EXPECT_EQ(used(positions::ragged(cu_seqlens.data(), 100), 1, expected.size()), expected);
}

TEST(Positions, CuSeqlensThatAreNone) {
  std::vector<double> row(201, 1.0), x(9 * 2, 1.0);
  const rotary::table_view<double> rows = {row.data(), row.data(), 201, 1, 1, 1, -100, 0.0};
  const auto rotate = [&](const std::vector<std::int64_t>& cu_seqlens) {
    const positions where = positions::ragged(cu_seqlens.data(), cu_seqlens.size() - 1);
    rotary::rotate(rotary::thd(x.data(), 9, 1, 2), rows, where);
  };
  expect_refused([&] { rotate({1, 4, 9}); }, "rotate", {"cu_seqlens[0] is 1", "must be 0"});
  expect_refused([&] { rotate({0, 4, 3, 9}); }, "rotate", {"cu_seqlens[2] is 3 after 4"});
  expect_refused([&] { rotate({0, 4, -9, 9}); }, "rotate", {"cu_seqlens[2] is -9 after 4"});
  expect_refused([&] { rotate({0, 4, 8}); }, "rotate", {"ends with 8", "9 tokens"});
  expect_refused([&] { rotate({0, 4, 10}); }, "rotate", {"ends with 10", "9 tokens"});
  expect_refused([&] { rotate({0}); }, "rotate", {"ends with 0", "9 tokens"});
  const std::int32_t narrow[] = {0, 3, 9};
  const std::int32_t* const none = nullptr;
  expect_refused([&] { positions::ragged(narrow, 2).check("rotate", 2, 9); }, "rotate", {"2 sequences", "thd"});
  expect_refused([&] { positions::ragged(none, 2).check("rotate", 1, 9); }, "rotate", {"cu_seqlens", "null", "2"});
  const std::int32_t offsets[] = {0, 96};  // up to position 101
  expect_refused([&] { rotary::rotate(rotary::thd(x.data(), 9, 1, 2), rows, positions::ragged(narrow, 2, offsets)); },
                 "rotate", {"positions 101"});
  EXPECT_EQ(x, std::vector<double>(18, 1.0));
}

TEST(Positions, OneRowAToken) { EXPECT_EQ(used(positions::one_row_a_token(), 2, 3), (list{0, 1, 2, 3, 4, 5})); }

TEST(Positions, EveryBackendReadsTheSame) {
  const std::int32_t ids[] = {50, -3, 0, 7, 7, -100};
  backends::on_each([&](rotary::backend) { EXPECT_EQ(used(positions(ids, 6), 2, 3), (list{50, -3, 0, 7, 7, -100})); });
}

TEST(Positions, ExtremeValues) {
  const std::int64_t ids[] = {least, most};
  EXPECT_EQ(all_of(positions(ids, 2), 1, 2), (list{least, most}));
  EXPECT_EQ(all_of(positions(most - 1), 1, 2), (list{most - 1, most}));
  // One row for all positions but the last: its stride is 0.
  const double cos = 2.0, sin = 0.0;
  constexpr std::size_t all_but_one = std::numeric_limits<std::size_t>::max();
  const rotary::table_view<double> everywhere = {&cos, &sin, all_but_one, 1, 0, 1, least, 2.0};
  const std::int64_t ends[] = {least, most - 1};
  std::vector<double> x(4, 1.0);
  rotary::rotate(rotary::thd(x.data(), 2, 1, 2), everywhere, positions(ends, 2));
  EXPECT_EQ(x, std::vector<double>(4, 2.0));
  expect_refused([&] { rotary::rotate(rotary::thd(x.data(), 2, 1, 2), everywhere, positions(ids, 2)); }, "rotate",
                 {"9223372036854775807", "18446744073709551615"});
}

TEST(Positions, PastTheLastIntegerIsNoPosition) {
  std::vector<double> rows(2 * 4, 1.0), x(3 * 2, 1.0);
  const rotary::table_view<double> last = {rows.data(), rows.data() + 4, 4, 1, 1, 1, most - 3, 1.0};
  const std::int64_t offset[] = {most - 1};
  expect_refused([&] { rotary::rotate(rotary::thd(x.data(), 3, 1, 2), last, most - 1); }, "rotate", {"position"});
  expect_refused([&] { rotary::rotate(rotary::thd(x.data(), 3, 1, 2), last, positions::per_sequence(offset, 1)); },
                 "rotate", {"position"});
  EXPECT_EQ(x, std::vector<double>(6, 1.0));
  EXPECT_NO_THROW(rotary::rotate(rotary::thd(x.data(), 2, 1, 2), last, most - 1));
}

TEST(Positions, CountsThatDoNotFit) {
  const std::int32_t narrow[8] = {};
  const std::int64_t wide[8] = {};
  const auto check = [](const positions& where, std::size_t batch, std::size_t tokens) {
    where.check("rotate", batch, tokens);
  };
  expect_refused([&] { check(positions(narrow, 5), 2, 3); }, "rotate",
                 {"5 positions", "2 sequences", "3 tokens", "tokens or batch * tokens"});
  expect_refused([&] { check(positions(wide, 2), 2, 3); }, "rotate", {"2 positions"});  // batch of them is not enough
  expect_refused([&] { check(positions(wide, 8), 2, 2); }, "rotate", {"8 positions"});
  expect_refused([&] { check(positions(wide, 0), 2, 3); }, "rotate", {"0 positions"});
  expect_refused([&] { check(positions::per_sequence(narrow, 3), 2, 3); }, "rotate", {"3 positions", "2 sequences"});
  expect_refused([&] { check(positions::per_sequence(wide, 6), 2, 3); }, "rotate", {"6 positions", "2 sequences"});
  // batch * tokens that wraps around to the count
  expect_refused([&] { check(positions(wide, 8), (std::size_t{1} << 62) + 2, 4); }, "rotate", {"4611686018427387906"});
  EXPECT_NO_THROW(check(positions(narrow, 3), 2, 3));
  EXPECT_NO_THROW(check(positions(narrow, 6), 2, 3));
}

TEST(Positions, NullArrays) {
  const std::int32_t* const narrow = nullptr;
  const std::int64_t* const wide = nullptr;
  expect_refused([&] { positions(narrow, 3).check("rotate", 1, 3); }, "rotate", {"positions", "null", "3"});
  expect_refused([&] { positions::per_sequence(wide, 2).check("rotate", 2, 3); }, "rotate", {"positions", "null", "2"});
  EXPECT_NO_THROW(positions(wide, 0).check("rotate", 1, 0));
  EXPECT_NO_THROW(positions::per_sequence(narrow, 0).check("rotate", 0, 3));
}

}  // namespace
