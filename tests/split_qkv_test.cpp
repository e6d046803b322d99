// split_qkv: q, k and v of all layouts and types against rotate, copies and the definition; slices, memory, refusals.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <rotary/rotary.hpp>
#include <rotary/split_qkv.hpp>
#include <string>
#include <vector>

#include "allocations.hpp"
#include "every_backend.hpp"
#include "guarded.hpp"
#include "memory_habits.hpp"
#include "reference.hpp"
#include "refusals.hpp"

namespace {

using reference::numbers;
using refusals::expect_refused;
using rotary::bfloat16;
using rotary::float16;
using rotary::layout;
using rotary::pairing;
using rotary::slice;
using rotary::step_table;
using rotary::table;
using rotary::tensor_view;

/// A destination in guarded memory, every byte of it 0xa5 at first. order: "bshd", "bhsd", or "strided", with gaps.
template <class T>
class destination {
 public:
  destination(const std::string& order, std::size_t batch, std::size_t tokens, std::size_t heads, std::size_t dim)
      : memory_(batch * (tokens * (heads * (dim + 3) + 1) + 5)) {
    view = rotary::bshd(memory_.data(), batch, tokens, heads, dim);
    if (order == "bhsd") view = rotary::bhsd(memory_.data(), batch, heads, tokens, dim);
    if (order == "strided") {
      view.head_stride = static_cast<std::ptrdiff_t>(dim + 3);
      view.token_stride = static_cast<std::ptrdiff_t>(heads) * view.head_stride + 1;
      view.batch_stride = static_cast<std::ptrdiff_t>(tokens) * view.token_stride + 5;
    }
    reset();
  }
  void reset() { std::memset(static_cast<void*>(memory_.data()), 0xa5, memory_.size() * sizeof(T)); }

  T* head(std::size_t b, std::size_t t, std::size_t h) {
    return view.data + static_cast<std::ptrdiff_t>(b) * view.batch_stride +
           static_cast<std::ptrdiff_t>(t) * view.token_stride + static_cast<std::ptrdiff_t>(h) * view.head_stride;
  }
  /// All bytes, gaps too.
  std::string bytes() const { return {reinterpret_cast<const char*>(memory_.data()), memory_.size() * sizeof(T)}; }
  bool untouched() const { return bytes() == std::string(memory_.size() * sizeof(T), '\xa5'); }

 private:
  guarded::array<T> memory_;

 public:
  tensor_view<T> view;
};

struct scene {
  std::size_t batch, tokens, q_heads, kv_heads, head_dim, rotary_dim;
  layout how;
  const char* orders[3];  // of q, k, v

  std::size_t heads() const { return q_heads + 2 * kv_heads; }
  std::size_t count() const { return batch * tokens * heads() * head_dim; }
  rotary::spectrum spectrum() const { return rotary::make_spectrum(rotary_dim, 10000.0); }
};

// The last has tokens enough for several rounds.
const scene scenes[] = {
    {1, 1, 4, 2, 128, 128, pairing::split_half, {"bshd", "bshd", "bshd"}},
    {2, 5, 3, 1, 64, 64, pairing::interleaved, {"bhsd", "bshd", "strided"}},
    {3, 4, 5, 5, 80, 32, {pairing::split_half, 16}, {"strided", "bhsd", "bhsd"}},
    {1, 7, 1, 1, 96, 96, {pairing::interleaved, 0, pairing::split_half}, {"bhsd", "strided", "bshd"}},
    {2, 3, 2, 1, 22, 10, {pairing::split_half, 7, pairing::interleaved}, {"bshd", "strided", "bhsd"}},
    {2, 75, 6, 3, 256, 256, pairing::split_half, {"bhsd", "bshd", "bshd"}},
};

/// The three destinations of a scene.
template <class Q, class K, class V>
struct destinations {
  destination<Q> q;
  destination<K> k;
  destination<V> v;

  explicit destinations(const scene& s)
      : q(s.orders[0], s.batch, s.tokens, s.q_heads, s.head_dim),
        k(s.orders[1], s.batch, s.tokens, s.kv_heads, s.head_dim),
        v(s.orders[2], s.batch, s.tokens, s.kv_heads, s.head_dim) {}
  void reset() {
    q.reset();
    k.reset();
    v.reset();
  }
  std::string bytes() const { return q.bytes() + k.bytes() + v.bytes(); }
};

template <class To, class From>
To cast(From x) {
  if constexpr (std::is_same<From, To>::value) {
    return x;
  } else if constexpr (std::is_same<From, double>::value || std::is_same<To, double>::value) {
    return static_cast<To>(static_cast<double>(x));
  } else {
    return static_cast<To>(static_cast<float>(x));
  }
}

/// What rotate makes of the parts of packed, and a plain loop of v.
template <class From, class Q, class K, class V, class... Rows>
void expect_parts(const tensor_view<const From>& packed, const scene& s, destinations<Q, K, V>& to,
                  const Rows&... rows) {
  rotary::rotate(rotary::heads(packed, 0, s.q_heads), to.q.view, rows..., s.how);
  rotary::rotate(rotary::heads(packed, s.q_heads, s.kv_heads), to.k.view, rows..., s.how);
  for (std::size_t b = 0; b < s.batch; ++b) {
    for (std::size_t t = 0; t < s.tokens; ++t) {
      for (std::size_t h = 0; h < s.kv_heads; ++h) {
        const From* const from =
            packed.data + ((b * s.tokens + t) * s.heads() + s.q_heads + s.kv_heads + h) * s.head_dim;
        for (std::size_t c = 0; c < s.head_dim; ++c) to.v.head(b, t, h)[c] = cast<V>(from[c]);
      }
    }
  }
}

template <class From, class Q, class K, class V, class Row>
void expect_bits_of_rotate() {
  for (const scene& s : scenes) {
    SCOPED_TRACE("head_dim " + std::to_string(s.head_dim));
    const std::vector<From> x = numbers<From>(s.count(), 1);
    const auto packed = rotary::bshd(x.data(), s.batch, s.tokens, s.heads(), s.head_dim);
    const table<Row> rows(s.spectrum(), 200, -100);
    std::vector<std::int32_t> ids;
    for (std::size_t i = 0; i < s.batch * s.tokens; ++i) ids.push_back(static_cast<std::int32_t>(i * i % 90) - 40);
    std::vector<std::int64_t> offsets;
    for (std::size_t b = 0; b < s.batch; ++b) offsets.push_back(static_cast<std::int64_t>(b) * 9 - 20);
    destinations<Q, K, V> expected(s), got(s);
    backends::on_each([&](rotary::backend) {
      for (const rotary::positions& where : {rotary::positions(-13), rotary::positions(ids.data(), ids.size()),
                                             rotary::positions::per_sequence(offsets.data(), offsets.size())}) {
        expect_parts(packed, s, expected, rows, where);
        for (const std::size_t count : {std::size_t{1}, std::size_t{2}, std::size_t{7}}) {
          got.reset();
          for (std::size_t index = count; index-- > 0;) {
            rotary::split_qkv(packed, got.q.view, got.k.view, got.v.view, rows, where, s.how, {index, count});
          }
          EXPECT_TRUE(got.bytes() == expected.bytes()) << count << " slices";
        }
      }
    });
  }
}

TEST(SplitQkv, HasTheBitsOfRotateForAnySlicing) {
  expect_bits_of_rotate<float, float, bfloat16, bfloat16, float>();
  expect_bits_of_rotate<bfloat16, bfloat16, bfloat16, bfloat16, float>();
  expect_bits_of_rotate<float16, float16, float16, float, float16>();  // half arithmetic where the CPU has it
  expect_bits_of_rotate<double, double, double, bfloat16, double>();
}

TEST(SplitQkv, InMoreSlicesThanHeads) {
  const scene& s = scenes[1];
  const std::vector<float> x = numbers<float>(s.count(), 2);
  const auto packed = rotary::bshd(x.data(), s.batch, s.tokens, s.heads(), s.head_dim);
  const table<float> rows(s.spectrum(), 100);
  destinations<float, float, bfloat16> expected(s), got(s);
  expect_parts(packed, s, expected, rows, rotary::positions(3));
  const std::size_t count = s.batch * s.tokens * s.heads() + 5;
  for (std::size_t index = 0; index < count; ++index) {
    rotary::split_qkv(packed, got.q.view, got.k.view, got.v.view, rows, 3, s.how, {index, count});
  }
  EXPECT_TRUE(got.bytes() == expected.bytes());
}

// Else two threads would meet. Every number is written, and every slice has its share.
TEST(SplitQkv, WritesNothingInTwoSlices) {
  const scene& s = scenes[5];
  const std::vector<float> x = numbers<float>(s.count(), 12);
  const table<float> rows(s.spectrum(), 100);
  const auto packed = rotary::bshd(x.data(), s.batch, s.tokens, s.heads(), s.head_dim);
  destinations<float, float, bfloat16> expected(s), got(s);
  expect_parts(packed, s, expected, rows, rotary::positions(0));
  std::vector<int> once, writers(got.bytes().size(), 0);
  for (const char byte : expected.bytes()) once.push_back(byte != '\xa5');
  for (std::size_t index = 0; index < 13; ++index) {
    got.reset();
    rotary::split_qkv(packed, got.q.view, got.k.view, got.v.view, rows, 0, s.how, {index, 13});
    const std::string bytes = got.bytes();
    for (std::size_t i = 0; i < bytes.size(); ++i) writers[i] += bytes[i] != '\xa5';
    EXPECT_NE(bytes, std::string(bytes.size(), '\xa5')) << "slice " << index;
  }
  EXPECT_TRUE(writers == once);
}

TEST(SplitQkv, TakesAStepForTheBatchOrForAllSequences) {
  const scene& s = scenes[2];
  const std::vector<float> x = numbers<float>(s.count(), 3);
  const auto packed = rotary::bshd(x.data(), s.batch, s.tokens, s.heads(), s.head_dim);
  std::vector<std::int64_t> ids;
  for (std::size_t i = 0; i < s.batch * s.tokens; ++i) ids.push_back(static_cast<std::int64_t>(i) * 77777777 - 300);
  step_table<float> step(s.spectrum());
  destinations<float, bfloat16, float> expected(s), got(s);
  for (const std::size_t count : {s.tokens, s.batch * s.tokens}) {
    step.assign(ids.data(), count);
    expect_parts(packed, s, expected, step);
    rotary::split_qkv(packed, got.q.view, got.k.view, got.v.view, step, s.how);
    EXPECT_TRUE(got.bytes() == expected.bytes()) << count << " rows";
  }
  step.assign(ids.data(), s.tokens + 1);
  expect_refused([&] { rotary::split_qkv(packed, got.q.view, got.k.view, got.v.view, step, s.how); }, "split_qkv",
                 {"step_table has 5 rows", "3 sequences of 4 tokens"});
}

// Against the definition, in long double.
TEST(SplitQkv, RotatesQAndKAndLeavesV) {
  for (const scene& s : scenes) {
    const std::vector<float> x = numbers<float>(s.count(), 4);
    const auto packed = rotary::bshd(x.data(), s.batch, s.tokens, s.heads(), s.head_dim);
    std::vector<std::int64_t> ids;
    for (std::size_t t = 0; t < s.tokens; ++t) ids.push_back(static_cast<std::int64_t>(t) * 12345 - 40000);
    step_table<float> step(s.spectrum());
    step.assign(ids.data(), ids.size());
    destinations<float, float, float> got(s);
    rotary::split_qkv(packed, got.q.view, got.k.view, got.v.view, step, s.how);
    const reference::rows<long double> rows(reference::inverse_frequencies(s.rotary_dim, 10000.0), ids);
    double worst = 0.0;
    std::size_t changed = 0;
    for (std::size_t n = 0; n < s.batch * s.tokens * s.heads(); ++n) {
      const std::size_t b = n / s.heads() / s.tokens, t = n / s.heads() % s.tokens, h = n % s.heads();
      const std::size_t k_end = s.q_heads + s.kv_heads;
      const float* const head = h < s.q_heads ? got.q.head(b, t, h)
                                : h < k_end   ? got.k.head(b, t, h - s.q_heads)
                                              : got.v.head(b, t, h - k_end);
      std::vector<long double> expected(x.begin() + static_cast<std::ptrdiff_t>(n * s.head_dim),
                                        x.begin() + static_cast<std::ptrdiff_t>((n + 1) * s.head_dim));
      const std::vector<long double> in = expected;
      if (h < k_end) {
        const std::size_t at = t * rows.pairs;
        reference::rotate_block(in.data() + s.how.offset, expected.data() + s.how.offset, rows.pairs, &rows.cos[at],
                                &rows.sin[at], s.how.pairing == pairing::interleaved,
                                s.how.stored == pairing::interleaved);
      }
      for (std::size_t c = 0; c < s.head_dim; ++c) {
        const long double error = static_cast<long double>(head[c]) - expected[c];
        worst = reference::larger(worst, std::fabs(static_cast<double>(error)));
        changed += expected[c] != in[c];
      }
    }
    EXPECT_LT(worst, 3 * 0x1p-24 * std::sqrt(2.0)) << s.head_dim;  // of a pair's length
    EXPECT_GT(changed, 0u);
  }
}

// ---- values

TEST(SplitQkv, KeepsEveryBitOfValuesOfTheSameType) {
  std::vector<bfloat16> x(65536 * 3);
  for (std::size_t i = 0; i < x.size(); ++i) x[i].bits = static_cast<std::uint16_t>(i);
  const table<float> rows(rotary::make_spectrum(64, 100.0), 1024);
  std::vector<bfloat16> q(65536), k(65536), v(65536);
  rotary::split_qkv(rotary::thd<const bfloat16>(x.data(), 1024, 3, 64), rotary::thd(q.data(), 1024, 1, 64),
                    rotary::thd(k.data(), 1024, 1, 64), rotary::thd(v.data(), 1024, 1, 64), rows, 0);
  for (std::size_t t = 0; t < 1024; ++t) {
    EXPECT_EQ(std::memcmp(&v[t * 64], &x[(t * 3 + 2) * 64], 64 * sizeof(bfloat16)), 0) << t;
  }
}

// Close to the middle of two 16-bit numbers, where a float in between would be that middle.
template <class To>
void expect_doubles_rounded_once(double middle) {
  std::vector<double> x(3 * 64, 1.0);
  for (std::size_t i = 0; i < x.size(); ++i)
    x[i] = middle * (1.0 + (i % 2 == 0 ? 1e-12 : -1e-12)) * (i % 4 < 2 ? 1 : -1);
  std::vector<double> q(64), k(64);
  std::vector<To> v(64);
  const table<double> rows(rotary::make_spectrum(64, 100.0), 1);
  backends::on_each([&](rotary::backend) {
    rotary::split_qkv(rotary::thd(x.data(), 1, 3, 64), rotary::thd(q.data(), 1, 1, 64), rotary::thd(k.data(), 1, 1, 64),
                      rotary::thd(v.data(), 1, 1, 64), rows, 0);
    constexpr reference::format format = std::is_same<To, float16>::value ? reference::binary16 : reference::bfloat;
    for (std::size_t i = 0; i < 64; ++i) {
      EXPECT_EQ(v[i].bits, reference::encode(format, static_cast<long double>(x[128 + i]))) << i;
    }
  });
}

TEST(SplitQkv, RoundsDoublesOnce) {
  expect_doubles_rounded_once<bfloat16>(1.0 + 0x1p-8);
  expect_doubles_rounded_once<bfloat16>(1.0 + 3 * 0x1p-8);
  expect_doubles_rounded_once<float16>(1.0 + 0x1p-11);
  expect_doubles_rounded_once<float16>(1.0 + 3 * 0x1p-11);
}

// ---- memory

// A call beyond the second cache goes past the caches and asks for lines ahead.
template <class To>
void expect_habits_change_no_bit(pairing how) {
  const std::size_t tokens = 70, dim = 64;
  const std::vector<float> x = numbers<float>(tokens * 8 * dim, 5);
  const table<float> rows(rotary::make_spectrum(dim, 10000.0), 100);
  guarded::array<To> memory(tokens * 8 * dim);
  ASSERT_EQ(reinterpret_cast<std::uintptr_t>(memory.data()) % 64, 0u);
  const auto q = rotary::bhsd(memory.data(), 1, 4, tokens, dim);
  const auto k = rotary::thd(memory.data() + tokens * 4 * dim, tokens, 2, dim);
  const auto v = rotary::thd(memory.data() + tokens * 6 * dim, tokens, 2, dim);
  std::vector<std::string> results;
  for (const auto& of_call : habits::all) {
    std::memset(static_cast<void*>(memory.data()), 0, memory.size() * sizeof(To));
    const habits::for_a_while meanwhile(of_call);
    rotary::split_qkv(rotary::thd(x.data(), tokens, 8, dim), q, k, v, rows, 20, how);
    results.emplace_back(reinterpret_cast<const char*>(memory.data()), memory.size() * sizeof(To));
  }
  for (const auto& result : results) EXPECT_TRUE(result == results[0]);
}

TEST(SplitQkv, OfALargeTensorHasTheSameBits) {
  for (const pairing how : {pairing::split_half, pairing::interleaved}) {
    expect_habits_change_no_bit<float>(how);
    expect_habits_change_no_bit<bfloat16>(how);
  }
}

TEST(SplitQkv, AllocatesNothing) {
  const scene& s = scenes[5];
  const std::vector<float> x = numbers<float>(s.count(), 6);
  const table<float> rows(s.spectrum(), 100);
  destinations<float, bfloat16, float> to(s);
  const std::size_t before = allocations::count;
  rotary::split_qkv(rotary::bshd(x.data(), s.batch, s.tokens, s.heads(), s.head_dim), to.q.view, to.k.view, to.v.view,
                    rows, 0, s.how);
  EXPECT_EQ(allocations::count, before);
  std::vector<float> counted(3);
  EXPECT_GT(allocations::count, before) << "the counter does not count";
}

// ---- other packings

TEST(SplitQkv, TakesGroupsOfHeadsByACallForEach) {
  const std::size_t tokens = 5, kv_heads = 3, group = 4, dim = 32, width = group + 2;
  const std::vector<float> x = numbers<float>(tokens * kv_heads * width * dim, 7);
  const table<float> rows(rotary::make_spectrum(dim, 10000.0), 100);
  const auto packed = rotary::thd(x.data(), tokens, kv_heads * width, dim);
  std::vector<float> q(tokens * kv_heads * group * dim), k(tokens * kv_heads * dim), v(k.size());
  const auto to_q = rotary::thd(q.data(), tokens, kv_heads * group, dim);
  const auto to_k = rotary::thd(k.data(), tokens, kv_heads, dim), to_v = rotary::thd(v.data(), tokens, kv_heads, dim);
  for (std::size_t g = 0; g < kv_heads; ++g) {
    rotary::split_qkv(rotary::heads(packed, g * width, width), rotary::heads(to_q, g * group, group),
                      rotary::heads(to_k, g, 1), rotary::heads(to_v, g, 1), rows, 9);
  }
  std::vector<float> turned = x;
  rotary::rotate(rotary::thd(turned.data(), tokens, kv_heads * width, dim), rows, 9);
  for (std::size_t t = 0; t < tokens; ++t) {
    for (std::size_t g = 0; g < kv_heads; ++g) {
      const std::size_t from = (t * kv_heads + g) * width * dim;
      EXPECT_EQ(std::memcmp(&q[(t * kv_heads + g) * group * dim], &turned[from], group * dim * 4), 0);
      EXPECT_EQ(std::memcmp(&k[(t * kv_heads + g) * dim], &turned[from + group * dim], dim * 4), 0);
      EXPECT_EQ(std::memcmp(&v[(t * kv_heads + g) * dim], &x[from + (group + 1) * dim], dim * 4), 0);
    }
  }
}

// q, k and v side by side again, in another tensor; from [tokens, heads, dim], and from [heads, tokens, dim].
TEST(SplitQkv, WritesPartsOfOneTensor) {
  const std::size_t tokens = 6, dim = 48;
  const std::vector<float> x = numbers<float>(tokens * 8 * dim, 8);
  const table<float> rows(rotary::make_spectrum(dim, 10000.0), 100);
  const auto by_token = [&](auto* data) { return rotary::thd(data, tokens, 8, dim); };
  const auto by_head = [&](auto* data) { return rotary::bhsd(data, 1, 8, tokens, dim); };
  const auto expect_split = [&](const auto& view_of) {
    std::vector<float> y(x.size(), 0.0f), expected = x;
    const auto all = view_of(y.data());
    rotary::split_qkv(view_of(x.data()), rotary::heads(all, 0, 4), rotary::heads(all, 4, 2), rotary::heads(all, 6, 2),
                      rows, 4);
    rotary::rotate(rotary::heads(view_of(expected.data()), 0, 6), rows, 4);
    EXPECT_EQ(std::memcmp(y.data(), expected.data(), y.size() * sizeof(float)), 0);
  };
  expect_split(by_token);
  expect_split(by_head);
}

TEST(SplitQkv, OfNothingDoesNothing) {
  const table<float> rows(rotary::make_spectrum(8, 10000.0), 10);
  const auto nothing = [](std::size_t tokens, std::size_t heads) {
    return rotary::thd(static_cast<float*>(nullptr), tokens, heads, 8);
  };
  rotary::split_qkv(nothing(0, 4), nothing(0, 2), nothing(0, 1), nothing(0, 1), rows, 0);
  rotary::split_qkv(nothing(3, 0), nothing(3, 0), nothing(3, 0), nothing(3, 0), rows, 0);
  std::vector<float> x = numbers<float>(3 * 2 * 8, 9), q(x.size()), expected(x.size());
  rotary::split_qkv(rotary::thd(x.data(), 3, 2, 8), rotary::thd(q.data(), 3, 2, 8), nothing(3, 0), nothing(3, 0), rows,
                    1);
  rotary::rotate(rotary::thd(x.data(), 3, 2, 8), rotary::thd(expected.data(), 3, 2, 8), rows, 1);
  EXPECT_EQ(q, expected);
  std::vector<float> k(24), v(24);
  rotary::split_qkv(rotary::thd(x.data(), 3, 2, 8), nothing(3, 0), rotary::thd(k.data(), 3, 1, 8),
                    rotary::thd(v.data(), 3, 1, 8), rows, 1);
  EXPECT_EQ(std::memcmp(&k[8], &expected[16], 32), 0);
  EXPECT_EQ(std::memcmp(&v[8], &x[24], 32), 0);
}

TEST(SplitQkv, OfNoPairsCopies) {
  const std::vector<float> x = numbers<float>(3 * 4 * 8, 10);
  const table<float> none(rotary::spectrum(rotary::list<double>()), 10);
  std::vector<float> y(x.size());
  const auto all = rotary::thd(y.data(), 3, 4, 8);
  rotary::split_qkv(rotary::thd(x.data(), 3, 4, 8), rotary::heads(all, 0, 2), rotary::heads(all, 2, 1),
                    rotary::heads(all, 3, 1), none, 0);
  EXPECT_EQ(y, x);
}

// ---- refusals

class Refused : public testing::Test {
 protected:
  static constexpr std::size_t tokens_ = 4, dim_ = 16;

  /// Calls split_qkv with one thing changed, and expects that no destination is touched.
  template <class Change>
  void expect(const Change& change, std::initializer_list<const char*> parts) {
    arguments a = {rotary::thd(x_.data(), tokens_, 6, dim_), q_.view, k_.view, v_.view, 0, {}, {}};
    change(a);
    const std::vector<float> before = x_;
    expect_refused([&] { rotary::split_qkv(a.packed, a.q, a.k, a.v, rows_, a.where, a.how, a.part); }, "split_qkv",
                   parts);
    EXPECT_EQ(x_, before);
    EXPECT_TRUE(q_.untouched() && k_.untouched() && v_.untouched());
  }

  struct arguments {
    tensor_view<float> packed, q, k, v;
    rotary::positions where;
    layout how;
    slice part;
  };
  std::vector<float> x_ = numbers<float>(tokens_ * 6 * dim_, 11);
  destination<float> q_{"bshd", 1, tokens_, 4, dim_}, k_{"bshd", 1, tokens_, 1, dim_}, v_{"bshd", 1, tokens_, 1, dim_};
  table<float> rows_{rotary::make_spectrum(dim_, 10000.0), 10};
};

TEST_F(Refused, Sizes) {
  expect([](arguments& a) { a.q.heads = 3; }, {"3, 1 and 1 heads", "packed 6"});
  expect([](arguments& a) { a.q.heads = 5; }, {"5, 1 and 1 heads"});
  expect([](arguments& a) { a.q.heads = ~std::size_t{0}; }, {"packed 6"});
  expect([](arguments& a) { a.k.heads = 2, a.v.heads = 0; }, {"4, 2 and 0 heads", "equal"});
  expect([](arguments& a) { a.q.tokens = 3; }, {"q is [1, 3, heads, 16]", "packed [1, 4, heads, 16]"});
  expect([](arguments& a) { a.k.batch = 2; }, {"k is [2, 4, heads, 16]"});
  expect([](arguments& a) { a.v.head_dim = 15; }, {"v is [1, 4, heads, 15]"});
  expect([](arguments& a) { a.part = {2, 2}; }, {"slice index is 2 of count 2"});
}

TEST_F(Refused, PointersAndStrides) {
  expect([](arguments& a) { a.packed.data = nullptr; }, {"the data pointer of packed is null"});
  expect([](arguments& a) { a.q.data = nullptr; }, {"the data pointer of q is null"});
  expect([](arguments& a) { a.v.data = nullptr; }, {"the data pointer of v is null"});
  expect([](arguments& a) { a.q.head_stride = 15; }, {"q has strides"});
  expect([](arguments& a) { a.k.token_stride = 0; }, {"k has strides"});
  expect([](arguments& a) { a.v.token_stride = 7; }, {"v has strides"});
  expect([](arguments& a) { a.packed.token_stride = PTRDIFF_MAX; }, {"packed has sizes", "address space"});
  expect([](arguments& a) { a.q.token_stride = PTRDIFF_MAX / 2; }, {"q has sizes", "address space"});
}

TEST_F(Refused, Overlaps) {
  expect([](arguments& a) { a.k.data = a.q.data + 5; }, {"q and k overlap"});
  expect([](arguments& a) { a.v = a.k; }, {"k and v overlap"});
  expect([](arguments& a) { a.v.data = a.q.data + 3 * 4 * 16; }, {"q and v overlap"});
  expect([](arguments& a) { a.q = rotary::heads(a.packed, 0, 4); }, {"packed and q overlap"});
  expect([](arguments& a) { a.k = rotary::heads(a.packed, 4, 1); }, {"packed and k overlap"});
  expect([](arguments& a) { a.v.data = a.packed.data + 17; }, {"packed and v overlap"});
}

TEST_F(Refused, Rows) {
  expect([](arguments& a) { a.where = 7; }, {"positions 7 to 10", "10 positions"});
  expect([](arguments& a) { a.where = -1; }, {"-1"});
  expect([](arguments& a) { a.how.offset = 2; }, {"offset 2", "head_dim = 16"});
}

}  // namespace
