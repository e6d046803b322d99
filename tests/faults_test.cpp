// Faults that public implementations of rotary embedding have had, each as a test of its whole kind with the published
// numbers. Faults that a spectrum alone can show are in spectrum_test.cpp.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <rotary/rotary.hpp>
#include <set>
#include <string>
#include <thread>
#include <type_traits>
#include <vector>

#include "every_backend.hpp"
#include "reference.hpp"

namespace {

using rotary::bfloat16;
using rotary::float16;
using rotary::layout;
using rotary::make_spectrum;
using rotary::pairing;
using rotary::spectrum;
using rotary::step_table;
using rotary::table;
using rotary::table_view;
using rotary::tensor_view;

constexpr pairing both_pairings[] = {pairing::split_half, pairing::interleaved};

// Calls check(pairing) on every backend.
template <class Check>
void on_each_backend_and_pairing(const Check& check) {
  backends::on_each([&](rotary::backend) {
    for (const pairing p : both_pairings) {
      SCOPED_TRACE(p == pairing::split_half ? "split-half" : "interleaved");
      check(p);
    }
  });
}

template <class Row = float>
step_table<Row> step_at(const spectrum& of, const std::vector<std::int64_t>& positions) {
  step_table<Row> step(of);
  step.assign(positions.data(), positions.size());
  return step;
}

// One head at one position, in place.
template <class T>
std::vector<T> rotated(std::vector<T> x, const spectrum& of, std::int64_t position, const layout& how) {
  using row = std::conditional_t<std::is_same<T, double>::value, double, float>;
  rotary::rotate(rotary::thd(x.data(), 1, 1, x.size()), step_at<row>(of, {position}), how);
  return x;
}

template <class T>
void expect_near(const std::vector<T>& got, const std::vector<double>& expected, double permitted) {
  ASSERT_EQ(got.size(), expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(got[i]), expected[i], permitted) << "element " << i;
  }
}

template <class T>
bool same_bits(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

const spectrum& d4() {
  static const spectrum of = make_spectrum(4, 10000.0);
  return of;
}

constexpr double float_ulp = 0x1p-23;

// ---- precision of angles and tables

template <class T>
void expect_rows_rounded_once(const reference::format& format) {
  const spectrum of = make_spectrum(32, 10000.0);
  const table<T> rows(of, 2048);
  double worst = 0.0;
  for (std::size_t p = 0; p < 2048; ++p) {
    for (std::size_t j = 0; j < 16; ++j) {
      const reference::phasor exact = reference::phasor_at(static_cast<std::int64_t>(p), of.inv_freq()[j]);
      const std::size_t at = p * 32 + j;
      for (const auto& [got, wanted] :
           {std::make_pair(rows.view().cos[at], exact.cos), std::make_pair(rows.view().sin[at], exact.sin)}) {
        const double value = static_cast<double>(wanted);
        const double permitted =
            reference::half_ulp(value, format.fraction_bits, format.least_exponent) + static_cast<double>(p) * 2.3e-16;
        worst = reference::larger(worst, std::fabs(static_cast<double>(got) - value) / permitted);
      }
    }
  }
  EXPECT_LE(worst, 1.0);
  EXPECT_EQ(rows.view().cos[1857 * 32 + 1].bits, reference::encode(format, 0.30669280981871063L));
  EXPECT_EQ(rows.view().sin[1857 * 32 + 1].bits, reference::encode(format, 0.9518085523914482L));
}

TEST(PrecisionFaults, TableComputedInTheTypeItIsStoredIn) {
  backends::on_each([](rotary::backend) {
    expect_rows_rounded_once<float16>(reference::binary16);
    expect_rows_rounded_once<bfloat16>(reference::bfloat);
  });
}

TEST(PrecisionFaults, PositionsCastToBfloat16) {
  backends::on_each([](rotary::backend) {
    const spectrum of = make_spectrum(32, 10000.0);
    const table<bfloat16> rows(of, 16000);
    EXPECT_NE(std::memcmp(rows.rows(256, 1).cos, rows.rows(257, 1).cos, 16 * sizeof(bfloat16)), 0);
    const std::uint16_t expected = reference::encode(reference::bfloat, -0.908015901251032L);
    EXPECT_EQ(rows.rows(15962, 1).cos[0].bits, expected);
    step_table<bfloat16> step(of);
    const float floating = 15962.0f;
    step.assign(&floating, 1);
    EXPECT_EQ(step.view().cos[0].bits, expected);
  });
}

// Rotates (1, 0, 1, 0, ...) at positions that float16 rounds together or to infinity.
template <class T, class Row>
void expect_distinct_and_finite() {
  const spectrum of = make_spectrum(8, 10000.0);
  std::set<std::vector<double>> results;
  const std::vector<std::int64_t> positions = {2048, 2049, 32768, 65504, 65519, 65520, 131071};
  const step_table<Row> step = step_at<Row>(of, positions);
  std::vector<T> x(positions.size() * 8);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<T>(i % 2 == 0 ? 1.0f : 0.0f);
  rotary::rotate(rotary::thd(x.data(), positions.size(), 1, 8), step, pairing::interleaved);
  for (std::size_t t = 0; t < positions.size(); ++t) {
    std::vector<double> row;
    for (std::size_t i = 0; i < 8; ++i) row.push_back(static_cast<double>(x[t * 8 + i]));
    for (const double value : row) EXPECT_TRUE(std::isfinite(value)) << "position " << positions[t];
    results.insert(row);
  }
  EXPECT_EQ(results.size(), positions.size()) << "two positions gave the same rotation";
}

TEST(PrecisionFaults, PositionsHeldInFloat16) {
  backends::on_each([](rotary::backend) {
    expect_distinct_and_finite<float, float>();
    expect_distinct_and_finite<double, double>();
    expect_distinct_and_finite<float16, float>();
    expect_distinct_and_finite<float16, float16>();
    expect_distinct_and_finite<bfloat16, float>();
    expect_distinct_and_finite<bfloat16, bfloat16>();
  });
}

TEST(PrecisionFaults, SixteenBitTablesByDefault) {
  static_assert(std::is_same<decltype(table<>(d4(), 1).view().cos), const float*>::value, "the default is float");
  static_assert(std::is_same<decltype(step_table<>(d4()).view().cos), const float*>::value, "the default is float");
  const spectrum of(std::vector<double>{0.1032});
  constexpr double exact = 0.99467960447;
  EXPECT_NEAR(double{table<>(of, 1, 1).view().cos[0]}, exact, 0x1p-24);
  EXPECT_NEAR(static_cast<double>(table<bfloat16>(of, 1, 1).view().cos[0]), exact, 0x1p-9);
  EXPECT_NEAR(static_cast<double>(table<float16>(of, 1, 1).view().cos[0]), exact, 0x1p-12);
}

TEST(PrecisionFaults, FastSineWithoutReductionOfTheArgument) {
  struct known {
    std::int64_t position;
    double cos, sin;
  };
  const known rows[] = {{131069, -0.18266453722304613, 0.98317529812393598},
                        {131071, -0.81798349938794908, -0.57524168375478937},
                        {1048575, 0.78804223952892747, -0.61562117305875088}};
  const spectrum of = make_spectrum(128, 10000.0);
  on_each_backend_and_pairing([&](pairing p) {
    for (const known& row : rows) {
      const table<float> range(of, 7, row.position - 3);
      std::vector<float> unit(128, 0.0f);
      unit[0] = 1.0f;
      const std::vector<float> x = rotated(unit, of, row.position, p);
      const std::size_t second = p == pairing::split_half ? 64 : 1;
      EXPECT_NEAR(double{x[0]}, row.cos, reference::half_ulp(row.cos, 23, -126) * 2) << row.position;
      EXPECT_NEAR(double{x[second]}, row.sin, reference::half_ulp(row.sin, 23, -126) * 2) << row.position;
      EXPECT_EQ(range.rows(row.position, 1).cos[0], x[0]);
      EXPECT_EQ(range.rows(row.position, 1).sin[0], x[second]);
    }
  });
}

TEST(PrecisionFaults, LargeAnglesWorseThanSmallOnes) {
  const spectrum of = make_spectrum(64, 10000.0);
  backends::on_each([&](rotary::backend) {
    const table<bfloat16> rows(of, 131072);
    for (const std::int64_t position : {std::int64_t{4155}, std::int64_t{131071}}) {  // the last row too
      const table_view<bfloat16> row = rows.rows(position, 1);
      for (std::size_t j = 0; j < 32; ++j) {
        const reference::phasor exact = reference::phasor_at(position, of.inv_freq()[j]);
        EXPECT_EQ(row.cos[j].bits, reference::encode(reference::bfloat, exact.cos)) << position << " " << j;
        EXPECT_EQ(row.sin[j].bits, reference::encode(reference::bfloat, exact.sin)) << position << " " << j;
      }
    }
  });
}

// Pairs of (a, b) turned by pi/4 with cos and sin in float: each product rounded to 16 bits would cancel to nonsense.
template <class T>
void expect_rounded_once(pairing p, float a, float b, float first, float second) {
  const float root = 0.70710678118654752f;
  for (const std::size_t pairs : {std::size_t{1}, std::size_t{3}, std::size_t{16}, std::size_t{37}}) {
    const std::vector<float> row(pairs, root);
    std::vector<T> x(2 * pairs);
    for (std::size_t j = 0; j < pairs; ++j) {
      x[p == pairing::split_half ? j : 2 * j] = static_cast<T>(a);
      x[p == pairing::split_half ? j + pairs : 2 * j + 1] = static_cast<T>(b);
    }
    const table_view<float> rows{row.data(), row.data(), 1, pairs, static_cast<std::ptrdiff_t>(pairs)};
    rotary::rotate(rotary::thd(x.data(), 1, 1, 2 * pairs), rows, 0, p);
    for (std::size_t j = 0; j < pairs; ++j) {
      EXPECT_EQ(static_cast<float>(x[p == pairing::split_half ? j : 2 * j]), first) << j << " of " << pairs;
      EXPECT_EQ(static_cast<float>(x[p == pairing::split_half ? j + pairs : 2 * j + 1]), second)
          << j << " of " << pairs;
    }
  }
}

TEST(PrecisionFaults, ArithmeticRoundedToSixteenBitsAtEachStep) {
  on_each_backend_and_pairing([](pairing p) {
    expect_rounded_once<float16>(p, 1000.0f, 999.5f, 0.353515625f, 1414.0f);
    expect_rounded_once<bfloat16>(p, 1000.0f, 996.0f, 2.828125f, 1408.0f);  // exactly 2.8284 and 1411.4
  });
}

TEST(PrecisionFaults, FloatProductOrRecurrenceTakenForExact) {
  const spectrum of = make_spectrum(128, 10000.0);
  const auto largest_error = [&](rotary::angles mode) {
    double most = 0.0;
    const table<float> rows(of, 72, 131000, mode);
    for (std::size_t r = 0; r < 72; ++r) {
      for (std::size_t j = 0; j < 64; ++j) {
        const reference::phasor exact = reference::phasor_at(131000 + static_cast<std::int64_t>(r), of.inv_freq()[j]);
        most =
            reference::larger(most, std::fabs(double{rows.view().cos[r * 128 + j]} - static_cast<double>(exact.cos)));
      }
    }
    return most;
  };
  EXPECT_LE(largest_error(rotary::angles::exact), 0x1p-25 + 131072 * 2.3e-16);
  EXPECT_GT(largest_error(rotary::angles::float32), 3e-3);
  EXPECT_GT(largest_error(rotary::angles::float32_recurrence), 3e-3);
  const table<float> by_default(of, 1, 131071), exact(of, 1, 131071, rotary::angles::exact);
  EXPECT_EQ(std::memcmp(by_default.view().cos, exact.view().cos, 128 * sizeof(float)), 0);
}

// ---- pairing and layouts of tables

const std::vector<double> one_to_four = {1, 2, 3, 4};

std::vector<double> turned_one_to_four(pairing p) {  // d = 4, base 10000, position 1
  if (p == pairing::interleaved) {
    return {-1.1426396637476533, 1.9220755965441759, 2.9598506679133292, 4.0297995016691611};
  }
  return {-1.9841106485555498, 1.9599006674966639, 2.4623779024123157, 4.0197996683349944};
}

template <class T>
std::vector<T> as(const std::vector<double>& values) {
  std::vector<T> result;
  for (const double value : values) result.push_back(static_cast<T>(value));
  return result;
}

// Each way into the library, by one pairing: forwards from x and backwards to it.
template <class T, class Row>
void expect_pairing_by_every_entry(pairing p, double permitted) {
  const std::vector<T> x = as<T>(one_to_four);
  const std::vector<double> expected = turned_one_to_four(p);
  const tensor_view<const T> from = rotary::thd(x.data(), 1, 1, 4);
  const table<Row> range(d4(), 3);
  const step_table<Row> step = step_at<Row>(d4(), {1});
  std::vector<T> to(4), y = x;
  const tensor_view<T> in_place = rotary::thd(y.data(), 1, 1, 4), destination = rotary::thd(to.data(), 1, 1, 4);

  rotary::rotate(from, destination, range, 1, p);
  expect_near(to, expected, permitted);
  rotary::rotate(from, destination, range.view(), 1, p);
  expect_near(to, expected, permitted);
  rotary::rotate(from, destination, step, p);
  expect_near(to, expected, permitted);

  rotary::rotate(in_place, range, 1, p);
  expect_near(y, expected, permitted);
  rotary::rotate_inverse(in_place, range, 1, p);
  expect_near(y, one_to_four, 2 * permitted);
  rotary::rotate(in_place, step, p);
  expect_near(y, expected, 3 * permitted);
  rotary::rotate_adjoint(in_place, step, p);
  expect_near(y, one_to_four, 4 * permitted);

  for (std::size_t i = 0; i < 4; ++i) y[i] = static_cast<T>(expected[i]);
  rotary::rotate_adjoint(tensor_view<const T>(in_place), destination, range, 1, p);
  expect_near(to, one_to_four, permitted);
  rotary::rotate_inverse(tensor_view<const T>(in_place), destination, step, p);
  expect_near(to, one_to_four, permitted);
}

TEST(PairingFaults, OneEntryPointUsesTheOtherPairing) {
  on_each_backend_and_pairing([](pairing p) {
    expect_pairing_by_every_entry<float, float>(p, 4 * float_ulp);
    expect_pairing_by_every_entry<double, double>(p, 4 * 0x1p-52);
    expect_pairing_by_every_entry<float16, float>(p, 4 * 0x1p-10);
    expect_pairing_by_every_entry<bfloat16, float>(p, 4 * 0x1p-7);
  });
}

TEST(PairingFaults, TableLayoutOfTheOtherPairing) {
  const float c0 = 0.54030230586813972f, s0 = 0.84147098480789651f, c1 = 0.99995000041666528f, s1 = 0.0099998333341666f;
  const float planar[] = {c0, c1, s0, s1}, alternating[] = {c0, s0, c1, s1};
  const float halves_cos[] = {c0, c1, c0, c1}, halves_sin[] = {s0, s1, s0, s1};
  const float twice_cos[] = {c0, c0, c1, c1}, twice_sin[] = {s0, s0, s1, s1};
  const table_view<float> views[] = {{planar, planar + 2, 1, 2, 2},
                                     {planar, planar + 2, 1, 2, 4},
                                     {alternating, alternating + 1, 1, 2, 4, 2},
                                     {halves_cos, halves_sin, 1, 2, 4, 1},
                                     {twice_cos, twice_sin, 1, 2, 4, 2}};
  on_each_backend_and_pairing([&](pairing p) {
    for (const table_view<float>& rows : views) {
      std::vector<float> x = as<float>(one_to_four);
      rotary::rotate(rotary::thd(x.data(), 1, 1, 4), rows, 0, p);
      expect_near(x, turned_one_to_four(p), 4 * float_ulp);
    }
  });
}

TEST(PairingFaults, ScoreDependsOnWhereTheTokensAre) {
  backends::on_each([](rotary::backend) {
    for (const auto& [m, n] : {std::make_pair(5, 2), std::make_pair(105, 102), std::make_pair(1000005, 1000002)}) {
      const std::vector<double> q = rotated<double>({1, 2, 3, 4}, d4(), m, pairing::split_half);
      const std::vector<double> k = rotated<double>({4, 3, 2, 1}, d4(), n, pairing::split_half);
      EXPECT_NEAR(dot(q, k), -1.6155797111382082, 1e-8) << m;
    }
  });
}

// A model's weights can be permuted so that split-half does what interleaved did: 32 query heads, 4 key heads.
TEST(PairingFaults, ScoresOfPermutedHeadsUnderGroupedQueries) {
  constexpr std::size_t q_heads = 32, k_heads = 4, d = 16, tokens = 3;
  const auto permuted = [](const std::vector<double>& x) {
    std::vector<double> y(x.size());
    for (std::size_t i = 0; i < x.size(); ++i) y[i / d * d + i % d % 2 * (d / 2) + i % d / 2] = x[i];
    return y;
  };
  const spectrum of = make_spectrum(d, 10000.0);
  const table<double> rows(of, 100);
  const std::vector<double> q = reference::numbers<double>(tokens * q_heads * d, 7),
                            k = reference::numbers<double>(tokens * k_heads * d, 9);
  backends::on_each([&](rotary::backend) {
    std::vector<double> q1 = q, k1 = k, q2 = permuted(q), k2 = permuted(k);
    for (auto* x : {&q1, &q2}) {
      rotary::rotate(rotary::thd(x->data(), tokens, q_heads, d), rows, 50,
                     x == &q1 ? pairing::interleaved : pairing::split_half);
    }
    for (auto* x : {&k1, &k2}) {
      rotary::rotate(rotary::thd(x->data(), tokens, k_heads, d), rows, 0,
                     x == &k1 ? pairing::interleaved : pairing::split_half);
    }
    expect_near(permuted(q1), q2, 4e-16);  // the pairings may contract a * c - b * s differently
    for (std::size_t head = 0; head < tokens * q_heads; ++head) {
      const std::size_t of_k = head / q_heads * k_heads + head % q_heads / (q_heads / k_heads);
      double first = 0.0, second = 0.0;
      for (std::size_t i = 0; i < d; ++i) {
        first += q1[head * d + i] * k1[of_k * d + i];
        second += q2[head * d + i] * k2[of_k * d + i];
      }
      EXPECT_NEAR(first, second, 1e-14);
    }
  });
}

TEST(PairingFaults, OptionIgnoredByOnePath) {
  std::vector<float> x = reference::numbers<float>(16, 7);
  const std::vector<float> before = x;
  const tensor_view<float> view = rotary::thd(x.data(), 2, 1, 8);
  const table<float> rows(make_spectrum(8, 10000.0), 4);
  EXPECT_THROW(rotary::rotate(view, rows, 0, layout(pairing::interleaved, 0, pairing::split_half)), rotary::error);
  EXPECT_THROW(rotary::rotate(view, rows, 0, layout(pairing::split_half, 0, pairing::interleaved)), rotary::error);
  EXPECT_THROW(rotary::rotate(view, rows, 0, {}, rotary::slice{2, 2}), rotary::error);
  EXPECT_THROW(rotary::rotate(view, rows, 0, {}, rotary::slice{0, 0}), rotary::error);
  EXPECT_THROW(rotary::rotate(view, rows, 0, {}, {}, std::numeric_limits<double>::quiet_NaN()), rotary::error);
  table_view<float> strange = rows.view();
  strange.pair_step = 3;
  EXPECT_THROW(rotary::rotate(view, strange, 0), rotary::error);
  table_view<float> without_magnitude = rows.view();
  without_magnitude.magnitude = 0.0;
  EXPECT_THROW(rotary::rotate_inverse(view, without_magnitude, 0), rotary::error);
  EXPECT_TRUE(same_bits(x, before));
}

TEST(PairingFaults, AppliedTwice) {
  const double magnitude = 1.3465735902799727;  // 0.1 ln 32 + 1
  const spectrum one(std::vector<double>{1.0}), with_magnitude(std::vector<double>{1.0}, magnitude);
  on_each_backend_and_pairing([&](pairing p) {
    const std::vector<double> k = {1.0, 0.0};
    std::vector<double> cached(2), live = k;
    const step_table<double> step = step_at<double>(one, {1});
    rotary::rotate(tensor_view<const double>(rotary::thd(k.data(), 1, 1, 2)), rotary::thd(cached.data(), 1, 1, 2), step,
                   p);
    rotary::rotate(rotary::thd(live.data(), 1, 1, 2), step, p);
    expect_near(cached, {0.54030230586813972, 0.84147098480789651}, 2e-16);
    EXPECT_TRUE(same_bits(cached, live)) << "of the cached and the live key, one is rotated differently";
    const std::vector<double> scaled = rotated(k, with_magnitude, 1, p);
    expect_near(scaled, {magnitude * 0.54030230586813972, magnitude * 0.84147098480789651}, 5e-16);
    EXPECT_NEAR(std::hypot(scaled[0], scaled[1]), 1.3465735902799727, 1e-15);
  });
}

TEST(PairingFaults, OnlyTheFirstPairOrPositionRight) {
  on_each_backend_and_pairing([](pairing p) {
    std::vector<double> unit(4, 0.0);
    const std::size_t first = p == pairing::split_half ? 1 : 2, second = 3;
    unit[first] = 1.0;
    const std::vector<double> x = rotated(unit, d4(), 1, p);
    EXPECT_NEAR(x[first], 0.99995000041666528, 2e-16);
    EXPECT_NEAR(x[second], std::sin(0.01), 2e-18);
  });
}

// ---- sizes

TEST(SizeFaults, FrequenciesAndPairsFromHeadDimInsteadOfRotaryDim) {
  const spectrum of = make_spectrum(64, 1e7);  // of a head of 256
  on_each_backend_and_pairing([&](pairing p) {
    std::vector<double> unit(256, 0.0);
    const std::size_t first = p == pairing::split_half ? 1 : 2, second = p == pairing::split_half ? 33 : 3;
    unit[first] = 1.0;
    const std::vector<double> x = rotated(unit, of, 1000, p);
    EXPECT_NEAR(x[first], std::cos(604.29639023813282), 1e-12);
    EXPECT_NEAR(x[second], std::sin(604.29639023813282), 1e-12);
    for (std::size_t i = 0; i < 256; ++i) {
      EXPECT_TRUE(x[i] == 0.0 || i == first || i == second) << i;
    }
  });
}

TEST(SizeFaults, ProportionalAndContiguousPartialRotationConfused) {
  const std::vector<double> x = {1, 2, 3, 4, 5, 6, 7, 8};
  backends::on_each([&](rotary::backend) {
    expect_near(rotated(x, make_spectrum(4, 10000.0), 1, pairing::split_half),
                {-1.98411064856, 1.9599006675, 2.46237790241, 4.01979966833, 5, 6, 7, 8}, 1e-11);
    expect_near(rotated(x, make_spectrum(8, 10000.0, rotary::proportional{0.5}), 1, pairing::split_half),
                {-3.66705261817, 1.39100783068, 3, 4, 3.54298251415, 6.16969182496, 7, 8}, 1e-11);
  });
}

TEST(SizeFaults, ShiftUsesTheHeadSize) {
  const spectrum of = make_spectrum(32, 10000.0);
  on_each_backend_and_pairing([&](pairing p) {
    std::vector<float> key = reference::numbers<float>(3 * 80, 7);
    for (std::size_t t = 0; t < 3; ++t) {  // a NaN with a payload beyond the 32 channels
      key[t * 80 + 79] = reference::bits_as<float>(std::uint32_t{0x7fc12345});
    }
    std::vector<float> x = key;
    rotary::rotate(rotary::thd(x.data(), 3, 1, 80), step_at(of, {-64, -64, 7}), p);
    for (std::size_t t = 0; t < 3; ++t) {
      EXPECT_EQ(std::memcmp(&x[t * 80 + 32], &key[t * 80 + 32], 48 * sizeof(float)), 0) << "the tail of token " << t;
      EXPECT_NE(std::memcmp(&x[t * 80], &key[t * 80], 32 * sizeof(float)), 0);
    }
    EXPECT_NEAR(of.inv_freq()[1], 0.56234132519034908, 1e-16);
  });
}

// [tokens, heads, head_dim] of a padded buffer, into another with other strides.
template <class T>
void expect_partial_strided_out_of_place(pairing p, std::size_t heads, std::size_t offset) {
  constexpr std::size_t tokens = 3, head_dim = 24, pairs = 5, from_token = 1000, to_token = 1313;
  const std::ptrdiff_t from_head = 27, to_head = 33;
  const spectrum of = make_spectrum(2 * pairs, 10000.0);
  const std::vector<T> source = reference::numbers<T>(tokens * from_token, 7);
  std::vector<T> destination(tokens * to_token, static_cast<T>(7.0f));
  const tensor_view<const T> from{source.data(), 1, tokens, heads, head_dim, 0, from_token, from_head};
  const tensor_view<T> to{destination.data(), 1, tokens, heads, head_dim, 0, to_token, to_head};
  rotary::rotate(from, to, step_at(of, {5, -9, 131071}), layout(p, offset));
  const std::int64_t positions[] = {5, -9, 131071};
  std::vector<bool> of_a_head(destination.size(), false);
  for (std::size_t t = 0; t < tokens; ++t) {
    for (std::size_t h = 0; h < heads; ++h) {
      const T* const in = source.data() + t * from_token + h * static_cast<std::size_t>(from_head);
      const std::size_t out_at = t * to_token + h * static_cast<std::size_t>(to_head);
      double block[2 * pairs], expected[2 * pairs], cos[pairs], sin[pairs];
      for (std::size_t i = 0; i < 2 * pairs; ++i) block[i] = static_cast<double>(in[offset + i]);
      for (std::size_t j = 0; j < pairs; ++j) {
        const reference::phasor at = reference::phasor_at(positions[t], of.inv_freq()[j]);
        cos[j] = static_cast<double>(at.cos);
        sin[j] = static_cast<double>(at.sin);
      }
      const bool interleaved = p == pairing::interleaved;
      reference::rotate_block(block, expected, pairs, cos, sin, interleaved, interleaved);
      for (std::size_t i = 0; i < head_dim; ++i) {
        of_a_head[out_at + i] = true;
        if (i >= offset && i < offset + 2 * pairs) {
          ASSERT_NEAR(static_cast<double>(destination[out_at + i]), expected[i - offset],
                      sizeof(T) == 2 ? 0x1p-8 : 4e-7);
        } else {
          ASSERT_EQ(std::memcmp(&destination[out_at + i], &in[i], sizeof(T)), 0) << "channel " << i;
        }
      }
    }
  }
  for (std::size_t i = 0; i < destination.size(); ++i) {
    ASSERT_TRUE(of_a_head[i] || static_cast<float>(destination[i]) == 7.0f) << "written between the heads";
  }
}

TEST(SizeFaults, PartialStridedOutOfPlaceAndGroupedTogether) {
  on_each_backend_and_pairing([](pairing p) {
    for (const std::size_t heads : {std::size_t{32}, std::size_t{4}, std::size_t{1}}) {
      for (const std::size_t offset : {std::size_t{0}, std::size_t{7}, std::size_t{14}}) {
        expect_partial_strided_out_of_place<float>(p, heads, offset);
        expect_partial_strided_out_of_place<bfloat16>(p, heads, offset);
      }
    }
  });
}

// One token at position 131, two heads, against double: the length of each pair and the values.
void expect_size_works(std::size_t d, pairing p) {
  const spectrum of = make_spectrum(d, 10000.0);
  const std::vector<float> before = reference::numbers<float>(2 * d, static_cast<std::uint32_t>(d));
  std::vector<float> x = before;
  rotary::rotate(rotary::thd(x.data(), 1, 2, d), step_at(of, {131}), p);
  const bool interleaved = p == pairing::interleaved;
  double of_values = 0.0, of_lengths = 0.0;
  for (std::size_t head = 0; head < 2 * d; head += d) {
    for (std::size_t j = 0; j < d / 2; ++j) {
      const std::size_t a = head + reference::first_channel(interleaved, j);
      const std::size_t b = head + reference::second_channel(interleaved, d / 2, j);
      const double cos = std::cos(131.0 * of.inv_freq()[j]), sin = std::sin(131.0 * of.inv_freq()[j]);
      const double u = double{before[a]}, v = double{before[b]}, length = std::hypot(u, v);
      of_values = reference::larger(of_values, std::fabs(double{x[a]} - (u * cos - v * sin)) / length);
      of_values = reference::larger(of_values, std::fabs(double{x[b]} - (v * cos + u * sin)) / length);
      of_lengths = reference::larger(of_lengths, std::fabs(std::hypot(double{x[a]}, double{x[b]}) / length - 1.0));
    }
  }
  EXPECT_LE(of_values, 3 * 0x1p-24) << "rotary_dim " << d;
  EXPECT_LE(of_lengths, 1e-6) << "rotary_dim " << d;
}

TEST(SizeFaults, PaddedOrOnlySomeSizesWork) {
  on_each_backend_and_pairing([](pairing p) {
    for (std::size_t d = 2; d <= 576; d += 2) expect_size_works(d, p);
  });
}

TEST(SizeFaults, OddSizesAcceptedAndFailingLater) {
  for (const std::size_t d : {std::size_t{1}, std::size_t{9}, std::size_t{65}}) {
    EXPECT_THROW(make_spectrum(d, 10000.0), rotary::error) << d;
  }
  EXPECT_THROW(rotary::rotary_dim(100, 0.25), rotary::error);
  // One channel too few for the last pair:
  std::vector<float> x(65, 1.0f);
  EXPECT_THROW(rotary::rotate(rotary::thd(x.data(), 1, 1, 65), table<float>(make_spectrum(66, 10000.0), 2), 1),
               rotary::error);
  EXPECT_EQ(x, std::vector<float>(65, 1.0f));
  EXPECT_NO_THROW(rotary::rotate(rotary::thd(x.data(), 1, 1, 65), table<float>(make_spectrum(64, 10000.0), 2), 1));
  EXPECT_EQ(x[64], 1.0f);
}

TEST(SizeFaults, AxesSplitDifferently) {
  EXPECT_NO_THROW(make_spectrum(64, 10000.0, rotary::axial{{24, 20, 20}}));
  EXPECT_THROW(make_spectrum(64, 10000.0, rotary::axial{{22, 21, 21}}), rotary::error);
  EXPECT_THROW(make_spectrum(128, 10000.0, rotary::axial{{24, 20, 20}}), rotary::error);
}

TEST(SizeFaults, TableWiderThanTheHead) {
  on_each_backend_and_pairing([](pairing p) {
    std::vector<float> x = reference::numbers<float>(2 * 64, 7);
    const std::vector<float> before = x;
    const table<float> wide(make_spectrum(66, 10000.0), 4), fits(make_spectrum(60, 10000.0), 4);
    const tensor_view<float> view = rotary::thd(x.data(), 2, 1, 64);
    EXPECT_THROW(rotary::rotate(view, wide, 0, p), rotary::error);
    EXPECT_THROW(rotary::rotate(view, fits, 0, layout(p, 5)), rotary::error);
    EXPECT_THROW(rotary::rotate(view, fits, 0, layout(p, ~std::size_t{0})), rotary::error);
    EXPECT_TRUE(same_bits(x, before));
    EXPECT_NO_THROW(rotary::rotate(view, fits, 0, layout(p, 4)));
  });
}

// ---- bounds

TEST(BoundsFaults, PositionsOutsideTheTableReadOutOfBounds) {
  constexpr std::int64_t length = 100;
  const table<float> rows(make_spectrum(8, 10000.0), length);
  backends::on_each([&](rotary::backend) {
    for (const std::int64_t position :
         {std::int64_t{-1}, std::int64_t{-2147483648}, length, std::int64_t{2147483648},
          std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::min()}) {
      std::vector<float> x = reference::numbers<float>(2 * 8, 7);
      const std::vector<float> before = x;
      const tensor_view<float> two = rotary::thd(x.data(), 2, 1, 8);
      const std::int64_t ids[] = {0, position}, first[] = {position, 0};
      EXPECT_THROW(rotary::rotate(two, rows, rotary::positions(ids, 2)), rotary::error) << position;
      EXPECT_THROW(rotary::rotate(two, rows, rotary::positions(first, 2)), rotary::error) << position;
      EXPECT_THROW(rotary::rotate(two, rows, position), rotary::error) << position;
      EXPECT_THROW(rotary::rotate(two, rows, rotary::positions::per_sequence(&position, 1)), rotary::error) << position;
      EXPECT_TRUE(same_bits(x, before)) << position;
    }
    std::vector<float> x = reference::numbers<float>(8, 7);
    EXPECT_NO_THROW(rotary::rotate(rotary::thd(x.data(), 1, 1, 8), rows, length - 1));
  });
}

TEST(BoundsFaults, NegativePositionsUndefined) {
  backends::on_each([](rotary::backend) {
    const std::vector<double> expected = {3.0647152602918292, 2.0398993341699972, 0.77943593279652265,
                                          3.9798003349983278};
    expect_near(rotated(one_to_four, d4(), -1, pairing::split_half), expected, 1e-15);
    std::vector<double> x = one_to_four;
    rotary::rotate(rotary::thd(x.data(), 1, 1, 4), table<double>(d4(), 3, -2), -1);
    expect_near(x, expected, 1e-15);
  });
}

// The check must see the position that each token uses, not a total or the first.
TEST(BoundsFaults, CheckedOnOneQuantityAndIndexedByAnother) {
  const table<float> rows(make_spectrum(8, 10000.0), 100);
  std::vector<float> x = reference::numbers<float>(2 * 3 * 8, 7);
  const std::vector<float> before = x;
  const tensor_view<float> view = rotary::bshd(x.data(), 2, 3, 1, 8);
  const std::int32_t late[] = {0, 98}, fits[] = {0, 97};
  EXPECT_THROW(rotary::rotate(view, rows, rotary::positions::per_sequence(late, 2)), rotary::error);
  EXPECT_THROW(rotary::rotate(view, rows, 98), rotary::error);
  for (std::size_t bad = 0; bad < 6; ++bad) {
    std::int64_t ids[6] = {0, 1, 2, 3, 4, 5};
    ids[bad] = 100;
    EXPECT_THROW(rotary::rotate(view, rows, rotary::positions(ids, 6)), rotary::error);
    // Also where the slice of this call does not hold the bad token.
    EXPECT_THROW(rotary::rotate(view, rows, rotary::positions(ids, 6), {}, rotary::slice{5 - bad, 6}), rotary::error);
  }
  EXPECT_TRUE(same_bits(x, before));
  EXPECT_NO_THROW(rotary::rotate(view, rows, rotary::positions::per_sequence(fits, 2)));
}

TEST(BoundsFaults, TableShorterThanTheServedLength) {
  const spectrum of = make_spectrum(128, 10000.0, rotary::linear{4.0});  // 2048 tokens, served with 8192
  const table<float> rows(of, 8192);
  backends::on_each([&](rotary::backend) {
    std::vector<float> unit(128, 0.0f);
    unit[0] = 1.0f;
    rotary::rotate(rotary::thd(unit.data(), 1, 1, 128), rows, 8191);
    EXPECT_NEAR(double{unit[0]}, 0.84275784989906255, 0x1p-24);
    EXPECT_NEAR(double{unit[64]}, -0.53829286307131098, 0x1p-24);
  });
}

// Two tokens more than 2^31 elements apart, in memory that is reserved but not there.
template <class T>
void expect_far_tokens_rotated(pairing p) {
  constexpr std::size_t stride = (std::size_t{1} << 31) + 64, bytes = (stride + 4) * sizeof(T);
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  T* const x = static_cast<T*>(memory);
  for (std::size_t i = 0; i < 4; ++i) x[i] = x[stride + i] = static_cast<T>(static_cast<float>(i + 1));
  const tensor_view<T> forwards{x, 1, 2, 1, 4, 0, static_cast<std::ptrdiff_t>(stride), 4};
  const tensor_view<T> backwards{x + stride, 1, 2, 1, 4, 0, -static_cast<std::ptrdiff_t>(stride), 4};
  rotary::rotate(forwards, step_at(d4(), {0, 2}), p);
  rotary::rotate_adjoint(backwards, step_at(d4(), {1, 0}), p);
  const double permitted = sizeof(T) == 2 ? 0x1p-4 : 1e-6;
  expect_near(std::vector<T>(x, x + 4), one_to_four, 0.0);
  expect_near(std::vector<T>(x + stride, x + stride + 4), turned_one_to_four(p), permitted);
  munmap(memory, bytes);
}

TEST(BoundsFaults, OffsetsOfThirtyTwoBits) {
  on_each_backend_and_pairing([](pairing p) {
    expect_far_tokens_rotated<float>(p);
    expect_far_tokens_rotated<bfloat16>(p);
  });
}

TEST(BoundsFaults, TokenCountTakenFromThePositions) {
  const table<float> rows(make_spectrum(8, 10000.0), 100);
  std::vector<float> x = reference::numbers<float>(5 * 8, 7);
  const std::vector<float> before = x;
  const std::int32_t ids[15] = {0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4};  // as 3 axes of 5 tokens
  EXPECT_THROW(rotary::rotate(rotary::thd(x.data(), 5, 1, 8), rows, rotary::positions(ids, 15)), rotary::error);
  EXPECT_THROW(rotary::rotate(rotary::thd(x.data(), 5, 1, 8), rows, rotary::positions(ids, 4)), rotary::error);
  step_table<float> step(make_spectrum(8, 10000.0));
  step.assign(ids, 15);
  EXPECT_THROW(rotary::rotate(rotary::thd(x.data(), 5, 1, 8), step), rotary::error);
  EXPECT_TRUE(same_bits(x, before));
  EXPECT_NO_THROW(rotary::rotate(rotary::thd(x.data(), 5, 1, 8), rows, rotary::positions(ids, 5)));
}

TEST(BoundsFaults, WholeTableNeededForAHugeMaximum) {
  const spectrum of = make_spectrum(128, 500000.0);
  const step_table<float> step = step_at(of, {10485759});  // a table of all would have 5.4 GB
  for (std::size_t j = 0; j < 64; ++j) {
    const reference::phasor exact = reference::phasor_at(10485759, of.inv_freq()[j]);
    EXPECT_NEAR(double{step.view().cos[j]}, static_cast<double>(exact.cos), 0x1p-25 + 10485759 * 2.3e-16);
    EXPECT_NEAR(double{step.view().sin[j]}, static_cast<double>(exact.sin), 0x1p-25 + 10485759 * 2.3e-16);
  }
}

TEST(BoundsFaults, ZeroTokensOrHeads) {
  float* const nothing = nullptr;
  const table<float> rows(make_spectrum(8, 10000.0), 4);
  const step_table<float> step = step_at(make_spectrum(8, 10000.0), {});
  on_each_backend_and_pairing([&](pairing p) {
    for (const tensor_view<float>& x : {rotary::bshd(nothing, 1, 0, 4, 8), rotary::bshd(nothing, 1, 3, 0, 8),
                                        rotary::bshd(nothing, 0, 3, 4, 8), rotary::bhsd(nothing, 0, 0, 0, 8)}) {
      EXPECT_NO_THROW(rotary::rotate(x, rows, 0, p));
      EXPECT_NO_THROW(rotary::rotate_adjoint(x, rows, 0, p));
      EXPECT_NO_THROW(rotary::rotate_inverse(x, x, rows, 0, p));
    }
    EXPECT_NO_THROW(rotary::rotate(rotary::thd(nothing, 0, 4, 8), step, p));
  });
}

// ---- strides, batches, aliasing

TEST(StrideFaults, OffsetsOfSequencesBroadcastWrongly) {
  const spectrum of = make_spectrum(8, 10000.0);
  const table<float> rows(of, 20);
  on_each_backend_and_pairing([&](pairing p) {
    for (const std::size_t tokens : {std::size_t{1}, std::size_t{3}}) {
      const std::int32_t offsets[] = {5, 9};
      std::vector<float> x = reference::numbers<float>(2 * tokens * 8, 7), expected = x;
      rotary::rotate(rotary::bshd(x.data(), 2, tokens, 1, 8), rows, rotary::positions::per_sequence(offsets, 2), p);
      for (std::size_t b = 0; b < 2; ++b) {
        for (std::size_t t = 0; t < tokens; ++t) {
          const auto head = expected.begin() + static_cast<std::ptrdiff_t>((b * tokens + t) * 8);
          const std::int64_t position = (b == 0 ? 5 : 9) + static_cast<std::int64_t>(t);
          const std::vector<float> one = rotated(std::vector<float>(head, head + 8), of, position, p);
          std::copy(one.begin(), one.end(), head);
        }
      }
      EXPECT_TRUE(same_bits(x, expected));
    }
  });
}

// The rope part of MLA: 64 channels after 128 others, in heads and tokens with room between them.
TEST(StrideFaults, ContiguousTensorAssumed) {
  const spectrum of = make_spectrum(64, 50000.0);
  on_each_backend_and_pairing([&](pairing p) {
    for (const std::size_t heads : {std::size_t{3}, std::size_t{1}}) {
      constexpr std::size_t token_stride = 777, head_stride = 200;
      std::vector<float> x = reference::numbers<float>(4 * token_stride, 7), expected = x;
      const tensor_view<float> whole{x.data(), 1, 4, heads, 192, 0, token_stride, head_stride};
      std::vector<float> other = x;
      const tensor_view<float> of_other{other.data(), 1, 4, heads, 192, 0, token_stride, head_stride};
      const step_table<float> step = step_at(of, {0, 77, 4095, -3});
      rotary::rotate(rotary::channels(whole, 128, 64), step, p);
      rotary::rotate(of_other, step, layout(p, 128));
      const std::int64_t positions[] = {0, 77, 4095, -3};
      for (std::size_t t = 0; t < 4; ++t) {
        for (std::size_t h = 0; h < heads; ++h) {
          const auto block = expected.begin() + static_cast<std::ptrdiff_t>(t * token_stride + h * head_stride + 128);
          const std::vector<float> one = rotated(std::vector<float>(block, block + 64), of, positions[t], p);
          std::copy(one.begin(), one.end(), block);
        }
      }
      EXPECT_TRUE(same_bits(x, expected)) << heads << " heads, a slice of channels";
      EXPECT_TRUE(same_bits(other, expected)) << heads << " heads, an offset";
    }
  });
}

TEST(StrideFaults, SourceOfTheCacheChangedOrCacheUnrotated) {
  const spectrum of = make_spectrum(32, 10000.0);
  on_each_backend_and_pairing([&](pairing p) {
    const std::vector<float> key = reference::numbers<float>(3 * 2 * 32, 7);
    std::vector<float> live = key;
    std::vector<bfloat16> cache(key.size());
    const step_table<float> step = step_at(of, {7, 8, 9});
    rotary::rotate(rotary::thd(live.data(), 3, 2, 32), rotary::thd(cache.data(), 3, 2, 32), step, p);
    EXPECT_TRUE(same_bits(live, key)) << "the source was written";
    rotary::rotate(rotary::thd(live.data(), 3, 2, 32), step, p);
    for (std::size_t i = 0; i < key.size(); ++i) {
      ASSERT_EQ(cache[i].bits, bfloat16(live[i]).bits) << "the cast key is not the rounded key, element " << i;
    }
  });
}

TEST(StrideFaults, DifferentFromRunToRun) {
  const spectrum of = make_spectrum(80, 10000.0);
  const std::vector<float> x = reference::numbers<float>(7 * 3 * 80, 7);
  const step_table<float> step = step_at(of, {0, 5, 2, 2, 99999, -1, 7});
  backends::on_each([&](rotary::backend) {
    std::vector<float> expected = x;
    rotary::rotate(rotary::thd(expected.data(), 7, 3, 80), step);
    for (std::size_t repeat = 0; repeat < 100; ++repeat) {
      std::vector<float> y = x;
      std::vector<std::thread> workers;
      const std::size_t count = 1 + repeat % 5;
      for (std::size_t index = 0; index < count; ++index) {
        workers.emplace_back([&, index] {
          rotary::rotate(rotary::thd(y.data(), 7, 3, 80), step, {}, rotary::slice{index, count});
        });
      }
      for (std::thread& worker : workers) worker.join();
      ASSERT_TRUE(same_bits(y, expected)) << "repeat " << repeat;
    }
  });
}

TEST(StrideFaults, BackwardWithTheWrongSignOrMultiplier) {
  const double magnitude = 1.4158883083359672;
  const spectrum of(make_spectrum(20, 10000.0).inv_freq(), magnitude);
  on_each_backend_and_pairing([&](pairing p) {
    const std::vector<double> x = reference::numbers<double>(2 * 3 * 24, 1),
                              y = reference::numbers<double>(2 * 3 * 24, 2);
    std::vector<double> forward(x.size()), adjoint(x.size()), undone(x.size());
    const step_table<double> step = step_at<double>(of, {3, -70000});
    const auto view = [](auto& v) { return rotary::thd(v.data(), 2, 3, 24); };
    rotary::rotate(view(x), view(forward), step, layout(p, 2));
    rotary::rotate_adjoint(view(y), view(adjoint), step, layout(p, 2));
    rotary::rotate_inverse(view(forward), view(undone), step, layout(p, 2));
    EXPECT_NEAR(dot(forward, y), dot(x, adjoint), 1e-13);
    expect_near(undone, x, 1e-15);
    rotary::rotate_adjoint(view(forward), view(undone), step, layout(p, 2));  // m R^T m R x = m^2 x in the block
    for (std::size_t i = 0; i < x.size(); ++i) {
      const bool in_block = i % 24 >= 2 && i % 24 < 22;
      EXPECT_NEAR(undone[i], x[i] * (in_block ? magnitude * magnitude : 1.0), 2e-15) << i;
    }
    EXPECT_TRUE(same_bits(x, reference::numbers<double>(2 * 3 * 24, 1))) << "the caller's tensor was changed";
    EXPECT_TRUE(same_bits(y, reference::numbers<double>(2 * 3 * 24, 2))) << "the caller's gradient was changed";
  });
}

TEST(StrideFaults, RowIndexUsedForThePosition) {
  backends::on_each([](rotary::backend) {
    for (const std::int64_t shift : {0, 5}) {  // left padding: positions -5 .. 4, or 0 .. 9
      std::vector<double> tokens(10 * 4);
      std::vector<std::int64_t> ids;
      for (std::size_t t = 0; t < 10; ++t) {
        ids.push_back(static_cast<std::int64_t>(t) - 5 + shift);
        const double q[] = {1, 2, 3, 4}, k[] = {4, 3, 2, 1};
        for (std::size_t i = 0; i < 4; ++i) tokens[t * 4 + i] = t == 9 ? q[i] : k[i];
      }
      const table<double> rows(d4(), 20, -10);
      rotary::rotate(rotary::thd(tokens.data(), 10, 1, 4), rows, rotary::positions(ids.data(), 10));
      const std::vector<double> q(tokens.end() - 4, tokens.end()), k(tokens.begin(), tokens.begin() + 4);
      EXPECT_NEAR(dot(q, k), -4.1717456331245035, 1e-14);
    }
  });
}

TEST(StrideFaults, PositionZeroTakenForUnset) {
  on_each_backend_and_pairing([](pairing p) {
    const spectrum of = make_spectrum(12, 10000.0);
    const std::vector<float> x = reference::numbers<float>(3 * 12, 7);
    const std::int64_t ids[] = {6, 0, 6}, offsets[] = {6, 0, 6};
    std::vector<float> by_ids = x, by_offsets = x, by_step = x;
    const table<float> rows(of, 12, -5);
    rotary::rotate(rotary::thd(by_ids.data(), 3, 1, 12), rows, rotary::positions(ids, 3), p);
    rotary::rotate(rotary::bshd(by_offsets.data(), 3, 1, 1, 12), rows, rotary::positions::per_sequence(offsets, 3), p);
    rotary::rotate(rotary::thd(by_step.data(), 3, 1, 12), step_at(of, {6, 0, 6}), p);
    EXPECT_EQ(std::memcmp(&by_ids[12], &x[12], 12 * sizeof(float)), 0) << "position 0 is no rotation";
    EXPECT_NE(std::memcmp(&by_ids[24], &x[24], 12 * sizeof(float)), 0);
    EXPECT_TRUE(same_bits(by_ids, by_offsets));
    EXPECT_TRUE(same_bits(by_ids, by_step));
  });
}

// ---- scaling, as far as it shows in rotated keys

// Keys cached with one theta and read with another: rotating by the difference of the spectra gives the direct
// rotation.
TEST(ScalingFaults, CachedKeysKeepAnOlderTheta) {
  const rotary::dynamic_ntk policy{2.0, 2048};
  const spectrum before = make_spectrum(128, 10000.0, policy, 2048), after = make_spectrum(128, 10000.0, policy, 4096);
  std::vector<double> difference;
  for (std::size_t j = 0; j < 64; ++j) difference.push_back(after.inv_freq()[j] - before.inv_freq()[j]);
  EXPECT_NEAR(2000.0 * -difference[1], 29.94, 0.01);
  EXPECT_NEAR(2000.0 * -difference[32], 8.55, 0.01);
  EXPECT_NEAR(2000.0 * -difference[48], 1.13, 0.01);
  on_each_backend_and_pairing([&](pairing p) {
    const std::vector<double> key = reference::numbers<double>(128, 7);
    const std::vector<double> cached = rotated(key, before, 2000, p), direct = rotated(key, after, 2000, p);
    const std::vector<double> moved = rotated(cached, spectrum(difference), 2000, p);
    expect_near(moved, direct, 2e-12);
    double stale = 0.0;
    for (std::size_t i = 0; i < 128; ++i) stale = reference::larger(stale, std::fabs(cached[i] - direct[i]));
    EXPECT_GT(stale, 0.1) << "the two thetas cannot be told apart";
  });
}

TEST(ScalingFaults, ShiftAppliesTheMultiplierAgain) {
  const spectrum model(make_spectrum(32, 10000.0).inv_freq(), 1.4158883083359672);
  const spectrum for_shifts(model.inv_freq(), 1.0);
  on_each_backend_and_pairing([&](pairing p) {
    const std::vector<double> key = reference::numbers<double>(32, 7), at_100 = rotated(key, model, 100, p);
    std::vector<double> x = at_100;
    for (int i = 0; i < 10; ++i) x = rotated(x, for_shifts, -7, p);
    EXPECT_NEAR(dot(x, x), dot(at_100, at_100), 1e-13);
    EXPECT_NEAR(dot(x, x), dot(key, key) * 1.4158883083359672 * 1.4158883083359672, 1e-13);
    expect_near(x, rotated(key, model, 30, p), 1e-13);
  });
}

TEST(ScalingFaults, FinalMultiplierAppliedTwiceOrToTheTail) {
  const spectrum of(make_spectrum(8, 10000.0).inv_freq(), 1.4852030263919617);
  on_each_backend_and_pairing([&](pairing p) {
    EXPECT_EQ(table<double>(of, 1).view().cos[0], 1.4852030263919617);
    const std::vector<double> x = reference::numbers<double>(12, 7), y = rotated(x, of, 0, p);
    for (std::size_t i = 0; i < 12; ++i) EXPECT_DOUBLE_EQ(y[i], i < 8 ? 1.4852030263919617 * x[i] : x[i]);
  });
}

TEST(ScalingFaults, OneSpectrumForAllLayerTypes) {
  const spectrum global = make_spectrum(256, 1e6, rotary::linear{8.0}), local = make_spectrum(256, 1e4);
  const step_table<double> of_global = step_at<double>(global, {100}), of_local = step_at<double>(local, {100});
  EXPECT_NEAR(of_global.view().cos[0], std::cos(12.5), 1e-14);
  EXPECT_NEAR(of_local.view().cos[0], std::cos(100.0), 1e-13);
}

// ---- state

TEST(StateFaults, CacheOfTablesWithAnIncompleteKey) {
  const spectrum wide = make_spectrum(16, 10000.0), narrow = make_spectrum(8, 10000.0),
                 other = make_spectrum(16, 500000.0);
  const spectrum louder(wide.inv_freq(), 2.0);
  for (int repeat = 0; repeat < 2; ++repeat) {
    for (const spectrum* of : {&wide, &narrow, &other, &louder}) {
      for (const std::int64_t first : {0, 64}) {
        const table<double> rows(*of, 64, first);
        ASSERT_EQ(rows.pairs(), of->pairs());
        const std::size_t j = of->pairs() - 1;
        const double angle = static_cast<double>(first + 5) * of->inv_freq()[j];
        EXPECT_NEAR(rows.rows(first + 5, 1).cos[j], of->magnitude() * std::cos(angle), 1e-14);
        EXPECT_NEAR(rows.rows(first + 5, 1).sin[j], of->magnitude() * std::sin(angle), 1e-14);
      }
    }
  }
}

// ---- build: alignment of pointers, as far as a program can show it

// Every pointer one element off: of source, destination, cos and sin.
template <class T>
void expect_same_result_one_element_off(pairing p) {
  constexpr std::size_t tokens = 2, heads = 3, d = 72, count = tokens * heads * d;
  const step_table<float> step = step_at(make_spectrum(d, 10000.0), {3, 99});
  const std::vector<T> x = reference::numbers<T>(count, 7);
  std::vector<T> expected(count);
  rotary::rotate(rotary::thd(x.data(), tokens, heads, d), rotary::thd(expected.data(), tokens, heads, d), step, p);

  std::vector<T> from(count + 1), to(count + 1);
  std::copy(x.begin(), x.end(), from.begin() + 1);
  std::vector<float> cos(1 + tokens * d / 2), sin(cos);
  for (std::size_t t = 0; t < tokens; ++t) {
    std::copy_n(step.view().cos + t * d, d / 2, cos.begin() + static_cast<std::ptrdiff_t>(1 + t * d / 2));
    std::copy_n(step.view().sin + t * d, d / 2, sin.begin() + static_cast<std::ptrdiff_t>(1 + t * d / 2));
  }
  const table_view<float> rows{cos.data() + 1, sin.data() + 1, tokens, d / 2, d / 2};
  rotary::rotate(rotary::thd(from.data() + 1, tokens, heads, d), rotary::thd(to.data() + 1, tokens, heads, d), rows, 0,
                 p);
  EXPECT_EQ(std::memcmp(to.data() + 1, expected.data(), count * sizeof(T)), 0);
  rotary::rotate(rotary::thd(from.data() + 1, tokens, heads, d), rows, 0, p);
  EXPECT_EQ(std::memcmp(from.data() + 1, expected.data(), count * sizeof(T)), 0);
}

TEST(BuildFaults, AlignedLoadsFromPointersThatAreNot) {
  on_each_backend_and_pairing([](pairing p) {
    expect_same_result_one_element_off<float>(p);
    expect_same_result_one_element_off<double>(p);
    expect_same_result_one_element_off<float16>(p);
    expect_same_result_one_element_off<bfloat16>(p);
  });
}

}  // namespace
