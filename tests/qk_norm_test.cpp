// norm_and_rotate and norm_and_append: the formula from its definition, every order, type and pairing; slices, places
// and backends; and what they refuse.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <rotary/qk_norm.hpp>
#include <rotary/rope.hpp>
#include <rotary/rotary.hpp>
#include <string>
#include <vector>

#include "allocations.hpp"
#include "caches.hpp"
#include "every_backend.hpp"
#include "guarded.hpp"
#include "reference.hpp"
#include "refusals.hpp"
#include "type_names.hpp"

namespace {

using caches::bfloat16;
using caches::filled;
using caches::float16;
using caches::numbers;
using refusals::expect_refused;
using rotary::layout;
using rotary::norm_order;
using rotary::pairing;
using rotary::positions;
using rotary::query_scale;
using rotary::rms_norm;
using rotary::slice;
using rotary::slot_list;
using rotary::spectrum;
using rotary::step_table;
using rotary::table;
using rotary::tensor_view;

/// A call: sizes, an order of axes with gaps or without, and how it rotates.
struct scene {
  std::size_t batch, tokens, heads, head_dim, rotary_dim;
  layout how;
  std::string axes;  // "bshd", "bhsd", or "gaps": bshd with elements between heads and between tokens

  std::size_t all() const { return batch * tokens; }
  std::vector<std::int64_t> ids() const {
    std::vector<std::int64_t> result;
    for (std::size_t i = 0; i < all(); ++i) {
      const std::int64_t t = static_cast<std::int64_t>(i);
      result.push_back(i % 5 == 3 ? (t % 2 == 0 ? 2147483000 + t : -700 - t) : 40 + t);
    }
    return result;
  }
  spectrum turns() const { return spectrum(reference::inverse_frequencies(rotary_dim, 10000.0), 1.25); }

  std::size_t elements() const { return batch * tokens * (heads * (head_dim + 3) + 5); }
  template <class T>
  tensor_view<T> view(T* data) const {
    if (axes == "bhsd") return rotary::bhsd(data, batch, heads, tokens, head_dim);
    tensor_view<T> x = rotary::bshd(data, batch, tokens, heads, head_dim);
    if (axes == "gaps") {
      x.head_stride = static_cast<std::ptrdiff_t>(head_dim + 3);
      x.token_stride = static_cast<std::ptrdiff_t>(heads) * x.head_stride + 5;
      x.batch_stride = static_cast<std::ptrdiff_t>(tokens) * x.token_stride;
    }
    return x;
  }
  /// Of element [token, head, 0], tokens counted over the batch.
  template <class T>
  std::size_t at(const tensor_view<T>& x, std::size_t token, std::size_t head) const {
    return static_cast<std::size_t>(static_cast<std::ptrdiff_t>(token / tokens) * x.batch_stride +
                                    static_cast<std::ptrdiff_t>(token % tokens) * x.token_stride +
                                    static_cast<std::ptrdiff_t>(head) * x.head_stride);
  }
};

const std::vector<scene>& scenes() {
  using p = pairing;
  static const std::vector<scene> all = {
      {1, 7, 40, 128, 128, p::split_half, "bshd"},
      {2, 5, 3, 128, 128, p::interleaved, "bhsd"},
      {1, 4, 1, 8, 8, p::split_half, "bshd"},
      {1, 3, 5, 20, 20, p::interleaved, "gaps"},
      {3, 3, 2, 64, 64, p::split_half, "bhsd"},
      {1, 9, 3, 80, 32, p::split_half, "gaps"},
      {2, 2, 7, 96, 36, {p::interleaved, 22}, "bshd"},
      {1, 5, 2, 256, 64, {p::split_half, 192}, "bhsd"},
      {1, 3, 3, 576, 64, {p::interleaved, 512}, "gaps"},
      {1, 2, 2, 1021, 1018, {p::split_half, 1}, "bshd"},
      {1, 3, 2, 1024, 994, {p::interleaved, 30}, "bhsd"},  // the longest row of factors
      {1, 4, 2, 40, 0, p::split_half, "bshd"},
  };
  return all;
}

template <class T>
double wide(T x) {
  return caches::value(x);
}

/// A head from its definition, in long double: no code of the library but the numbers of its table's type.
template <class T>
struct expected {
  std::vector<long double> value;  // [head_dim]
  std::vector<long double> size;   // |a cos| + |b sin| of a channel's pair, which errors are relative to

  expected(const scene& s, const T* x, const std::vector<float>& weight, bool one_plus, long double eps,
           norm_order order, const reference::rows<long double>& rows, std::size_t token, long double scale)
      : value(s.head_dim), size(s.head_dim) {
    std::vector<long double> now(s.head_dim);
    for (std::size_t i = 0; i < s.head_dim; ++i) now[i] = static_cast<long double>(wide(x[i]));
    if (order == norm_order::before_rotation) normalise(now, weight, one_plus, eps);
    std::vector<long double> turned = now, sizes(s.head_dim);
    for (std::size_t i = 0; i < s.head_dim; ++i) sizes[i] = std::fabs(now[i]);
    turn(s, now, turned, rows, token, false);
    turn(s, now, sizes, rows, token, true);
    const std::vector<long double> before = turned;
    if (order == norm_order::after_rotation) normalise(turned, weight, one_plus, eps);
    for (std::size_t i = 0; i < s.head_dim; ++i) {
      value[i] = turned[i] * scale;
      // A norm after the rotation multiplies the pair's size by what it multiplies the channel by.
      const bool zero = before[i] == 0.0L;
      size[i] = std::fabs((zero ? 1.0L : turned[i] / before[i]) * sizes[i] * scale);
    }
  }

 private:
  static void normalise(std::vector<long double>& x, const std::vector<float>& weight, bool one_plus, long double eps) {
    long double sum = 0.0L;
    for (const long double channel : x) sum += channel * channel;
    const long double root = std::sqrt(sum / static_cast<long double>(x.size()) + eps);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const long double by = static_cast<long double>(weight[i]);
      x[i] = x[i] / root * (one_plus ? 1.0L + by : by);
    }
  }
  static void turn(const scene& s, const std::vector<long double>& in, std::vector<long double>& out,
                   const reference::rows<long double>& rows, std::size_t token, bool sizes) {
    const bool read = s.how.pairing == pairing::interleaved, write = s.how.stored == pairing::interleaved;
    const std::size_t pairs = rows.pairs;
    for (std::size_t j = 0; j < pairs; ++j) {
      const long double a = in[s.how.offset + reference::first_channel(read, j)];
      const long double b = in[s.how.offset + reference::second_channel(read, pairs, j)];
      const long double c = rows.cos[token * pairs + j], n = rows.sin[token * pairs + j];
      out[s.how.offset + reference::first_channel(write, j)] =
          sizes ? std::fabs(a * c) + std::fabs(b * n) : a * c - b * n;
      out[s.how.offset + reference::second_channel(write, pairs, j)] =
          sizes ? std::fabs(b * c) + std::fabs(a * n) : b * c + a * n;
    }
  }
};

/// What qk_norm.hpp promises. In units of C, of size: head_dim / 32 + 2.5 of the sum of squares, half of what it is off
/// by itself (the products and additions of a partial sum, and four more additions); 1 of its root, which is taken in
/// double, or 4 of it if that is all there is; 7 of 1 + weight, scale, cos * scale, that times the weight, the channel
/// times the root, the product with the factor, the sum of two. A norm after the rotation has 1.5 more, of the squares'
/// factors cos^2 + sin^2. In units of Row: cos and sin, and the root of the factors of squares, which are made of them;
/// rows are off by |position| * 2.3e-16, too.
template <class To, class C, class Row>
double permitted(const scene& s, norm_order order, long double value, long double size, std::int64_t position) {
  constexpr bool in_double = std::is_same<C, double>::value;
  const double steps = static_cast<double>(s.head_dim) / 32.0 + (in_double ? 15.0 : 12.0);
  const double arithmetic = steps * (in_double ? 0x1p-53 : 0x1p-24);
  const double of_rows = std::is_same<Row, double>::value ? 0x1p-53 : 0x1p-24;
  // Of |a| + |b|: twice the root of 8 at most, since those of larger heads are numbers between -5 and 5, times a
  // weight of 3, a magnitude of 1.25 and a scale of 0.75.
  const double angle = std::fabs(static_cast<double>(position)) * 2.3e-16 * 16.0;
  const double before =
      static_cast<double>(size) * (arithmetic + (order == norm_order::after_rotation ? 2.0 : 1.0) * of_rows) + angle;
  if (std::is_same<To, C>::value) return before;  // the sum of two is the result
  const double most = static_cast<double>(std::fabs(value)) + before;
  if (std::is_same<To, float16>::value) return before + reference::half_ulp(most, 10, -14);
  if (std::is_same<To, bfloat16>::value) return before + reference::half_ulp(most, 7, -126);
  return before + reference::half_ulp(most, 23, -126);
}

/// The largest error of a result, as a share of what is permitted.
template <class C, class Row, class From, class To>
double worst_share(const scene& s, norm_order order, const std::vector<expected<From>>& right,
                   const tensor_view<To>& got) {
  const std::vector<std::int64_t> ids = s.ids();
  double worst = 0.0;
  for (std::size_t i = 0; i < s.all(); ++i) {
    for (std::size_t h = 0; h < s.heads; ++h) {
      const expected<From>& head = right[i * s.heads + h];
      for (std::size_t c = 0; c < s.head_dim; ++c) {
        const long double is = static_cast<long double>(wide(got.data[s.at(got, i, h) + c]));
        const double error = static_cast<double>(std::fabs(is - head.value[c]));
        worst = reference::larger(worst, error / permitted<To, C, Row>(s, order, head.value[c], head.size[c], ids[i]));
      }
    }
  }
  return worst;
}

/// C: what the call computes in.
template <class From, class To, class C, class Row, bool InPlace = false>
void expect_formula(const scene& s, norm_order order, bool one_plus) {
  SCOPED_TRACE(std::to_string(s.head_dim) + s.axes + " order " + std::to_string(static_cast<int>(order)) +
               (one_plus ? " 1 + w" : " w"));
  const std::vector<std::int64_t> ids = s.ids();
  const reference::rows<long double> rows(
      s.rotary_dim == 0 ? std::vector<double>() : reference::inverse_frequencies(s.rotary_dim, 10000.0), ids, 1.25);
  step_table<Row> step(s.turns());
  step.assign(ids.data(), ids.size());
  const std::vector<From> x = numbers<From>(s.elements(), 3, 5.0);
  const std::vector<float> weight = numbers<float>(s.head_dim, 4, 2.0);
  std::vector<float> factors;
  for (std::size_t i = 0; i < s.all(); ++i) factors.push_back(0.75f + 0.125f * static_cast<float>(i % 7));
  const query_scale scale(factors.data(), factors.size(), -0.5);
  rms_norm<float> norm{weight.data(), s.head_dim, 1e-5, one_plus, order};
  if (order == norm_order::none) norm = rotary::no_norm;
  std::vector<expected<From>> right;
  for (std::size_t i = 0; i < s.all(); ++i) {
    for (std::size_t h = 0; h < s.heads; ++h) {
      right.emplace_back(s, &x[s.at(s.view(x.data()), i, h)], weight, one_plus, 1e-5L, order, rows, i,
                         -0.5L * static_cast<long double>(factors[i]));
    }
  }
  backends::on_each([&](rotary::backend) {
    guarded::array<To> got(s.elements());
    const tensor_view<To> to = s.view(got.data());
    if constexpr (InPlace) {
      std::copy(x.begin(), x.end(), got.begin());
      rotary::norm_and_rotate(to, norm, step, s.how, {}, scale);
    } else {
      rotary::norm_and_rotate(s.view(x.data()), to, norm, step, s.how, {}, scale);
    }
    const double worst = worst_share<C, Row>(s, order, right, to);
    EXPECT_LE(worst, 1.0);
  });
}

template <class From, class To, class C, class Row, bool InPlace = false>
void expect_formula_of_each_norm(const scene& s) {
  for (const bool one_plus : {false, true}) {
    expect_formula<From, To, C, Row, InPlace>(s, norm_order::before_rotation, one_plus);
    expect_formula<From, To, C, Row, InPlace>(s, norm_order::after_rotation, one_plus);
  }
  expect_formula<From, To, C, Row, InPlace>(s, norm_order::none, false);
}

template <class T>
class QkNorm : public testing::Test {};
using element_types = testing::Types<float, double, float16, bfloat16>;
TYPED_TEST_SUITE(QkNorm, element_types, type_names);

TYPED_TEST(QkNorm, IsTheFormulaOnEveryBackend) {
  using C = std::conditional_t<std::is_same<TypeParam, double>::value, double, float>;
  for (const scene& s : scenes()) expect_formula_of_each_norm<TypeParam, TypeParam, C, C, true>(s);
}

// The weights are those of the norm's own side.
TYPED_TEST(QkNorm, IsTheFormulaInAnotherPairing) {
  using C = std::conditional_t<std::is_same<TypeParam, double>::value, double, float>;
  for (scene s : scenes()) {
    s.how.stored = s.how.pairing == pairing::interleaved ? pairing::split_half : pairing::interleaved;
    expect_formula_of_each_norm<TypeParam, TypeParam, C, float>(s);
  }
}

TEST(QkNormTypes, OfTheResultMayBeOthers) {
  for (const scene& s : scenes()) {
    expect_formula_of_each_norm<float, bfloat16, float, float>(s);
    expect_formula_of_each_norm<bfloat16, float, float, float>(s);
    expect_formula_of_each_norm<double, float16, double, float>(s);
  }
}

template <class T>
bool same_bytes(const guarded::array<T>& a, const guarded::array<T>& b) {
  return std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

// Slices in any order, in place and into other memory at another place in its cache line: the same bits. The gaps
// between heads stay as they are.
TYPED_TEST(QkNorm, HasTheSameBitsForAnySlicingInAnyPlace) {
  using T = TypeParam;
  for (const scene& s : scenes()) {
    const std::vector<std::int64_t> ids = s.ids();
    step_table<float> step(s.turns());
    step.assign(ids.data(), ids.size());
    const std::vector<T> x = numbers<T>(s.elements() + 1, 5, 3.0);
    const std::vector<float> weight = numbers<float>(s.head_dim, 6);
    const std::vector<float> factors(s.tokens, 1.0f);
    for (const norm_order order : {norm_order::before_rotation, norm_order::after_rotation}) {
      SCOPED_TRACE(std::to_string(s.head_dim) + s.axes);
      const rms_norm<float> norm{weight.data(), s.head_dim, 1e-6, false, order};
      const query_scale scale(factors.data(), factors.size(), 1.5);
      backends::on_each([&](rotary::backend) {
        guarded::array<T> whole(s.elements());
        std::copy(x.begin(), x.end() - 1, whole.begin());
        rotary::norm_and_rotate(s.view(whole.data()), norm, step, s.how, {}, scale);
        for (std::size_t count = 2; count <= 7; ++count) {
          guarded::array<T> parts(s.elements());
          std::copy(x.begin(), x.end() - 1, parts.begin());
          for (std::size_t index = count; index-- > 0;) {
            rotary::norm_and_rotate(s.view(parts.data()), norm, step, s.how, {index, count}, scale);
          }
          EXPECT_TRUE(same_bytes(parts, whole)) << count << " slices";
        }
        guarded::array<T> other(s.elements() + 1);
        std::copy(x.begin(), x.end() - 1, other.begin() + 1);
        rotary::norm_and_rotate(s.view(x.data()), s.view(other.data() + 1), norm, step, s.how, {2, 3}, scale);
        rotary::norm_and_rotate(s.view(x.data()), s.view(other.data() + 1), norm, step, s.how, {0, 3}, scale);
        rotary::norm_and_rotate(s.view(x.data()), s.view(other.data() + 1), norm, step, s.how, {1, 3}, scale);
        EXPECT_EQ(std::memcmp(other.data() + 1, whole.data(), whole.size() * sizeof(T)), 0);
      });
    }
  }
}

// ---- rows and weights of other kinds

template <class W>
void expect_weights(const std::vector<W>& weight) {
  const scene s = {1, 5, 3, 96, 64, {pairing::split_half, 16}, "bshd"};
  std::vector<float> same;
  for (const W w : weight) same.push_back(static_cast<float>(wide(w)));
  const table<float> rows(s.turns(), 100);
  for (const bool one_plus : {false, true}) {
    std::vector<float> a = numbers<float>(s.elements(), 7), b = a;
    rotary::norm_and_rotate(s.view(a.data()), rms_norm<W>{weight.data(), 96, 1e-6, one_plus}, rows, 3, s.how);
    rotary::norm_and_rotate(s.view(b.data()), rms_norm<float>{same.data(), 96, 1e-6, one_plus}, rows, 3, s.how);
    EXPECT_EQ(a, b);
  }
}

TEST(QkNormWeights, OfAnyTypeAreRead) {
  expect_weights(numbers<bfloat16>(96, 8));
  expect_weights(numbers<float16>(96, 8));
  expect_weights(numbers<double>(96, 8));
}

TEST(QkNormWeights, OfOneAreNone) {
  const std::vector<float> ones(64, 1.0f);
  const table<float> rows(rotary::make_spectrum(64, 10000.0), 100);
  std::vector<float> a = numbers<float>(6 * 3 * 64, 9), b = a;
  rotary::norm_and_rotate(rotary::thd(a.data(), 6, 3, 64), rms_norm<float>{ones.data(), 64}, rows, 9);
  rotary::norm_and_rotate(rotary::thd(b.data(), 6, 3, 64), rms_norm<>{}, rows, 9);
  EXPECT_EQ(a, b);
}

template <class Row>
void expect_rows(double tolerance) {
  const table<Row> rows(rotary::make_spectrum(64, 10000.0), 100, -50);
  const table<double> exact(rotary::make_spectrum(64, 10000.0), 100, -50);
  std::vector<Row> alternating;
  for (std::size_t n = 0; n < 100 * 32; ++n) {
    const std::size_t at = n / 32 * static_cast<std::size_t>(rows.view().row_stride) + n % 32;
    alternating.push_back(rows.view().cos[at]);
    alternating.push_back(rows.view().sin[at]);
  }
  const rotary::table_view<Row> pairs = {alternating.data(), alternating.data() + 1, 100, 32, 64, 2, -50};
  const std::vector<float> x = numbers<float>(2 * 4 * 3 * 64, 12);
  const std::vector<std::int32_t> ids = {-50, 49, 0, 7, 8, 9, -3, 3};
  std::vector<float> a = x, b = x;
  std::vector<double> right(x.size());
  const rms_norm<> norm;
  const positions where(ids.data(), ids.size());
  rotary::norm_and_rotate(rotary::bshd(a.data(), 2, 4, 3, 64), norm, rows, where);
  rotary::norm_and_rotate(rotary::bshd(b.data(), 2, 4, 3, 64), norm, pairs, where);
  rotary::norm_and_rotate(rotary::bshd(x.data(), 2, 4, 3, 64), rotary::bshd(right.data(), 2, 4, 3, 64), norm, exact,
                          where);
  EXPECT_EQ(a, b);
  for (std::size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(static_cast<double>(a[i]), right[i], tolerance) << i;
}

// A normalised channel is at most sqrt(64) = 8, so half a unit of cos and of sin adds up to 16 of it, and in float 13
// more of the arithmetic.
TEST(QkNormRows, OfAnyTypeAndOrder) {
  expect_rows<float>(16 * 29 * 0x1p-24);
  expect_rows<double>(16 * 29 * 0x1p-24);
  expect_rows<float16>(16 * 0x1p-11);
  expect_rows<bfloat16>(16 * 0x1p-8);
}

TEST(QkNormRows, OfOneStepForAllSequences) {
  const std::vector<std::int64_t> shared = {5, 9, 700, -3}, each = {5, 9, 700, -3, 5, 9, 700, -3};
  step_table<float> of_tokens(rotary::make_spectrum(64, 10000.0)), of_batch(rotary::make_spectrum(64, 10000.0));
  of_tokens.assign(shared.data(), shared.size());
  of_batch.assign(each.data(), each.size());
  std::vector<float> a = numbers<float>(8 * 3 * 64, 21), b = a;
  rotary::norm_and_rotate(rotary::bshd(a.data(), 2, 4, 3, 64), rms_norm<>{}, of_tokens);
  rotary::norm_and_rotate(rotary::bshd(b.data(), 2, 4, 3, 64), rms_norm<>{}, of_batch);
  EXPECT_EQ(a, b);
}

TEST(QkNormRows, OfATemperature) {
  const rotary::query_temperature temperature{rotary::query_temperature::rule::stepped, 0.1, 4, 0};  // Ministral-3
  std::vector<float> factors;
  for (std::int64_t p = 2; p < 14; ++p) factors.push_back(static_cast<float>(temperature.multiplier(p)));
  const table<double> rows(rotary::make_spectrum(16, 10000.0), 20);
  const std::vector<double> x = numbers<double>(12 * 2 * 24, 13);
  std::vector<double> plain = x, scaled = x;
  rotary::norm_and_rotate(rotary::thd(plain.data(), 12, 2, 24), rms_norm<>{}, rows, 2);
  rotary::norm_and_rotate(rotary::thd(scaled.data(), 12, 2, 24), rms_norm<>{}, rows, 2, {}, {},
                          {factors.data(), factors.size()});
  for (std::size_t i = 0; i < x.size(); ++i) {
    ASSERT_NEAR(scaled[i], plain[i] * static_cast<double>(factors[i / 48]), std::fabs(plain[i]) * 1e-14 + 1e-15) << i;
  }
}

// ---- caches

template <class From, class To>
void expect_append(const scene& s, const std::string& order_of_axes) {
  using dense = std::conditional_t<caches::is_quantised<To>, float, To>;
  const std::vector<std::int64_t> ids = s.ids();
  step_table<float> step(s.turns());
  step.assign(ids.data(), ids.size());
  const std::vector<From> k = numbers<From>(s.elements(), 14, 3.0);
  const std::vector<bfloat16> weight = numbers<bfloat16>(s.head_dim, 15);
  std::vector<std::int64_t> slots;
  const std::size_t block_size = 4, blocks = s.all() / 2 + 1;
  for (std::size_t i = 0; i < s.all(); ++i) {
    slots.push_back(i % 4 == 2 ? slot_list::skip : static_cast<std::int64_t>(s.all() - i));
  }
  filled<To> cache(order_of_axes, blocks, block_size, s.heads, s.head_dim);
  for (const norm_order order : {norm_order::before_rotation, norm_order::after_rotation}) {
    const rms_norm<bfloat16> norm{weight.data(), s.head_dim, 1e-6, true, order};
    backends::on_each([&](rotary::backend) {
      std::vector<dense> turned(s.elements());
      const auto in = s.view(k.data());
      rotary::norm_and_rotate(in, s.view(turned.data()), norm, step, s.how);
      cache.reset();
      for (std::size_t i = 0; i < s.all(); ++i) {
        for (std::size_t h = 0; h < s.heads && slots[i] >= 0; ++h) {
          To* const to = cache.head(static_cast<std::size_t>(slots[i]), h);
          const dense* const from = &turned[s.at(in, i, h)];
          if constexpr (caches::is_quantised<To>) {
            caches::quantise(from, s.head_dim, cache.scale_of(h), to);
          } else {
            std::copy(from, from + s.head_dim, to);
          }
        }
      }
      const std::vector<unsigned char> right = cache.bytes();
      for (const std::size_t count : {1u, 5u}) {
        cache.reset();
        for (std::size_t index = 0; index < count; ++index) {
          rotary::norm_and_append(in, norm, cache.view, {slots.data(), slots.size()}, step, s.how, {index, count});
        }
        EXPECT_TRUE(cache.bytes() == right) << caches::name_of<To>() << " " << count << " slices";
      }
    });
  }
}

TEST(QkNormAppend, HasTheBitsOfNormAndRotate) {
  const scene plain = {2, 9, 3, 64, 64, pairing::split_half, "bhsd"};
  const scene parts = {1, 17, 2, 96, 36, {pairing::interleaved, 22}, "gaps"};
  const scene other = {1, 11, 5, 64, 32, {pairing::interleaved, 0, pairing::split_half}, "bshd"};
  expect_append<float, float>(plain, "nhd");
  expect_append<float, bfloat16>(parts, "hnd");
  expect_append<bfloat16, bfloat16>(other, "strided");
  expect_append<float16, float16>(plain, "strided");
  expect_append<float, caches::float8_e4m3fn>(parts, "nhd");
  expect_append<bfloat16, caches::q8_0>(other, "hnd");
}

TEST(QkNormAppend, CopiesTheValues) {
  const table<float> rows(rotary::make_spectrum(64, 10000.0), 100);
  const std::vector<bfloat16> k = numbers<bfloat16>(6 * 2 * 64, 16), v = numbers<bfloat16>(6 * 2 * 40, 17);
  filled<bfloat16> k_cache("nhd", 3, 4, 2, 64), v_cache("nhd", 3, 4, 2, 40);
  std::vector<bfloat16> right(k.size());
  const rms_norm<> norm;
  rotary::norm_and_rotate(rotary::thd(k.data(), 6, 2, 64), rotary::thd(right.data(), 6, 2, 64), norm, rows, 9);
  rotary::norm_and_append(rotary::thd(k.data(), 6, 2, 64), norm, rotary::thd(v.data(), 6, 2, 40), k_cache.view,
                          v_cache.view, slot_list::range(5, 6), rows, 9);
  EXPECT_EQ(std::memcmp(k_cache.head(5, 0), right.data(), right.size() * sizeof(bfloat16)), 0);
  EXPECT_EQ(std::memcmp(v_cache.head(5, 0), v.data(), v.size() * sizeof(bfloat16)), 0);
}

// ---- numbers beyond the ordinary

/// The head of 44 channels, 32 of them rotated, that becomes what it should; its neighbours are as without `bad`.
void expect_kept_in_head(float bad, std::size_t channel, norm_order order) {
  const table<float> rows(rotary::make_spectrum(32, 10000.0), 100);
  const std::size_t head = 20, partner = channel >= 32 ? channel : (channel + 16) % 32;
  std::vector<float> x = numbers<float>(5 * 9 * 44, 18), y = x;
  x[head * 44 + channel] = bad;
  const rms_norm<float> norm{nullptr, 0, 1e-6, false, order};
  rotary::norm_and_rotate(rotary::thd(x.data(), 5, 9, 44), norm, rows, 1);
  rotary::norm_and_rotate(rotary::thd(y.data(), 5, 9, 44), norm, rows, 1);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const bool in_pair = i % 44 == channel || i % 44 == partner;
    if (i / 44 != head || (order == norm_order::none && !in_pair)) {
      ASSERT_EQ(x[i], y[i]) << i;
    } else if (order == norm_order::none) {
      ASSERT_FALSE(std::isfinite(x[i])) << i;
    } else if (std::isnan(bad) || in_pair) {
      ASSERT_TRUE(std::isnan(x[i])) << i;
    } else {
      ASSERT_EQ(x[i], 0.0f) << i;
    }
  }
}

TEST(QkNormNumbers, ThatAreNoneStayInTheirHead) {
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (const norm_order order : {norm_order::before_rotation, norm_order::after_rotation, norm_order::none}) {
      for (const std::size_t channel : {std::size_t{3}, std::size_t{17}, std::size_t{40}}) {
        backends::on_each([&](rotary::backend) { expect_kept_in_head(bad, channel, order); });
      }
    }
  }
}

/// Three heads, of which the second has these channels.
std::vector<float> beside_ones(float first, float others, norm_order order) {
  const table<float> rows(rotary::make_spectrum(32, 10000.0), 100);
  std::vector<float> x(3 * 32, 1.0f);
  for (std::size_t i = 33; i < 64; ++i) x[i] = others;
  x[32] = first;
  rotary::norm_and_rotate(rotary::thd(x.data(), 1, 3, 32), rms_norm<float>{nullptr, 0, 1e-6, false, order}, rows, 0);
  return x;
}

TEST(QkNormNumbers, WhoseSquaresAreBeyondFloatMakeTheirHeadZero) {
  for (const norm_order order : {norm_order::before_rotation, norm_order::after_rotation}) {
    backends::on_each([&](rotary::backend) {
      EXPECT_NEAR(beside_ones(1e19f, 1.0f, order)[32], std::sqrt(32.0f), 1e-5f);
      EXPECT_NEAR(beside_ones(3e18f, 3e18f, order)[40], 1.0f, 1e-5f);
      for (const std::vector<float>& x : {beside_ones(1.9e19f, 1.0f, order), beside_ones(4e18f, 4e18f, order)}) {
        for (std::size_t i = 0; i < x.size(); ++i)
          ASSERT_NEAR(x[i], i / 32 == 1 ? 0.0f : 1.0f, i / 32 == 1 ? 0.0f : 1e-5f) << i;
      }
    });
  }
}

TEST(QkNormNumbers, OfAHeadOfZeros) {
  const table<float> rows(rotary::make_spectrum(32, 10000.0), 100);
  std::vector<float> x(2 * 32);
  rotary::norm_and_rotate(rotary::thd(x.data(), 1, 2, 32), rms_norm<>{}, rows, 1);
  for (const float channel : x) EXPECT_EQ(channel, 0.0f);
  rotary::norm_and_rotate(rotary::thd(x.data(), 1, 2, 32), rms_norm<>{nullptr, 0, 0.0}, rows, 1);
  for (const float channel : x) EXPECT_TRUE(std::isnan(channel));
}

TEST(QkNormNumbers, NoneOfThemAllocates) {
  const table<float> rows(rotary::make_spectrum(128, 10000.0), 100);
  std::vector<float> x = numbers<float>(50 * 8 * 128, 19);
  filled<bfloat16> cache("nhd", 4, 16, 8, 128);
  allocations::count = 0;
  rotary::norm_and_rotate(rotary::thd(x.data(), 50, 8, 128), rms_norm<>{}, rows, 1);
  rotary::norm_and_append(rotary::thd(x.data(), 50, 8, 128), rms_norm<>{}, cache.view, slot_list::range(3, 50), rows,
                          1);
  EXPECT_EQ(allocations::count, 0u);
  std::vector<float> counted(3);
  EXPECT_GT(allocations::count, 0u) << "the counter does not count";
}

// ---- refusals

/// A call that is in order; `change` breaks it. It must be refused, and nothing be written.
struct call {
  std::vector<float> x = numbers<float>(2 * 6 * 3 * 64 + 64, 20), weight = std::vector<float>(64, 1.0f),
                     factors = std::vector<float>(12, 1.0f);
  table<float> rows = table<float>(rotary::make_spectrum(64, 10000.0), 100);
  tensor_view<float> from = rotary::bshd(x.data(), 2, 6, 3, 64), to = from;
  rms_norm<float> norm = {weight.data(), 64, 1e-6};
  query_scale scale = 1.0;
  layout how = {};
  slice part = {};
  std::int64_t first = 1;

  void run() { rotary::norm_and_rotate(from, to, norm, rows, first, how, part, scale); }
};

template <class Change>
void expect_refused_after(const Change& change, std::initializer_list<const char*> parts) {
  call made;
  change(made);
  const std::vector<float> before = made.x;
  expect_refused([&] { made.run(); }, "norm_and_rotate", parts);
  EXPECT_EQ(made.x, before);
}

TEST(QkNormRefuses, ANormThatDoesNotFit) {
  call().run();
  expect_refused_after([](call& c) { c.norm.weight = nullptr; }, {"norm.weight is a null pointer", "norm.size 64"});
  expect_refused_after([](call& c) { c.norm = {nullptr, 0, 1e-6, true}; }, {"null pointer", "norm.one_plus true"});
  expect_refused_after([](call& c) { c.norm.size = 32; }, {"norm.size is 32", "head_dim = 64"});
  expect_refused_after([](call& c) { c.norm.order = norm_order::none; }, {"norm.order is none"});
  expect_refused_after([](call& c) { c.norm.size = 0; }, {"norm.size is 0", "head_dim = 64"});
  for (const double eps :
       {-1e-6, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), 1e308}) {
    expect_refused_after([eps](call& c) { c.norm.eps = eps; }, {"norm.eps is", "from 0 to 1e300"});
  }
  std::vector<float> wide(1025);
  const table<float> rows(rotary::make_spectrum(64, 10000.0), 10);
  expect_refused([&] { rotary::norm_and_rotate(rotary::thd(wide.data(), 1, 1, 1025), rms_norm<>{}, rows, 1); },
                 "norm_and_rotate", {"head_dim is 1025", "up to 1024"});
}

// 1 + weight is taken in double: weights near -1 would lose their digits in float.
TEST(QkNormNumbers, OnePlusWeightsInDoubleKeepTheirDigits) {
  constexpr std::size_t d = 64;
  std::vector<double> weight(d);
  std::vector<float> x(2 * d), was;
  for (std::size_t i = 0; i < d; ++i) weight[i] = -1.0 + 1e-9 * static_cast<double>(i + 1);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = i % 3 == 0 ? 1.5f : -0.75f;
  was = x;
  const table<float> still(rotary::make_spectrum(d, 10000.0), 1);
  rotary::norm_and_rotate(rotary::thd(x.data(), 1, 2, d), rms_norm<double>{weight.data(), d, 1e-6, true}, still, 0);
  for (std::size_t h = 0; h < 2; ++h) {
    double squares = 0;
    for (std::size_t i = 0; i < d; ++i) squares += static_cast<double>(was[h * d + i]) * was[h * d + i];
    for (std::size_t i = 0; i < d; ++i) {
      const double want = was[h * d + i] / std::sqrt(squares / d + 1e-6) * (1.0 + weight[i]);
      EXPECT_NEAR(x[h * d + i], want, std::fabs(want) * (d / 32.0 + 12) * 0x1p-24) << h << " " << i;
    }
  }
}

TEST(QkNormRefuses, AScaleThatDoesNotFit) {
  const double infinity = std::numeric_limits<double>::infinity();
  expect_refused_after([&](call& c) { c.scale = infinity; }, {"scale is inf", "finite"});
  expect_refused_after([&](call& c) { c.scale = 1e300; }, {"scale is 1e+300", "1.2e-38 and 3e+38"});
  expect_refused_after([&](call& c) { c.scale = 1e-300; }, {"scale is 1e-300", "1.2e-38 and 3e+38"});
  expect_refused_after([](call& c) { c.scale = {c.factors.data(), 5}; }, {"5 factors", "2 sequences of 6 tokens"});
  expect_refused_after([](call& c) { c.scale = {nullptr, 12}; }, {"null pointer with 12"});
  expect_refused_after(
      [&](call& c) {
        c.factors[7] = std::numeric_limits<float>::quiet_NaN();
        c.scale = {c.factors.data(), 12};
      },
      {"factor of token 7 is", "nan"});
  expect_refused_after(
      [&](call& c) {
        c.factors[7] = 3e38f;
        c.scale = {c.factors.data(), 12, 3.0};
      },
      {"factor of token 7 is 3e+38, times scale 3"});
}

TEST(QkNormRefuses, WhatRotateRefuses) {
  expect_refused_after([](call& c) { c.first = 95; }, {"positions 95 to 100", "100 positions"});
  expect_refused_after([](call& c) { c.how.offset = 2; }, {"offset 2", "head_dim = 64"});
  expect_refused_after([](call& c) { c.part = {3, 3}; }, {"slice index is 3"});
  expect_refused_after([](call& c) { c.to.data += 32; }, {"overlap"});
  expect_refused_after([](call& c) { c.to.heads = 2; }, {"must be equal"});
  expect_refused_after([](call& c) { c.to.head_stride = 32; }, {"heads of 64 channels overlap"});
  expect_refused_after([](call& c) { c.from.data = nullptr; }, {"the source is null"});
  expect_refused_after([](call& c) { c.how = {pairing::split_half, 0, pairing::interleaved}; }, {"in place"});
  step_table<float> step(rotary::make_spectrum(64, 10000.0));
  step.assign(std::vector<std::int64_t>{1, 2, 3}.data(), 3);
  call c;
  expect_refused([&] { rotary::norm_and_rotate(c.from, c.norm, step); }, "norm_and_rotate", {"3 rows", "6 tokens"});
}

TEST(QkNormRefuses, WhatAppendRefuses) {
  call c;
  filled<bfloat16> cache("nhd", 3, 4, 3, 64);
  const std::vector<unsigned char> before = cache.bytes();
  const auto refused = [&](const slot_list& slots, std::initializer_list<const char*> parts) {
    expect_refused([&] { rotary::norm_and_append(c.from, c.norm, cache.view, slots, c.rows, 1); }, "norm_and_append",
                   parts);
  };
  refused(slot_list::range(1, 12), {"slot_ids are 12 from 1 on", "12"});
  refused(slot_list::range(0, 11), {"11 slots were given"});
  c.norm.size = 63;
  refused(slot_list::range(0, 12), {"norm.size is 63"});
  EXPECT_TRUE(cache.bytes() == before);
}

TEST(QkNormRefuses, NothingOfAnEmptyTensor) {
  const table<float> rows(rotary::make_spectrum(64, 10000.0), 10);
  rotary::norm_and_rotate(rotary::thd(static_cast<float*>(nullptr), 0, 3, 64), rms_norm<>{}, rows, 1);
  rotary::norm_and_rotate(rotary::thd(static_cast<float*>(nullptr), 3, 0, 64), rms_norm<>{}, rows, 1);
}

}  // namespace
