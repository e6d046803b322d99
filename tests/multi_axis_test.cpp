// Tokens with several positions: rows of step tables over planes, and the rotations of models that have them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <rotary/rotary.hpp>
#include <utility>
#include <vector>

#include "every_backend.hpp"
#include "reference.hpp"
#include "refusals.hpp"
#include "type_names.hpp"

namespace {

using refusals::expect_refused;
using rotary::angles;
using rotary::axis_map;
using rotary::bfloat16;
using rotary::float16;
using rotary::position_planes;
using rotary::spectrum;
using rotary::step_table;
using rotary::table_view;

template <class T>
double cos_of(const table_view<T>& rows, std::size_t r, std::size_t j) {
  return static_cast<double>(rows.cos[r * static_cast<std::size_t>(rows.row_stride) + j]);
}
template <class T>
double sin_of(const table_view<T>& rows, std::size_t r, std::size_t j) {
  return static_cast<double>(rows.sin[r * static_cast<std::size_t>(rows.row_stride) + j]);
}

// [axes][tokens] flattened, with other numbers between the planes.
template <class P>
struct planes {
  std::vector<P> numbers;
  std::size_t axes, tokens;

  planes(std::size_t axis_count, std::size_t token_count)
      : numbers(axis_count * (token_count + 3), P(77)), axes(axis_count), tokens(token_count) {}
  P& at(std::size_t a, std::size_t t) { return numbers[a * (tokens + 3) + t]; }
  const P* plane(std::size_t a) const { return numbers.data() + a * (tokens + 3); }
  position_planes<P> view() const { return {numbers.data(), axes, tokens, static_cast<std::ptrdiff_t>(tokens + 3)}; }
};

// ---- a pair's entry is what its axis alone gives it

// Every entry of a row equals that of a table with one axis, whose own tests compare it with exact values.
template <class T, class P>
void expect_entries_of_each_axis(const spectrum& of, const axis_map& map, const planes<P>& at,
                                 angles mode = angles::exact) {
  step_table<T> step(of, map, mode), alone(of, mode);
  step.assign(at.view());
  ASSERT_EQ(step.size(), at.tokens);
  std::size_t different = 0, compared = 0;
  for (std::size_t a = 0; a < at.axes; ++a) {
    alone.assign(at.plane(a), at.tokens);
    for (std::size_t t = 0; t < at.tokens; ++t) {
      for (std::size_t j = 0; j < map.pairs(); ++j) {
        if (map[j] != a) continue;
        different += cos_of(step.view(), t, j) != cos_of(alone.view(), t, j);
        different += sin_of(step.view(), t, j) != sin_of(alone.view(), t, j);
        ++compared;
      }
    }
  }
  EXPECT_EQ(different, 0u) << map.pairs() << " pairs, " << map.axes() << " axes";
  EXPECT_EQ(compared, at.tokens * map.pairs());
}

axis_map random_map(reference::random_bits& random, std::size_t pairs, std::size_t axes) {
  std::vector<std::uint8_t> axis_of_pair(pairs);
  for (std::uint8_t& axis : axis_of_pair) axis = static_cast<std::uint8_t>(random.next() % axes);
  return axis_map(axis_of_pair, axes);
}

// Text, then a grid of an image after it, then positions of every size and sign, some of them on several axes at once.
planes<std::int64_t> positions_of_every_kind(reference::random_bits& random, std::size_t axes, std::int64_t offset) {
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min();
  planes<std::int64_t> at(axes, 100);
  for (std::size_t t = 0; t < 100; ++t) {
    const std::int64_t grid[] = {0, static_cast<std::int64_t>(t / 7), static_cast<std::int64_t>(t % 7), 3};
    for (std::size_t a = 0; a < axes; ++a) {
      const std::int64_t wide = static_cast<std::int64_t>(random.next()) * 16777216 + random.next();
      const std::int64_t any[] = {
          wide >> (random.next() % 48), -(wide >> (random.next() % 48)), 0, offset, least, -256, 65536};
      at.at(a, t) = t < 10 ? static_cast<std::int64_t>(t) : t < 60 ? offset + grid[a % 4] : any[random.next() % 7];
    }
  }
  return at;
}

template <class T>
class EveryRowType : public testing::Test {};
using row_types = testing::Types<float, double, float16, bfloat16>;
TYPED_TEST_SUITE(EveryRowType, row_types, type_names);

TYPED_TEST(EveryRowType, EntriesAreThoseOfTheirAxisAlone) {
  backends::on_each([](rotary::backend) {
    reference::random_bits random(1);
    for (const std::size_t pairs : {1u, 2u, 7u, 8u, 13u, 64u, 67u}) {
      const spectrum of(reference::inverse_frequencies(2 * pairs, 10000.0), 1.25);
      for (const std::int64_t offset : {0, 250, 70000, 20000000}) {
        for (const std::size_t axes : {2u, 3u, 5u}) {
          expect_entries_of_each_axis<TypeParam>(of, random_map(random, pairs, axes),
                                                 positions_of_every_kind(random, axes, offset));
        }
      }
    }
  });
}

TEST(StepTableOverAxes, MapsOfModels) {
  reference::random_bits random(2);
  const spectrum of = rotary::make_spectrum(128, 5e6);
  for (const axis_map& map :
       {rotary::mrope_chunked({16, 24, 24}), rotary::mrope_chunked({16, 16, 16, 16}),
        rotary::mrope_interleaved({24, 20, 20}), rotary::mrope_interleaved_ggml({24, 20, 20, 0}),
        rotary::height_width_alternating(22, 22, 20), rotary::vision_2d(64), rotary::vision_2d_alternating(64)}) {
    for (const std::int64_t offset : {0, 300, 1000000}) {
      expect_entries_of_each_axis<float>(of, map, positions_of_every_kind(random, map.axes(), offset));
    }
  }
}

TEST(StepTableOverAxes, MostAxes) {
  reference::random_bits random(3);
  const spectrum of(std::vector<double>(600, 0.01));
  expect_entries_of_each_axis<float>(of, random_map(random, 600, 255), positions_of_every_kind(random, 255, 40));
}

// What a row keeps for the next one must not outlive its digits.
TEST(StepTableOverAxes, DigitsThatChangeUnderProductsThatStay) {
  constexpr std::int64_t d1 = 256, d2 = 65536, d3 = 16777216, d4 = std::int64_t{1} << 32;
  const std::int64_t sequence[][2] = {{d2 + d1, d2 + 2 * d1},
                                      {3 * d1, 4 * d1},
                                      {d2 + 3 * d1, d2 + 4 * d1},
                                      {5, 6},
                                      {d2 + 3 * d1, d2 + 4 * d1},
                                      {d4 + d3 + d2 + 3 * d1, d3 + d2 + 4 * d1},
                                      {d3 + d2 + 3 * d1, d3 + d2 + 4 * d1},
                                      {d3 + d2 + 3 * d1, d3 + d2 + 4 * d1},
                                      {d2 + 3 * d1, -(d2 + 4 * d1)},
                                      {d2 + 3 * d1, d2 + 4 * d1}};
  planes<std::int64_t> at(2, 10);
  for (std::size_t t = 0; t < 10; ++t) {
    for (std::size_t a = 0; a < 2; ++a) at.at(a, t) = sequence[t][a];
  }
  expect_entries_of_each_axis<double>(rotary::make_spectrum(40, 10000.0), rotary::vision_2d(20), at);
}

TEST(StepTableOverAxes, CopiesAndMovesKeepTheirOwnRows) {
  reference::random_bits random(9);
  const spectrum of = rotary::make_spectrum(40, 10000.0);
  const axis_map map = rotary::mrope_interleaved({8, 6, 6});
  const planes<std::int64_t> first = positions_of_every_kind(random, 3, 70000);
  const planes<std::int64_t> second = positions_of_every_kind(random, 3, 300);
  step_table<float> original(of, map), expected(of, map);
  original.assign(first.view());
  step_table<float> copy = original;
  copy.assign(second.view());
  expected.assign(first.view());
  const auto same_rows = [](const step_table<float>& a, const step_table<float>& b) {
    return a.axes() == 3 && a.size() == b.size() &&
           std::equal(a.view().cos, a.view().cos + a.size() * 40, b.view().cos);
  };
  EXPECT_TRUE(same_rows(original, expected));
  step_table<float> moved = std::move(original);
  EXPECT_TRUE(same_rows(moved, expected));
  moved.assign(second.view());
  EXPECT_TRUE(same_rows(moved, copy));
}

TEST(StepTableOverAxes, FractionsOnSomeAxes) {
  reference::random_bits random(4);
  const spectrum of = rotary::make_spectrum(40, 10000.0);
  planes<double> wide(3, 30);
  planes<float> narrow(3, 30);
  for (std::size_t t = 0; t < 30; ++t) {
    for (std::size_t a = 0; a < 3; ++a) {
      const bool whole = random.next() % 2 == 0;
      wide.at(a, t) = whole ? static_cast<double>(random.next() % 1000) : 100.0 * random.next_unit();
      narrow.at(a, t) = static_cast<float>(wide.at(a, t));
    }
  }
  const axis_map map = rotary::mrope_chunked({6, 7, 7});
  expect_entries_of_each_axis<float>(of, map, wide);
  expect_entries_of_each_axis<double>(of, map, wide);
  expect_entries_of_each_axis<double>(of, map, narrow);
}

TEST(StepTableOverAxes, EveryModeAndXpos) {
  reference::random_bits random(5);
  const spectrum of = rotary::make_spectrum(40, 10000.0);
  const spectrum growing = rotary::make_spectrum(40, 10000.0, rotary::xpos{rotary::xpos_role::query, 512.0, 100.0});
  planes<std::int32_t> at(3, 30);
  for (std::int32_t& position : at.numbers) position = static_cast<std::int32_t>(random.next() % 5000) - 1000;
  const axis_map map = rotary::mrope_interleaved({8, 6, 6});
  expect_entries_of_each_axis<float>(of, map, at, angles::float32);
  expect_entries_of_each_axis<float>(of, map, at, angles::float32_recurrence);
  expect_entries_of_each_axis<float>(growing, map, at);
}

// ---- against long double

TEST(StepTableOverAxes, RowsAgainstLongDouble) {
  reference::random_bits random(6);
  const spectrum of = rotary::make_spectrum(128, 1e6);
  const axis_map map = rotary::mrope_interleaved({24, 20, 20});
  planes<std::int64_t> at = positions_of_every_kind(random, 3, 100000);
  step_table<float> step(of, map);
  step.assign(at.view());
  double worst = 0.0;
  for (std::size_t t = 0; t < at.tokens; ++t) {
    for (std::size_t j = 0; j < 64; ++j) {
      const std::int64_t position = at.at(map[j], t);
      if (position < -1000000000 || position > 1000000000) continue;
      const reference::phasor exact = reference::phasor_at(position, of.inv_freq()[j]);
      const double of_angle = std::fabs(static_cast<double>(position)) * 2.3e-16;
      const double cos = static_cast<double>(exact.cos), sin = static_cast<double>(exact.sin);
      worst = reference::larger(
          worst, std::fabs(cos_of(step.view(), t, j) - cos) / (reference::half_ulp(cos, 23, -126) + of_angle));
      worst = reference::larger(
          worst, std::fabs(sin_of(step.view(), t, j) - sin) / (reference::half_ulp(sin, 23, -126) + of_angle));
    }
  }
  EXPECT_LE(worst, 1.0) << "of half an ulp and |position| * 2.3e-16";
  EXPECT_GT(worst, 0.5);
}

// ---- the ways to give positions

TEST(StepTableOverAxes, OnePlaneForAllAxesIsOrdinaryRope) {
  const spectrum of = rotary::make_spectrum(64, 10000.0);
  const std::vector<std::int32_t> ids = {5, -1, 70000, 8};
  step_table<float> step(of, rotary::mrope_chunked({8, 12, 12})), ordinary(of);
  step.assign(position_planes<std::int32_t>{ids.data(), 3, ids.size(), 0});
  ordinary.assign(ids.data(), ids.size());
  for (std::size_t i = 0; i < ids.size() * 64; ++i) EXPECT_EQ(step.view().cos[i], ordinary.view().cos[i]);
}

TEST(StepTableOverAxes, PlanesInReverseOrder) {
  const spectrum of = rotary::make_spectrum(8, 10000.0);
  const std::int32_t ids[] = {1, 2, 3, 40, 50, 60}, reversed[] = {40, 50, 60, 1, 2, 3};
  step_table<float> forwards(of, rotary::vision_2d(4)), backwards(of, rotary::vision_2d(4));
  forwards.assign(rotary::axis_major(ids, 2, 3));
  backwards.assign(position_planes<std::int32_t>{reversed + 3, 2, 3, -3});
  for (std::size_t i = 0; i < 3 * 8; ++i) EXPECT_EQ(forwards.view().cos[i], backwards.view().cos[i]);
}

TEST(StepTableOverAxes, OneAxisTakesBothForms) {
  const spectrum of = rotary::make_spectrum(8, 10000.0);
  const std::int64_t ids[] = {4, 9};
  step_table<float> plain(of), mapped(of, axis_map({0, 0, 0, 0}, 1));
  plain.assign(rotary::axis_major(ids, 1, 2));
  mapped.assign(ids, 2);
  for (std::size_t i = 0; i < 2 * 8; ++i) EXPECT_EQ(plain.view().cos[i], mapped.view().cos[i]);
  EXPECT_NE(plain.view().cos[0], 0.0f);
}

// ---- models: against angles from their definitions

// Channels a and b of a head by an angle, in long double.
void turn(std::vector<double>& head, std::size_t a, std::size_t b, long double angle) {
  const long double x = head[a], y = head[b];
  head[a] = static_cast<double>(x * std::cos(angle) - y * std::sin(angle));
  head[b] = static_cast<double>(y * std::cos(angle) + x * std::sin(angle));
}

long double frequency(long double theta, std::size_t i, std::size_t d) {
  return std::pow(theta, -2.0L * static_cast<long double>(i) / static_cast<long double>(d));
}

struct tensor {
  std::size_t tokens, heads, head_dim;
  std::vector<double> numbers;

  tensor(std::size_t t, std::size_t h, std::size_t d) : tokens(t), heads(h), head_dim(d), numbers(t * h * d) {
    reference::random_bits random(7);
    for (double& x : numbers) x = random.next_unit();
  }
  rotary::tensor_view<double> view() { return rotary::thd(numbers.data(), tokens, heads, head_dim); }

  // turns(t, head) rotates each head.
  template <class Turns>
  tensor turned(const Turns& turns) const {
    tensor result = *this;
    for (std::size_t i = 0; i < tokens * heads; ++i) {
      const auto begin = numbers.begin() + static_cast<std::ptrdiff_t>(i * head_dim);
      std::vector<double> head(begin, begin + static_cast<std::ptrdiff_t>(head_dim));
      turns(i / heads, i % heads, head);
      std::copy(head.begin(), head.end(), result.numbers.begin() + static_cast<std::ptrdiff_t>(i * head_dim));
    }
    return result;
  }
};

void expect_near(const tensor& got, const tensor& expected, double permitted = 1e-13) {
  double worst = 0.0;
  for (std::size_t i = 0; i < got.numbers.size(); ++i) {
    worst = reference::larger(worst, std::fabs(got.numbers[i] - expected.numbers[i]));
  }
  EXPECT_LE(worst, permitted);
}

const std::int32_t grid_x[] = {0, 1, 2, 0, 1, 2, -1}, grid_y[] = {0, 0, 0, 1, 1, 1, -1};  // -1: padding

template <class P>
std::vector<P> axis_planes(const P (&first)[7], const P (&second)[7]) {
  std::vector<P> result(first, first + 7);
  result.insert(result.end(), second, second + 7);
  return result;
}

TEST(Models, Gemma4VisionTurnsEachHalfOfTheHeadByItself) {
  constexpr std::size_t d = 24, quarter = d / 4;
  const spectrum of = rotary::make_spectrum(d, 100.0, rotary::axial{{d / 2, d / 2}});
  step_table<double> step(of, rotary::vision_2d(d / 2));
  const std::vector<std::int32_t> at = axis_planes(grid_x, grid_y);
  step.assign(rotary::axis_major(at.data(), 2, 7));
  tensor x(7, 3, d);
  const tensor expected = x.turned([](std::size_t t, std::size_t, std::vector<double>& head) {
    for (std::size_t i = 0; i < quarter; ++i) {
      const long double f = std::pow(100.0L, -4.0L * static_cast<long double>(i) / d);
      turn(head, i, i + quarter, grid_x[t] * f);
      turn(head, d / 2 + i, d / 2 + i + quarter, grid_y[t] * f);
    }
  });
  const rotary::positions rows = rotary::positions::one_row_a_token();
  rotary::rotate(x.view(), rotary::pairs_of(step.view(), 0, quarter), rows, {rotary::pairing::split_half, 0});
  rotary::rotate(x.view(), rotary::pairs_of(step.view(), quarter, quarter), rows, {rotary::pairing::split_half, d / 2});
  expect_near(x, expected);
}

TEST(Models, MoonVitAlternatesAxes) {
  constexpr std::size_t d = 24;
  step_table<double> step(rotary::make_spectrum(d, 10000.0, rotary::axial_alternating{}),
                          rotary::vision_2d_alternating(d / 2));
  const std::vector<std::int32_t> at = axis_planes(grid_x, grid_y);
  step.assign(rotary::axis_major(at.data(), 2, 7));
  tensor x(7, 2, d);
  const tensor expected = x.turned([](std::size_t t, std::size_t, std::vector<double>& head) {
    for (std::size_t i = 0; i < d / 4; ++i) {
      const long double f = std::pow(10000.0L, -4.0L * static_cast<long double>(i) / d);
      turn(head, 4 * i, 4 * i + 1, grid_x[t] * f);
      turn(head, 4 * i + 2, 4 * i + 3, grid_y[t] * f);
    }
  });
  rotary::rotate(x.view(), step, rotary::pairing::interleaved);
  expect_near(x, expected);
}

TEST(Models, DinoV3HasCoordinatesAndPrefixTokens) {
  constexpr std::size_t d = 16, prefix = 5, rows = 2, columns = 3;
  constexpr long double two_pi = 6.283185307179586476925286766559L;
  const auto coordinate = [](std::size_t i, std::size_t n) {
    return 2.0L * (static_cast<long double>(i) + 0.5L) / static_cast<long double>(n) - 1.0L;
  };
  std::vector<double> at(2 * rows * columns);  // 2 pi times the coordinate
  for (std::size_t t = 0; t < rows * columns; ++t) {
    at[t] = static_cast<double>(two_pi * coordinate(t / columns, rows));
    at[rows * columns + t] = static_cast<double>(two_pi * coordinate(t % columns, columns));
  }
  step_table<double> step(rotary::make_spectrum(d, 100.0, rotary::axial{{d / 2, d / 2}}), rotary::vision_2d(d / 2));
  step.assign(rotary::axis_major(at.data(), 2, rows * columns));

  tensor x(prefix + rows * columns, 2, d);
  const tensor expected = x.turned([&](std::size_t t, std::size_t, std::vector<double>& head) {
    if (t < prefix) return;
    for (std::size_t i = 0; i < d / 4; ++i) {
      const long double f = std::pow(100.0L, -4.0L * static_cast<long double>(i) / d);
      turn(head, i, i + d / 2, two_pi * coordinate((t - prefix) / columns, rows) * f);
      turn(head, i + d / 4, i + d / 4 + d / 2, two_pi * coordinate((t - prefix) % columns, columns) * f);
    }
  });
  double* const first_patch = x.numbers.data() + prefix * x.heads * d;
  rotary::rotate(rotary::thd(first_patch, rows * columns, x.heads, d), step);
  expect_near(x, expected);
}

// Flux: {16, 56, 56} channels of three axes; here {4, 6, 2}. HunyuanVL's xDRoPE: four axes of one spectrum.
TEST(Models, AxialGridsAndFourAxes) {
  const std::int64_t at[4][3] = {{0, -7, 3}, {5, 1, 90000}, {2, 2, -4}, {11, 0, 6}};
  tensor x(3, 2, 14), y(3, 2, 16);  // two channels of x stay

  step_table<double> grid(rotary::make_spectrum(12, 10000.0, rotary::axial{{4, 6, 2}}),
                          rotary::mrope_chunked({2, 3, 1}));
  grid.assign(rotary::axis_major(&at[0][0], 3, 3));
  const tensor expected_x = x.turned([&](std::size_t t, std::size_t, std::vector<double>& head) {
    const std::size_t sizes[] = {2, 3, 1};
    for (std::size_t a = 0, j = 0; a < 3; ++a) {
      for (std::size_t i = 0; i < sizes[a]; ++i, ++j) {
        turn(head, 2 * j, 2 * j + 1, static_cast<long double>(at[a][t]) * frequency(10000.0L, i, 2 * sizes[a]));
      }
    }
  });
  rotary::rotate(x.view(), grid, rotary::pairing::interleaved);
  expect_near(x, expected_x, 1e-10);  // |position| * 2.3e-16 for 90000, and the rounding of the frequencies

  const long double theta = 10000.0L * std::pow(1000.0L, 16.0L / 14.0L);
  step_table<double> four(rotary::make_spectrum(16, 10000.0, rotary::ntk{1000.0}), rotary::mrope_chunked({2, 2, 2, 2}));
  four.assign(rotary::axis_major(&at[0][0], 4, 3));
  const tensor expected_y = y.turned([&](std::size_t t, std::size_t, std::vector<double>& head) {
    for (std::size_t j = 0; j < 8; ++j) {
      turn(head, j, j + 8, static_cast<long double>(at[j / 2][t]) * frequency(theta, j, 16));
    }
  });
  rotary::rotate(y.view(), four);
  expect_near(y, expected_y, 1e-10);
}

TEST(Models, PlanesOfABatch) {
  constexpr std::size_t batch = 2, tokens = 3, d = 12;
  const std::int32_t at[3][batch * tokens] = {{0, 1, 2, 7, 7, 7}, {0, 1, 2, 8, 9, 8}, {0, 1, 2, 9, 9, 5}};
  step_table<double> step(rotary::make_spectrum(d, 10000.0), rotary::mrope_interleaved({2, 2, 2}));
  step.assign(rotary::axis_major(&at[0][0], 3, batch * tokens));
  tensor x(batch * tokens, 2, d);
  const tensor expected = x.turned([&](std::size_t t, std::size_t, std::vector<double>& head) {
    for (std::size_t j = 0; j < 6; ++j) turn(head, j, j + 6, at[j % 3][t] * frequency(10000.0L, j, d));
  });
  rotary::rotate(rotary::bshd(x.numbers.data(), batch, tokens, 2, d), step);
  expect_near(x, expected);
}

// RoPE-Mixed (rope-vit): angles p_x * F[x, h, j] + p_y * F[y, h, j] of learned frequencies for each head. The rows of
// the heads lie side by side in [tokens, heads, pairs], and every head is rotated with a view of its own.
TEST(Models, RopeMixedHasATableOfEachHead) {
  constexpr std::size_t tokens = 7, heads = 3, pairs = 5;
  reference::random_bits random(8);
  double frequencies[2][heads][pairs];
  for (auto& of_axis : frequencies) {
    for (auto& of_head : of_axis) {
      for (double& f : of_head) f = random.next_unit();
    }
  }
  const auto angle = [&](std::size_t t, std::size_t h, std::size_t j) {
    return static_cast<long double>(grid_x[t]) * frequencies[0][h][j] +
           static_cast<long double>(grid_y[t]) * frequencies[1][h][j];
  };
  std::vector<double> cos, sin;
  for (std::size_t i = 0; i < tokens * heads * pairs; ++i) {
    const long double of = angle(i / (heads * pairs), i / pairs % heads, i % pairs);
    cos.push_back(static_cast<double>(std::cos(of)));
    sin.push_back(static_cast<double>(std::sin(of)));
  }
  tensor x(tokens, heads, 2 * pairs);
  const tensor expected = x.turned([&](std::size_t t, std::size_t h, std::vector<double>& head) {
    for (std::size_t j = 0; j < pairs; ++j) turn(head, 2 * j, 2 * j + 1, angle(t, h, j));
  });
  const table_view<double> all = {cos.data(), sin.data(), tokens, heads * pairs,
                                  static_cast<std::ptrdiff_t>(heads * pairs)};
  for (std::size_t h = 0; h < heads; ++h) {
    rotary::rotate(rotary::heads(x.view(), h, 1), rotary::pairs_of(all, h * pairs, pairs), 0,
                   rotary::pairing::interleaved);
  }
  expect_near(x, expected, 1e-15);
}

TEST(PairsOf, AlternatingRows) {
  const double rows[] = {1, 2, 3, 4, 5, 6, 7, 8};  // one row {cos, sin, cos, sin, ...}
  const table_view<double> part = rotary::pairs_of(table_view<double>{rows, rows + 1, 1, 4, 8, 2}, 1, 2);
  EXPECT_EQ(part.pairs, 2u);
  EXPECT_EQ(part.cos[0], 3.0);
  EXPECT_EQ(part.sin[part.pair_step], 6.0);
}

// ---- refusals

TEST(Refusals, PairsThatARowLacks) {
  const double row[8] = {};
  const table_view<double> rows = {row, row + 4, 1, 4, 8};
  expect_refused([&] { rotary::pairs_of(rows, 3, 2); }, "pairs_of", {"first is 3 and count is 2", "pairs = 4"});
  expect_refused([&] { rotary::pairs_of(rows, 5, 0); }, "pairs_of", {"first is 5"});
  expect_refused([&] { rotary::pairs_of(rows, 1, std::size_t{0} - 1); }, "pairs_of", {"count is 18446744073709551615"});
}

TEST(Refusals, MapsAndSpectraThatDoNotFit) {
  const spectrum of = rotary::make_spectrum(64, 10000.0);
  // Sections of the whole head where half of it rotates.
  expect_refused(
      [&] {
        step_table<float>(of, rotary::mrope_chunked({16, 24, 24}));
      },
      "step_table", {"64 pairs", "spectrum has 32", "rotary_dim / 2"});
}

TEST(Refusals, PlanesThatAreNotOfTheMap) {
  const spectrum of = rotary::make_spectrum(64, 10000.0);
  step_table<float> three(of, rotary::mrope_chunked({8, 12, 12})), one(of);
  const std::vector<std::int32_t> ids(40, 9);
  three.assign(rotary::axis_major(ids.data(), 3, 10));
  const auto assign = [&](step_table<float>& to, const std::int32_t* first, std::size_t axes, std::ptrdiff_t stride) {
    to.assign(position_planes<std::int32_t>{first, axes, 10, stride});
  };
  expect_refused([&] { three.assign(ids.data(), 10); }, "step_table::assign", {"3 axes", "position_planes"});
  expect_refused([&] { assign(three, ids.data(), 4, 10); }, "step_table::assign", {"planes.axes is 4", "3 axes"});
  expect_refused([&] { assign(one, ids.data(), 3, 10); }, "step_table::assign", {"planes.axes is 3", "1 axes"});
  expect_refused([&] { assign(three, nullptr, 3, 10); }, "step_table::assign", {"null", "10 tokens"});
  // [tokens, axes]
  expect_refused([&] { assign(three, ids.data(), 3, 1); }, "step_table::assign", {"axis_stride is 1", "tokens, 10"});
  expect_refused([&] { assign(three, ids.data() + 30, 3, -9); }, "step_table::assign", {"axis_stride is -9"});
  expect_refused([&] { assign(three, ids.data(), 3, std::ptrdiff_t{1} << 61); }, "step_table::assign",
                 {"axis_stride is 2305843009213693952", "address space"});
  EXPECT_NO_THROW(assign(three, ids.data(), 3, 15));
  EXPECT_EQ(three.size(), 10u);
  expect_refused([&] { rotary::axis_major(ids.data(), 3, ~std::size_t{0} / 16); }, "axis_major",
                 {"tokens is 1152921504606846975", "3 planes"});
}

TEST(Refusals, PositionsOfAnyAxisThatAreNotFinite) {
  const spectrum of = rotary::make_spectrum(8, 10000.0);
  step_table<float> step(of, rotary::vision_2d(4));
  float at[] = {1.0f, 2.0f, 3.0f, 4.0f};
  step.assign(rotary::axis_major(at, 2, 2));
  const float before = step.view().cos[11];
  at[3] = std::numeric_limits<float>::infinity();
  expect_refused([&] { step.assign(rotary::axis_major(at, 2, 2)); }, "step_table::assign", {"not finite"});
  EXPECT_EQ(step.view().cos[11], before);
}

}  // namespace
