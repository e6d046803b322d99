// Weight rows of one pairing made into those of the other.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <numeric>
#include <rotary/permute.hpp>
#include <rotary/rotary.hpp>
#include <vector>

#include "guarded.hpp"
#include "refusals.hpp"

namespace {

using refusals::expect_refused;
using rotary::permute_half_to_interleaved;
using rotary::permute_interleaved_to_half;
using rotary::projection_rows;

std::vector<std::uint16_t> numbered(std::size_t count) {
  std::vector<std::uint16_t> numbers(count);
  std::iota(numbers.begin(), numbers.end(), std::uint16_t{0});
  return numbers;
}

TEST(Permute, SmallestBlocks) {
  std::vector<std::uint16_t> rows = numbered(8);
  permute_half_to_interleaved(rows.data(), rows.data(), {1, 8, 2, 8});
  EXPECT_EQ(rows, (std::vector<std::uint16_t>{0, 4, 1, 5, 2, 6, 3, 7}));
  permute_interleaved_to_half(rows.data(), rows.data(), {1, 8, 2, 8});
  EXPECT_EQ(rows, numbered(8));
  permute_interleaved_to_half(rows.data(), rows.data(), {1, 8, 2, 8});
  EXPECT_EQ(rows, (std::vector<std::uint16_t>{0, 2, 4, 6, 1, 3, 5, 7}));

  // Two heads of 6 rows, of which 4 rotate from the second on.
  rows = numbered(12);
  permute_half_to_interleaved(rows.data(), rows.data(), {2, 6, 2, 4, 1});
  EXPECT_EQ(rows, (std::vector<std::uint16_t>{0, 1, 3, 2, 4, 5, 6, 7, 9, 8, 10, 11}));
}

// The reshape(heads, 2, pairs, row) -> transpose -> (heads, pairs, 2, row) of converters, row by row.
std::vector<unsigned char> reshaped(const std::vector<unsigned char>& rows, const projection_rows& shape) {
  std::vector<unsigned char> result = rows;
  const std::size_t pairs = shape.rotary_dim / 2;
  for (std::size_t h = 0; h < shape.heads; ++h) {
    for (std::size_t half = 0; half < 2; ++half) {
      for (std::size_t j = 0; j < pairs; ++j) {
        const std::size_t head = h * shape.head_dim + shape.offset;
        std::memcpy(result.data() + (head + 2 * j + half) * shape.row_bytes,
                    rows.data() + (head + half * pairs + j) * shape.row_bytes, shape.row_bytes);
      }
    }
  }
  return result;
}

TEST(Permute, AsConvertersDoAndBack) {
  for (const projection_rows& shape :
       {projection_rows{32, 128, 34, 128}, projection_rows{4, 128, 34, 128}, projection_rows{3, 80, 1, 20},
        projection_rows{2, 192, 1000, 64, 128}, projection_rows{5, 20, 257, 10, 3}, projection_rows{1, 2, 7, 2},
        projection_rows{7, 96, 4, 96}, projection_rows{3, 5, 4, 0, 5}}) {
    SCOPED_TRACE(testing::Message() << shape.heads << " x " << shape.head_dim << " x " << shape.row_bytes);
    std::vector<unsigned char> rows(shape.heads * shape.head_dim * shape.row_bytes);
    for (std::size_t i = 0; i < rows.size(); ++i) rows[i] = static_cast<unsigned char>((i * 2654435761u) >> 13);
    const std::vector<unsigned char> wanted = reshaped(rows, shape);

    guarded::array<unsigned char> in_place(rows.size()), apart(rows.size());
    std::memcpy(in_place.data(), rows.data(), rows.size());
    permute_half_to_interleaved(in_place.data(), in_place.data(), shape);
    EXPECT_EQ(std::memcmp(in_place.data(), wanted.data(), wanted.size()), 0);
    permute_half_to_interleaved(rows.data(), apart.data(), shape);
    EXPECT_EQ(std::memcmp(apart.data(), wanted.data(), wanted.size()), 0);

    permute_interleaved_to_half(in_place.data(), in_place.data(), shape);
    EXPECT_EQ(std::memcmp(in_place.data(), rows.data(), rows.size()), 0);
    permute_interleaved_to_half(wanted.data(), apart.data(), shape);
    EXPECT_EQ(std::memcmp(apart.data(), rows.data(), rows.size()), 0);
  }
}

// ---- attention with permuted weights

constexpr std::size_t q_heads = 32, kv_heads = 4, head_dim = 24, hidden = 5;

struct projections {
  std::vector<double> q, k;  // [heads * head_dim, hidden]
};
projections weights() {
  projections w{std::vector<double>(q_heads * head_dim * hidden), std::vector<double>(kv_heads * head_dim * hidden)};
  for (std::size_t i = 0; i < w.q.size(); ++i) w.q[i] = std::sin(0.37 * static_cast<double>(i) + 1.0);
  for (std::size_t i = 0; i < w.k.size(); ++i) w.k[i] = std::cos(0.53 * static_cast<double>(i));
  return w;
}

std::vector<double> project(const std::vector<double>& weight, double seed) {
  std::vector<double> result(weight.size() / hidden);
  for (std::size_t r = 0; r < result.size(); ++r) {
    for (std::size_t c = 0; c < hidden; ++c) {
      result[r] += weight[r * hidden + c] * std::cos(seed + static_cast<double>(c));
    }
  }
  return result;
}

// q . k of each head of queries, for a query at one position and a key at another.
std::vector<double> scores(const projections& w, const rotary::layout& layout, std::size_t rotary_dim,
                           std::int64_t q_position, std::int64_t k_position) {
  const rotary::table<double> table(rotary::make_spectrum(rotary_dim, 10000.0), 1001);
  std::vector<double> q = project(w.q, 0.2), k = project(w.k, 0.9), result(q_heads);
  rotary::rotate(rotary::thd(q.data(), 1, q_heads, head_dim), table, q_position, layout);
  rotary::rotate(rotary::thd(k.data(), 1, kv_heads, head_dim), table, k_position, layout);
  for (std::size_t h = 0; h < q_heads; ++h) {
    const double* const key = k.data() + h / (q_heads / kv_heads) * head_dim;
    for (std::size_t c = 0; c < head_dim; ++c) result[h] += q[h * head_dim + c] * key[c];
  }
  return result;
}

double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  double largest = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::fmax(largest, std::fabs(a[i] - b[i]));
  return largest;
}

TEST(Permute, AttentionIsUnchangedUnderGqaWithUnequalPositions) {
  constexpr std::int64_t q_position = 1000, k_position = 3;
  // Elements are below 5 in size, so a sum of 24 products is off by less than 24 * 24 * 25 / 2^53 in either order.
  constexpr double rounding = 24.0 * 24.0 * 25.0 * 0x1p-53;
  for (const std::size_t rotary_dim : {head_dim, std::size_t{12}}) {
    for (const std::size_t offset : {std::size_t{0}, head_dim - rotary_dim}) {
      const rotary::layout half(rotary::pairing::split_half, offset), pairs(rotary::pairing::interleaved, offset);
      const projections stored = weights();
      const std::vector<double> wanted = scores(stored, half, rotary_dim, q_position, k_position);

      const auto permuted = [&](std::size_t heads_of_k) {
        projections w = stored;
        constexpr std::size_t row_bytes = hidden * sizeof(double);
        permute_half_to_interleaved(w.q.data(), w.q.data(), {q_heads, head_dim, row_bytes, rotary_dim, offset});
        const std::size_t per_head = kv_heads * head_dim / heads_of_k;
        permute_half_to_interleaved(
            w.k.data(), w.k.data(),
            {heads_of_k, per_head, row_bytes, rotary_dim * per_head / head_dim / 2 * 2, offset * per_head / head_dim});
        return w;
      };
      EXPECT_LT(largest_difference(scores(permuted(kv_heads), pairs, rotary_dim, q_position, k_position), wanted),
                rounding);
      // What goes wrong if nobody looks: other pairing, and keys permuted as 8 heads of half the size.
      EXPECT_GT(largest_difference(scores(stored, pairs, rotary_dim, q_position, k_position), wanted), 0.1);
      EXPECT_GT(largest_difference(scores(permuted(8), pairs, rotary_dim, q_position, k_position), wanted), 0.1);
    }
  }
}

// ---- refusals

TEST(Permute, ShapesThatCannotBe) {
  std::vector<unsigned char> rows(64), before = rows;
  const auto call = [&](const projection_rows& shape) {
    return [&rows, shape] { permute_half_to_interleaved(rows.data(), rows.data(), shape); };
  };
  const char* const name = "permute_half_to_interleaved";
  expect_refused(call({1, 8, 1, 7}), name, {"rotary_dim is 7", "even"});
  expect_refused(call({1, 8, 1, 10}), name, {"rotary_dim is 10", "head_dim = 8"});
  expect_refused(call({1, 8, 1, 6, 3}), name, {"rotary_dim is 6", "offset is 3", "head_dim = 8"});
  expect_refused(call({1, 8, 1, 2, static_cast<std::size_t>(-1)}), name, {"offset is 18446744073709551615"});
  expect_refused(call({std::size_t{1} << 62, 8, 1, 8}), name, {"4611686018427387904 heads", "8 channels"});
  expect_refused(call({std::size_t{1} << 40, 8, std::size_t{1} << 40, 8}), name, {"1099511627776 bytes"});
  expect_refused(
      [&] {
        permute_interleaved_to_half(nullptr, rows.data(), {1, 8, 1, 8});
      },
      "permute_interleaved_to_half", {"from is a null pointer"});
  expect_refused(
      [&] {
        permute_half_to_interleaved(rows.data(), nullptr, {1, 8, 1, 8});
      },
      name, {"to is a null pointer"});
  expect_refused(
      [&] {
        permute_half_to_interleaved(rows.data(), rows.data() + 7, {1, 8, 1, 8});
      },
      name, {"7 bytes apart", "8 bytes"});
  expect_refused(
      [&] {
        permute_half_to_interleaved(rows.data() + 1, rows.data(), {1, 8, 1, 8});
      },
      name, {"1 bytes apart", "8 bytes"});
  EXPECT_EQ(rows, before);
  permute_half_to_interleaved(rows.data(), rows.data() + 8, {1, 8, 1, 8});
  permute_half_to_interleaved(nullptr, nullptr, {0, 8, 1, 8});
}

}  // namespace
