// Keys moved inside a cache: against the reference data, against the rotation's definition in double, and how far many
// moves drift.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <limits>
#include <rotary/kv_cache.hpp>
#include <rotary/kv_shift.hpp>
#include <rotary/rotary.hpp>
#include <string>
#include <vector>

#include "caches.hpp"
#include "every_backend.hpp"
#include "golden.hpp"
#include "memory_habits.hpp"
#include "reference.hpp"
#include "refusals.hpp"

namespace {

using caches::bfloat16;
using caches::filled;
using caches::float16;
using caches::float8_e4m3fn;
using caches::float8_e5m2;
using caches::numbers;
using caches::q8_0;
using nlohmann::json;
using refusals::expect_refused;
using rotary::layout;
using rotary::pairing;
using rotary::slot_list;
using rotary::spectrum;
using rotary::step_table;

// ---- reference data

template <class T>
std::vector<T> values_of(const json& record, const std::string& key) {
  std::vector<T> result;
  if constexpr (sizeof(T) == 2) {
    for (const unsigned bits : record.at(key + "_bits")) {
      T x;
      x.bits = static_cast<std::uint16_t>(bits);
      result.push_back(x);
    }
  } else {
    for (const double x : record.at(key)) result.push_back(static_cast<T>(x));
  }
  return result;
}

template <class T>
void expect_golden(const json& record) {
  const std::size_t tokens = record.at("tokens"), heads = record.at("heads"), head_dim = record.at("head_dim");
  const std::vector<T> input = values_of<T>(record, "input"), expected = values_of<T>(record, "expected");
  const layout how(record.at("pairing") == "interleaved" ? pairing::interleaved : pairing::split_half,
                   record.at("rotary_offset").get<std::size_t>());
  const spectrum of = golden::spectrum_from(record.at("parameters"));
  const std::vector<std::int64_t> deltas = record.at("deltas");
  std::vector<std::int32_t> slots;
  for (std::size_t i = 0; i < tokens; ++i) slots.push_back(static_cast<std::int32_t>((i * 5 + 3) % 8));
  step_table<float> step(rotary::unit_magnitude(of)), with_magnitude(of);
  step.assign(deltas.data(), tokens);
  with_magnitude.assign(deltas.data(), tokens);
  filled<T> cache("hnd", 2, 4, heads, head_dim);
  const auto check = [&](const char* form, const auto& move) {
    SCOPED_TRACE(form);
    cache.reset();
    for (std::size_t i = 0; i < tokens * heads; ++i) {
      std::copy_n(&input[i * head_dim], head_dim, cache.head(static_cast<std::size_t>(slots[i / heads]), i % heads));
    }
    move();
    double worst = 0.0;
    for (std::size_t i = 0; i < tokens * heads; ++i) {
      const T* const got = cache.head(static_cast<std::size_t>(slots[i / heads]), i % heads);
      for (std::size_t c = 0; c < head_dim; ++c) {
        const double right = caches::value(expected[i * head_dim + c]);
        const double error = std::fabs(caches::value(got[c]) - right);
        // The expected number is rounded, too.
        worst = reference::larger(worst, error / (2.0 * caches::permitted<T>(right, 2.0, 1.0)));
      }
    }
    EXPECT_LE(worst, 1.0);
  };
  const slot_list where(slots.data(), tokens);
  check("a delta each", [&] { rotary::shift(cache.view, where, step, how); });
  check("rows with a magnitude", [&] { rotary::shift(cache.view, where, with_magnitude, how); });
  for (const std::int64_t delta : deltas) {
    if (delta != deltas[0]) return;
  }
  check("one delta", [&] { rotary::shift(cache.view, where, of, deltas[0], how); });
}

TEST(ShiftGolden, EveryRecord) {
  std::size_t records = 0;
  const json file = golden::load("rotations");
  for (const json& record : file.at("records")) {
    if (record.at("op") != "shift") continue;
    SCOPED_TRACE(record.at("name").get<std::string>());
    ++records;
    const std::string type = record.at("dtype");
    if (type == "f32") expect_golden<float>(record);
    if (type == "f16") expect_golden<float16>(record);
    if (type == "bf16") expect_golden<bfloat16>(record);
  }
  EXPECT_GE(records, 6u);
}

// ---- the definition

template <class T>
class Shift : public testing::Test {};
struct names {
  template <class T>
  static std::string GetName(int) {
    return caches::name_of<T>();
  }
};
using formats = testing::Types<float, float16, bfloat16, float8_e4m3fn, float8_e5m2, q8_0>;
TYPED_TEST_SUITE(Shift, formats, names);

struct scene {
  const char* order;
  std::size_t blocks, block_size, heads, head_dim, rotary_dim;
  layout how;
};
const scene scenes[] = {
    {"nhd", 3, 16, 2, 64, 64, pairing::split_half},
    {"hnd", 4, 8, 3, 96, 96, pairing::interleaved},
    {"strided", 2, 13, 3, 96, 36, {pairing::split_half, 22}},
    {"hnd", 1, 40, 2, 160, 64, {pairing::interleaved, 96}},
};

// Slots in runs and out of order, two thirds of the cache.
std::vector<std::int64_t> some_slots(const scene& s) {
  std::vector<std::int64_t> slots;
  const std::int64_t all = static_cast<std::int64_t>(s.blocks * s.block_size);
  for (std::int64_t slot = all - 1; slot >= 0; slot -= 3) {
    if (slot > 1) slots.push_back(slot - 1);
    slots.push_back(slot);
  }
  slots[1] = slot_list::skip;
  return slots;
}

template <class T>
void fill(filled<T>& cache) {
  const std::size_t slots = cache.view.blocks * cache.view.block_size, heads = cache.view.heads;
  const std::size_t head_dim = cache.view.head_dim;
  for (std::size_t i = 0; i < slots * heads; ++i) {
    const std::vector<float> x = numbers<float>(head_dim, static_cast<std::uint32_t>(i), 2.0);
    T* const head = cache.head(i / heads, i % heads);
    if constexpr (caches::is_quantised<T>) {
      caches::quantise(x.data(), head_dim, cache.scale_of(i % heads), head);
    } else {
      for (std::size_t c = 0; c < head_dim; ++c) head[c] = T(x[c]);
    }
  }
}

// The elements of a head that hold no rotated channel.
template <class T>
bool outside(const scene& s, std::size_t element) {
  const std::size_t first = element * caches::channels_in<T>, end = first + caches::channels_in<T>;
  return end <= s.how.offset || first >= s.how.offset + s.rotary_dim;
}

// `before` turned by deltas[i] for slots[i], against the cache.
template <class T>
void expect_moved(filled<T>& before, filled<T>& after, const scene& s, const std::vector<std::int64_t>& slots,
                  const std::vector<double>& inv_freq, const std::vector<std::int64_t>& deltas) {
  const reference::rows<double> rows(inv_freq, deltas);
  std::vector<std::size_t> index(s.blocks * s.block_size, ~std::size_t{0});
  for (std::size_t i = 0; i < slots.size(); ++i) {
    if (slots[i] >= 0) index[static_cast<std::size_t>(slots[i])] = i;
  }
  double worst = 0.0;
  std::size_t changed = 0;
  for (std::size_t slot = 0; slot < index.size(); ++slot) {
    for (std::size_t h = 0; h < s.heads; ++h) {
      T *const old = before.head(slot, h), *const now = after.head(slot, h);
      for (std::size_t e = 0; e < s.head_dim / caches::channels_in<T>; ++e) {
        if (index[slot] != ~std::size_t{0} && !outside<T>(s, e)) continue;
        changed += std::memcmp(static_cast<void*>(old + e), static_cast<void*>(now + e), sizeof(T)) != 0;
      }
      if (index[slot] == ~std::size_t{0}) continue;
      const float scale = before.scale_of(h);
      const std::vector<double> in = caches::decode(old, s.head_dim, scale);
      std::vector<double> exact = in;
      const bool interleaved = s.how.pairing == pairing::interleaved;
      reference::rotate_block(in.data() + s.how.offset, exact.data() + s.how.offset, rows.pairs,
                              rows.cos.data() + index[slot] * rows.pairs, rows.sin.data() + index[slot] * rows.pairs,
                              interleaved, interleaved);
      const std::vector<double> got = caches::decode(now, s.head_dim, scale);
      for (std::size_t c = 0; c < s.head_dim; ++c) {
        double largest = 0.0;
        for (std::size_t n = c / 32 * 32; n < c / 32 * 32 + 32; ++n) largest = std::fmax(largest, std::fabs(exact[n]));
        const double right = caches::expected<T>(exact[c], scale);
        worst = reference::larger(worst, std::fabs(got[c] - right) / caches::permitted<T>(right, largest, scale));
      }
    }
  }
  EXPECT_LE(worst, 1.0);
  EXPECT_EQ(changed, 0u) << "elements outside the rotated block, or of other slots";
}

TYPED_TEST(Shift, TurnsEveryKeyByItsDeltaWithoutTheMagnitude) {
  for (const scene& s : scenes) {
    SCOPED_TRACE(s.order + std::to_string(s.head_dim));
    const std::vector<double> inv_freq = reference::inverse_frequencies(s.rotary_dim, 10000.0);
    const spectrum of(inv_freq, 1.4158883083359672);
    const std::vector<std::int64_t> slots = some_slots(s);
    std::vector<std::int64_t> deltas;
    for (std::size_t i = 0; i < slots.size(); ++i) {
      deltas.push_back(static_cast<std::int64_t>(i * i * 37 % 9001) - (i % 2 == 0 ? 70 : 3000));
    }
    step_table<float> step(of), unit(rotary::unit_magnitude(of));
    step.assign(deltas.data(), deltas.size());
    unit.assign(deltas.data(), deltas.size());
    filled<TypeParam> before(s.order, s.blocks, s.block_size, s.heads, s.head_dim);
    filled<TypeParam> cache(s.order, s.blocks, s.block_size, s.heads, s.head_dim);
    fill(before);
    const slot_list where(slots.data(), slots.size());
    backends::on_each([&](rotary::backend) {
      for (const step_table<float>* rows : {&step, &unit}) {
        fill(cache);
        rotary::shift(cache.view, where, *rows, s.how);
        expect_moved(before, cache, s, slots, inv_freq, deltas);
        const std::vector<unsigned char> whole = cache.bytes();
        for (const std::size_t count : {std::size_t{3}, slots.size() * s.heads + 1}) {
          fill(cache);
          for (std::size_t index = count; index-- > 0;) rotary::shift(cache.view, where, *rows, s.how, {index, count});
          EXPECT_TRUE(cache.bytes() == whole) << count << " slices";
        }
      }
      fill(cache);
      rotary::shift(cache.view, where, of, -4097, s.how);
      expect_moved(before, cache, s, slots, inv_freq, std::vector<std::int64_t>(slots.size(), -4097));
    });
  }
}

TYPED_TEST(Shift, OfARangeOfCells) {
  const scene s = {"nhd", 1, 30, 2, 64, 64, pairing::split_half};
  const std::vector<double> inv_freq = reference::inverse_frequencies(s.rotary_dim, 500.0);
  filled<TypeParam> before(s.order, 1, 30, 2, 64), cache(s.order, 1, 30, 2, 64);
  fill(before);
  fill(cache);
  rotary::shift(cache.view, slot_list::range(7, 20), spectrum(inv_freq), -7);
  std::vector<std::int64_t> slots;
  for (std::int64_t slot = 7; slot < 27; ++slot) slots.push_back(slot);
  expect_moved(before, cache, s, slots, inv_freq, std::vector<std::int64_t>(20, -7));
}

TEST(ShiftLarge, WithLinesAskedForAheadHasTheSameBits) {
  const spectrum of = rotary::make_spectrum(64, 10000.0);
  std::vector<std::vector<unsigned char>> results;
  for (const auto& of_call : habits::all) {
    filled<bfloat16> cache("hnd", 4, 16, 3, 64);
    fill(cache);
    const habits::for_a_while meanwhile(of_call);
    rotary::shift(cache.view, slot_list::range(0, 64), of, 1000);
    results.push_back(cache.bytes());
  }
  for (const auto& result : results) EXPECT_TRUE(result == results[0]);
}

TEST(ShiftDouble, IsComputedInDouble) {
  const std::vector<double> inv_freq = reference::inverse_frequencies(16, 100.0);
  std::vector<double> keys(16);
  for (std::size_t c = 0; c < 16; ++c) keys[c] = static_cast<double>(c) / 7.0 - 1.0;
  const std::vector<double> before = keys;
  rotary::shift(rotary::dense_nhd(keys.data(), 1, 1, 16), slot_list::range(0, 1), spectrum(inv_freq), 33);
  const reference::rows<double> rows(inv_freq, {33});
  std::vector<double> exact(16);
  reference::rotate_block(before.data(), exact.data(), 8, rows.cos.data(), rows.sin.data(), false, false);
  for (std::size_t c = 0; c < 16; ++c) EXPECT_NEAR(keys[c], exact[c], 33 * 2.3e-16 * 3) << c;
}

// M-RoPE: a delta for each of three axes and each key.
TEST(ShiftAxes, ADeltaOfEachAxis) {
  const std::size_t pairs = 16, count = 9;
  const spectrum of = rotary::make_spectrum(2 * pairs, 1000.0);
  const rotary::axis_map axes = rotary::mrope_chunked({4, 6, 6});
  std::vector<std::int32_t> positions(3 * count), deltas(3 * count), moved(3 * count);
  for (std::size_t i = 0; i < 3 * count; ++i) {
    positions[i] = static_cast<std::int32_t>(i * i % 50);
    deltas[i] = static_cast<std::int32_t>(i * 13 % 40) - 19;
    moved[i] = positions[i] + deltas[i];
  }
  step_table<float> step(of, axes);
  const std::vector<float> k = numbers<float>(count * 2 * 2 * pairs, 4);
  const auto keys = rotary::thd(k.data(), count, 2, 2 * pairs);
  filled<float> cache("nhd", 1, count, 2, 2 * pairs), direct("nhd", 1, count, 2, 2 * pairs);
  step.assign(rotary::axis_major(moved.data(), 3, count));
  rotary::append(keys, direct.view, slot_list::range(0, count), step);
  step.assign(rotary::axis_major(positions.data(), 3, count));
  rotary::append(keys, cache.view, slot_list::range(0, count), step);
  step.assign(rotary::axis_major(deltas.data(), 3, count));
  rotary::shift(cache.view, slot_list::range(0, count), step);
  for (std::size_t i = 0; i < k.size(); ++i) EXPECT_NEAR(cache.head(0, 0)[i], direct.head(0, 0)[i], 5e-7f) << i;

  // One delta on each axis for all keys.
  const std::int32_t shared[] = {5, -2, 9};
  for (std::size_t i = 0; i < 3 * count; ++i) moved[i] = positions[i] + shared[i / count];
  step.assign(rotary::axis_major(moved.data(), 3, count));
  rotary::append(keys, direct.view, slot_list::range(0, count), step);
  step.assign(rotary::axis_major(positions.data(), 3, count));
  rotary::append(keys, cache.view, slot_list::range(0, count), step);
  step.assign(rotary::axis_major(shared, 3, 1));
  rotary::shift(cache.view, slot_list::range(0, count), step);
  for (std::size_t i = 0; i < k.size(); ++i) EXPECT_NEAR(cache.head(0, 0)[i], direct.head(0, 0)[i], 5e-7f) << i;
}

// ---- another spectrum

// Keys cached under one spectrum and changed to another are those cached under the other.
template <class T>
void expect_changed(const spectrum& from, const spectrum& to, double tolerance) {
  const std::size_t count = 60, dim = from.rotary_dim() + 8;
  std::vector<std::int64_t> positions(count), slots(count);
  for (std::size_t i = 0; i < count; ++i) {
    positions[i] = static_cast<std::int64_t>(i * 67 % 4096);
    slots[i] = static_cast<std::int64_t>(i * 7 % 64);
  }
  const std::vector<float> k = numbers<float>(count * 2 * dim, 5);
  const auto keys = rotary::thd(k.data(), count, 2, dim);
  const slot_list where(slots.data(), count);
  const layout how(pairing::interleaved, 5);
  filled<T> cache("hnd", 4, 16, 2, dim), at_once("hnd", 4, 16, 2, dim), direct("hnd", 4, 16, 2, dim);
  step_table<float> step(to), old(from), change(rotary::spectrum_change(from, to));
  step.assign(positions.data(), count);
  rotary::append(keys, direct.view, where, step, how);
  old.assign(positions.data(), count);
  rotary::append(keys, cache.view, where, old, how);
  rotary::append(keys, at_once.view, where, old, how);
  double before = 0.0, after = 0.0;
  const auto distance = [&] {
    double largest = 0.0;
    for (const std::int64_t slot : slots) {
      for (std::size_t h = 0; h < 2; ++h) {
        const std::vector<double> got = caches::decode(cache.head(static_cast<std::size_t>(slot), h), dim, 1.0f);
        const std::vector<double> right = caches::decode(direct.head(static_cast<std::size_t>(slot), h), dim, 1.0f);
        for (std::size_t c = 0; c < dim; ++c) largest = reference::larger(largest, std::fabs(got[c] - right[c]));
      }
    }
    return largest;
  };
  before = distance();
  change.assign(positions.data(), count);
  for (std::size_t index = 0; index < 3; ++index) rotary::change_spectrum(cache.view, where, change, how, {index, 3});
  rotary::change_spectrum(at_once.view, where, positions.data(), from, to, how);
  after = distance();
  EXPECT_TRUE(cache.bytes() == at_once.bytes());
  EXPECT_GT(before, 0.5) << "the spectra are too alike to see a change";
  EXPECT_LE(after, tolerance);
}

TEST(ChangeSpectrum, OfDynamicNtk) {
  const rotary::dynamic_ntk policy{4.0, 2048};
  const spectrum shorter = rotary::make_spectrum(64, 10000.0, policy, 2048);
  const spectrum longer = rotary::make_spectrum(64, 10000.0, policy, 4096);
  // Three roundings of cos, sin and products in float, of numbers up to sqrt(2); two of bfloat16.
  expect_changed<float>(shorter, longer, 1.5e-6);
  expect_changed<bfloat16>(shorter, longer, 2 * 0x1p-8 + 1.5e-6);
  expect_changed<float16>(longer, shorter, 2 * 0x1p-11 + 1.5e-6);
}

TEST(ChangeSpectrum, OfLongRopeWithItsMagnitudes) {
  std::vector<double> short_factors(24, 1.0), long_factors(24);
  for (std::size_t j = 0; j < 24; ++j) long_factors[j] = 1.0 + static_cast<double>(j) * 1.7;
  rotary::longrope policy{8.0, 2048, short_factors, long_factors};
  policy.short_magnitude = rotary::longrope_magnitude::exactly(1.1);
  policy.long_magnitude = rotary::longrope_magnitude::exactly(1.24);
  const spectrum before = rotary::make_spectrum(48, 10000.0, policy, 2048);
  const spectrum after = rotary::make_spectrum(48, 10000.0, policy, 2049);
  ASSERT_EQ(before.magnitude(), 1.1);
  ASSERT_EQ(after.magnitude(), 1.24);
  EXPECT_NEAR(rotary::spectrum_change(before, after).magnitude(), 1.24 / 1.1, 1e-15);
  expect_changed<float>(before, after, 2e-6);
  expect_changed<float>(after, before, 2e-6);
}

// ---- drift

template <class T>
constexpr double unit_roundoff() {
  if constexpr (std::is_same<T, float>::value) return 0x1p-24;
  if constexpr (std::is_same<T, float16>::value) return 0x1p-11;
  if constexpr (std::is_same<T, bfloat16>::value) return 0x1p-8;
  if constexpr (std::is_same<T, float8_e4m3fn>::value) return 0x1p-4;
  return 0x1p-3;
}

// The largest distance of a pair from its exact place after `shifts` of -1, as a share of its norm, or, for q8_0, of
// what its blocks had as largest magnitude / 127; and that of one shift by the sum.
template <class T>
struct drift {
  double of_many = 0.0, of_one = 0.0, permitted = 0.0;

  explicit drift(int shifts) {
    const std::size_t heads = 16, dim = 64, pairs = dim / 2;
    const std::vector<double> inv_freq = reference::inverse_frequencies(dim, 10000.0);
    const spectrum of(inv_freq);
    filled<T> original("nhd", 1, 1, heads, dim), many("nhd", 1, 1, heads, dim), one("nhd", 1, 1, heads, dim);
    fill_with_pairs(original);
    std::memcpy(static_cast<void*>(many.head(0, 0)), static_cast<void*>(original.head(0, 0)), many.bytes().size());
    std::memcpy(static_cast<void*>(one.head(0, 0)), static_cast<void*>(original.head(0, 0)), one.bytes().size());
    double largest = 0.0;
    for (int i = 0; i < shifts; ++i) {
      rotary::shift(many.view, slot_list::range(0, 1), of, -1);
      for (std::size_t h = 0; h < heads; ++h) {
        for (const double x : caches::decode(many.head(0, h), dim, many.scale_of(h))) {
          largest = std::fmax(largest, std::fabs(x));
        }
      }
    }
    rotary::shift(one.view, slot_list::range(0, 1), of, -shifts);
    const reference::rows<double> rows(inv_freq, {-shifts});
    for (std::size_t h = 0; h < heads; ++h) {
      const std::vector<double> in = caches::decode(original.head(0, h), dim, original.scale_of(h));
      std::vector<double> exact(dim);
      reference::rotate_block(in.data(), exact.data(), pairs, rows.cos.data(), rows.sin.data(), false, false);
      const std::vector<double> a = caches::decode(many.head(0, h), dim, many.scale_of(h));
      const std::vector<double> b = caches::decode(one.head(0, h), dim, one.scale_of(h));
      for (std::size_t j = 0; j < pairs; ++j) {
        const double unit = caches::is_q8_0<T> ? largest / 127.0 : std::hypot(exact[j], exact[j + pairs]);
        of_many = std::fmax(of_many, std::hypot(a[j] - exact[j], a[j + pairs] - exact[j + pairs]) / unit);
        of_one = std::fmax(of_one, std::hypot(b[j] - exact[j], b[j + pairs] - exact[j + pairs]) / unit);
      }
    }
    permitted = caches::is_q8_0<T> ? shifts * std::sqrt(2.0) * 9 / 16
                                   : std::pow(1.0 + unit_roundoff<T>() + 0x1p-22, shifts) - 1.0;
  }

 private:
  // Both members of a pair well above the subnormal numbers, and below half of what saturates.
  static void fill_with_pairs(filled<T>& cache) {
    for (std::size_t h = 0; h < cache.view.heads; ++h) {
      std::vector<float> x = numbers<float>(64, static_cast<std::uint32_t>(h) + 90);
      for (float& value : x) value = std::copysign(0.5f + std::fabs(value), value) * cache.scale_of(h) * 16.0f;
      if constexpr (caches::is_quantised<T>) {
        caches::quantise(x.data(), 64, cache.scale_of(h), cache.head(0, h));
      } else {
        for (std::size_t c = 0; c < 64; ++c) cache.head(0, h)[c] = T(x[c]);
      }
    }
  }
};

TYPED_TEST(Shift, DriftsWithinTheBoundOfTheHeader) {
  for (const int shifts : {1, 10, 100}) {
    const drift<TypeParam> of(shifts);
    std::printf("%6s, %3d shifts by -1: off by %.2e, bound %.2e; one by the sum: %.2e\n", caches::name_of<TypeParam>(),
                shifts, of.of_many, of.permitted, of.of_one);
    EXPECT_LE(of.of_many, of.permitted);
    EXPECT_LE(of.of_one, drift<TypeParam>(1).permitted + shifts * 2.3e-16);
    EXPECT_TRUE(shifts < 100 || of.of_many > of.of_one) << "there is nothing to avoid";
  }
}

// ---- refusals

TEST(ShiftRefuses, WhatCannotBeMoved) {
  filled<float> cache("nhd", 2, 5, 2, 32);
  fill(cache);
  const std::vector<unsigned char> before = cache.bytes();
  const spectrum of = rotary::make_spectrum(32, 10000.0);
  const std::int32_t slots[] = {3, 9, -1, 0}, twice[] = {3, 9, 9, 0}, beyond[] = {3, 9, 1, 10};
  const slot_list good(slots, 4);
  expect_refused([&] { rotary::shift(cache.view, {beyond, 4}, of, 5); }, "shift", {"slot_ids[3] is 10", "10 slots"});
  expect_refused([&] { rotary::shift(cache.view, {twice, 4}, of, 5); }, "shift", {"slot_ids[2] is 9", "once"});
  expect_refused(
      [&] {
        rotary::shift(cache.view, good, of, 5, {pairing::split_half, 2});
      },
      "shift", {"offset 2", "head_dim = 32"});
  expect_refused(
      [&] {
        rotary::shift(cache.view, good, of, 5, {pairing::split_half, 0, pairing::interleaved});
      },
      "shift", {"layout.stored"});
  expect_refused([&] { rotary::shift(cache.view, good, of, 5, {}, {1, 1}); }, "shift", {"slice index is 1 of count 1"});
  step_table<float> step(of);
  step.assign(slots, 3);
  expect_refused([&] { rotary::shift(cache.view, good, step); }, "shift", {"3 rows", "4 slots"});
  step.assign(slots, 1);
  expect_refused([&] { rotary::change_spectrum(cache.view, good, step); }, "change_spectrum", {"1 rows", "4 slots"});
  auto overlapping = cache.view;
  overlapping.head_stride = 16;
  expect_refused([&] { rotary::shift(overlapping, good, of, 5); }, "shift", {"strides 320, 64, 16"});
  auto nowhere = cache.view;
  nowhere.data = nullptr;
  expect_refused([&] { rotary::shift(nowhere, good, of, 5); }, "shift", {"data pointer of the cache is null"});
  EXPECT_TRUE(cache.bytes() == before);
}

TEST(ShiftRefuses, KeysOfXposAndSpectraThatDiffer) {
  filled<float> cache("nhd", 2, 5, 2, 32);
  fill(cache);
  const std::vector<unsigned char> before = cache.bytes();
  const spectrum of = rotary::make_spectrum(32, 10000.0), narrow = rotary::make_spectrum(30, 10000.0);
  const spectrum xpos = rotary::make_spectrum(32, 10000.0, rotary::xpos{rotary::xpos_role::key});
  const slot_list slots = slot_list::range(0, 3);
  const std::int32_t ids[] = {4, 5, 6};
  step_table<float> step(xpos);
  step.assign(ids, 3);
  expect_refused([&] { rotary::shift(cache.view, slots, xpos, 5); }, "shift", {"magnitude 0", "xPos"});
  expect_refused([&] { rotary::shift(cache.view, slots, step); }, "shift", {"magnitude 0", "xPos"});
  expect_refused([&] { rotary::unit_magnitude(xpos); }, "unit_magnitude", {"xPos"});
  expect_refused([&] { rotary::change_spectrum(cache.view, slots, ids, of, xpos); }, "spectrum_change", {"xPos"});
  expect_refused([&] { rotary::change_spectrum(cache.view, slots, ids, of, narrow); }, "spectrum_change",
                 {"from has 16 pairs", "to has 15"});
  EXPECT_TRUE(cache.bytes() == before);
}

TEST(ShiftRefuses, ScalesOfFloat8) {
  filled<float8_e5m2> cache("nhd", 2, 5, 2, 32);
  fill(cache);
  cache.view.scale = nullptr;
  expect_refused([&] { rotary::shift(cache.view, slot_list::range(0, 3), rotary::make_spectrum(32, 1e4), 5); }, "shift",
                 {"scale of the cache is a null pointer"});
}

TEST(ShiftSizes, OfZeroAreNothing) {
  const spectrum of = rotary::make_spectrum(32, 10000.0);
  rotary::shift(rotary::dense_nhd<float>(nullptr, 0, 2, 32), slot_list::range(0, 0), of, 5);
  rotary::shift(rotary::dense_nhd<float>(nullptr, 5, 0, 32), slot_list::range(0, 5), of, 5);
  filled<q8_0> cache("nhd", 2, 5, 2, 32);
  fill(cache);
  const std::vector<unsigned char> before = cache.bytes();
  rotary::shift(cache.view, slot_list::range(0, 5), spectrum(rotary::list<double>()), 5);
  EXPECT_TRUE(cache.bytes() == before);
}

}  // namespace
