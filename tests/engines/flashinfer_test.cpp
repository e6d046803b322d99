// examples/engines/flashinfer.hpp and flashinfer_append.hpp: against the operators' definitions, and how far
// FlashInfer's arithmetic is from exact.
#include "flashinfer.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "engines.hpp"
#include "flashinfer_append.hpp"

namespace {

using namespace engines_test;
using engines::flashinfer::fp8;
using engines::flashinfer::kv_layout;
using engines::flashinfer::paged_kv;
using engines::flashinfer::ragged;
using engines::flashinfer::rope;
using rotary::bfloat16;
using rotary::float16;

template <class T>
ragged<const T> read_only(const ragged<T>& x) {
  return {x.data, x.n, x.heads, x.head_dim, x.stride_n, x.stride_h};
}

reference::rows<long double> defined(const std::vector<double>& inv_freq, const std::vector<std::int64_t>& positions) {
  return reference::rows<long double>(inv_freq, positions);
}

// ---- apply_rope

template <class T>
void expect_rotated(const ragged<const T>& from, const ragged<T>& to, bool interleave,
                    const reference::rows<long double>& rows, const char* what) {
  for (std::int64_t t = 0; t < from.n; ++t) {
    for (std::int64_t h = 0; h < from.heads; ++h) {
      expect_head(from.data + t * from.stride_n + h * from.stride_h, to.data + t * to.stride_n + h * to.stride_h,
                  static_cast<std::size_t>(from.head_dim), interleave, rows, static_cast<std::size_t>(t),
                  std::string(what) + ", token " + std::to_string(t), 5e5 * 2.3e-16);
    }
  }
}

template <class T>
void expect_apply(bool interleave) {
  SCOPED_TRACE(interleave ? "interleaved" : "halves");
  const std::int64_t n = 6;
  // q of tokens with a gap, k with the heads outside.
  const std::vector<T> q = numbers<T>(6 * 100, 1), k = numbers<T>(2 * 6 * 24, 2);
  std::vector<T> q_to(6 * 72), k_to(6 * 48);
  const ragged<const T> from_q = {q.data(), n, 3, 24, 100, 30}, from_k = {k.data(), n, 2, 24, 24, 6 * 24};
  const ragged<T> to_q = {q_to.data(), n, 3, 24, 72, 24}, to_k = {k_to.data(), n, 2, 24, 48, 24};
  std::vector<double> inv_freq = reference::inverse_frequencies(20, 500000.0);
  for (double& w : inv_freq) w /= 4.0;
  rope of(20, interleave, 4.0, 500000.0);

  const std::vector<std::int32_t> pos_ids = {5, 0, 131071, -3, 5, 400000};
  of.apply_rope_pos_ids(from_q, from_k, to_q, to_k, pos_ids.data());
  const auto rows = defined(inv_freq, std::vector<std::int64_t>(pos_ids.begin(), pos_ids.end()));
  expect_rotated(from_q, to_q, interleave, rows, "q by pos_ids");
  expect_rotated(from_k, to_k, interleave, rows, "k by pos_ids");

  const std::vector<std::int64_t> indptr = {0, 2, 2, 6}, offsets = {9, 77, 1000};
  of.apply_rope(from_q, from_k, to_q, to_k, indptr.data(), offsets.data(), 3);
  const auto of_requests = defined(inv_freq, {9, 10, 1000, 1001, 1002, 1003});
  expect_rotated(from_q, to_q, interleave, of_requests, "q by offsets");
  expect_rotated(from_k, to_k, interleave, of_requests, "k by offsets");

  std::vector<T> in_place = q_to;
  const ragged<T> both = {in_place.data(), n, 3, 24, 72, 24};
  of.apply_rope_pos_ids(read_only(both), read_only(to_k), both, to_k, pos_ids.data());
  expect_rotated(read_only(to_q), both, interleave, rows, "q in place");
}

TEST(FlashInfer, ApplyRopeIsItsDefinition) {
  for (const bool interleave : {false, true}) {
    expect_apply<float16>(interleave);
    expect_apply<bfloat16>(interleave);
  }
}

TEST(FlashInfer, FigureOfFloatAngles) {
  std::vector<float> inv_freq(64);
  for (std::size_t j = 0; j < 64; ++j) inv_freq[j] = std::pow(1.0f / 10000.0f, static_cast<float>(2 * j) / 128.0f);
  const double error = float_angle_error(inv_freq, 10000.0, 131071);
  std::printf(
      "FlashInfer's float angles at position 131071 (theta 10000, 128 channels), without its fast functions: "
      "%.2g off in cos and sin\n",
      error);
  expect_figure(error, 5.0e-3);
}

// ---- quantised append

// What e4m3 bits stand for, from the format's description: 448 is the largest.
long double e4m3(unsigned bits) {
  const int exponent = static_cast<int>(bits >> 3 & 15u), fraction = static_cast<int>(bits & 7u);
  const long double magnitude = exponent == 0 ? std::ldexp(fraction, -9) : std::ldexp(8 + fraction, exponent - 10);
  return (bits & 0x80u) != 0 ? -magnitude : magnitude;
}

// The distance of `value` from the nearest number of the format.
long double distance_to_e4m3(long double value) {
  long double least = 1e9L;
  for (unsigned bits = 0; bits < 0x7f; ++bits) least = std::min(least, std::fabs(std::fabs(value) - e4m3(bits)));
  return least;
}

void expect_quantised(fp8 got, long double value, const std::string& what) {
  const long double distance = std::fabs(e4m3(got.bits) - value);
  ASSERT_LE(distance, distance_to_e4m3(value) + 1e-6L) << what << ": " << static_cast<double>(value);
}

struct appending {
  static constexpr std::size_t head_dim = 20, page_size = 4, pages = 9;
  // Three requests of 7, 0 and 5 tokens after the append of 3, 0 and 5; one token of padding at the end.
  std::vector<std::int32_t> indices = {8, 2, 5, 0}, indptr = {0, 2, 2, 4}, last_page_len = {3, 0, 1};
  std::vector<std::int32_t> append_indptr = {0, 3, 3, 8}, batch_indices = std::vector<std::int32_t>(9, -1);
  std::vector<std::int32_t> positions = std::vector<std::int32_t>(9, 0);
  std::vector<std::int32_t> pos_ids;
  std::vector<float> cos_sin;
  std::vector<bfloat16> q = numbers<bfloat16>(9 * 3 * 20, 1), k = numbers<bfloat16>(9 * 2 * 20, 2);
  std::vector<bfloat16> v = numbers<bfloat16>(9 * 2 * 20, 3);
  std::vector<fp8> k_cache, v_cache, q_out = std::vector<fp8>(9 * 3 * 20);
  std::vector<std::int64_t> slots = std::vector<std::int64_t>(9);
  paged_kv kv;
  float q_scale = 2.0f, kv_scale = 0.7f;
  bool interleave;

  appending(kv_layout layout, bool interleaved) : interleave(interleaved) {
    fp8 untouched;
    untouched.bits = 0x55;
    k_cache.assign(pages * page_size * 2 * head_dim, untouched);
    v_cache = k_cache;
    kv = {k_cache.data(), v_cache.data(), pages, page_size, 2, head_dim, layout, indices.data(), indptr.data(), 3};
    engines::flashinfer::batch_indices_and_positions(append_indptr.data(), kv, last_page_len.data(),
                                                     batch_indices.data(), positions.data());
    for (const std::int32_t p : positions) pos_ids.push_back(p + 30);  // rotation may start elsewhere than the cache
    const std::vector<double> inv_freq = reference::inverse_frequencies(12, 10000.0);
    for (std::int64_t p = 0; p < 50; ++p) {
      for (const double w : inv_freq) cos_sin.push_back(static_cast<float>(reference::phasor_at(p, w).cos));
      for (const double w : inv_freq) cos_sin.push_back(static_cast<float>(reference::phasor_at(p, w).sin));
    }
  }

  template <class Change>
  void run(const Change& change) {
    const ragged<const bfloat16> all_q = {q.data(), 9, 3, 20, 60, 20}, all_k = {k.data(), 9, 2, 20, 40, 20};
    const auto part = [](auto x, std::int64_t first, std::int64_t count) {
      x.data += first;
      x.head_dim = count;
      return x;
    };
    const ragged<fp8> out = {q_out.data(), 9, 3, 20, 60, 20};
    engines::flashinfer::quantize_arguments<bfloat16> of = {
        part(all_q, 0, 12),           part(all_k, 0, 12), part(all_q, 12, 8), part(all_k, 12, 8),
        {v.data(), 9, 2, 20, 40, 20}, part(out, 0, 12),   part(out, 12, 8)};
    change(of);
    engines::flashinfer::rope_quantize_append(of, cos_sin.data(), 50, pos_ids.data(), kv, batch_indices.data(),
                                              positions.data(), q_scale, kv_scale, interleave, slots.data());
  }

  void run() {
    run([](auto&) {});
  }

  // Channel i of a head, rotated.
  long double turned(const bfloat16* head, std::size_t t, std::size_t i) const {
    if (i >= 12) return number(head[i]);
    const std::size_t j = interleave ? i / 2 : i % 6;
    const bool second = interleave ? i % 2 == 1 : i >= 6;
    const long double c = cos_sin[static_cast<std::size_t>(pos_ids[t]) * 12 + j];
    const long double s = cos_sin[static_cast<std::size_t>(pos_ids[t]) * 12 + 6 + j];
    const long double a = number(head[reference::first_channel(interleave, j)]);
    const long double b = number(head[reference::second_channel(interleave, 6, j)]);
    return second ? a * s + b * c : a * c - b * s;
  }

  // Where the cache has channel i of head h at this place of this page.
  std::size_t at(std::size_t page, std::size_t place, std::size_t h, std::size_t i) const {
    return kv.layout == kv_layout::nhd ? ((page * page_size + place) * 2 + h) * head_dim + i
                                       : ((page * 2 + h) * page_size + place) * head_dim + i;
  }
};

TEST(FlashInfer, SequencesEndInTheLastPages) {
  const appending of(kv_layout::nhd, false);
  EXPECT_EQ(of.batch_indices, (std::vector<std::int32_t>{0, 0, 0, 2, 2, 2, 2, 2, -1}));
  EXPECT_EQ(of.positions, (std::vector<std::int32_t>{4, 5, 6, 0, 1, 2, 3, 4, 0}));
}

TEST(FlashInfer, QuantisedAppendIsItsDefinition) {
  const std::size_t page[8] = {2, 2, 2, 5, 5, 5, 5, 0}, place[8] = {0, 1, 2, 0, 1, 2, 3, 0};
  for (const kv_layout layout : {kv_layout::nhd, kv_layout::hnd}) {
    for (const bool interleave : {false, true}) {
      appending of(layout, interleave);
      const std::vector<bfloat16> q = of.q, k = of.k;
      of.run();
      std::vector<bool> written(of.k_cache.size(), false);
      for (std::size_t t = 0; t < 8; ++t) {
        for (std::size_t h = 0; h < 2; ++h) {
          for (std::size_t i = 0; i < 20; ++i) {
            const std::size_t at = of.at(page[t], place[t], h, i), from = (t * 2 + h) * 20;
            written[at] = true;
            expect_quantised(of.k_cache[at], of.turned(&k[from], t, i) * 0.7L, "k, token " + std::to_string(t));
            expect_quantised(of.v_cache[at], number(of.v[from + i]) * 0.7L, "v, token " + std::to_string(t));
          }
        }
      }
      for (std::size_t i = 0; i < written.size(); ++i) {
        if (written[i]) continue;
        ASSERT_EQ(of.k_cache[i].bits, 0x55) << "k beyond the tokens, " << i;
        ASSERT_EQ(of.v_cache[i].bits, 0x55) << "v beyond the tokens, " << i;
      }
      for (std::size_t t = 0; t < 9; ++t) {
        for (std::size_t h = 0; h < 3; ++h) {
          for (std::size_t i = 0; i < 20; ++i) {
            const std::size_t head = (t * 3 + h) * 20;
            expect_quantised(of.q_out[head + i], of.turned(&q[head], t, i) * 2.0L, "q, token " + std::to_string(t));
          }
        }
      }
    }
  }
}

TEST(FlashInfer, EveryChannelMayRotate) {
  const std::vector<float16> x = numbers<float16>(3 * 8, 1);
  const std::vector<float> cos_sin = {0.6f, 0.6f, 0.6f, 0.6f, 0.8f, 0.8f, 0.8f, 0.8f};
  const std::vector<std::int32_t> indices = {1}, indptr = {0, 1}, zeros(3, 0), places = {0, 1, 2};
  std::vector<fp8> k(8 * 8), v(8 * 8), q(3 * 8);
  const paged_kv kv = {k.data(), v.data(), 2, 4, 1, 8, kv_layout::nhd, indices.data(), indptr.data(), 1};
  const ragged<const float16> all = {x.data(), 3, 1, 8, 8, 8}, no_channels = {nullptr, 3, 1, 0, 8, 8};
  const engines::flashinfer::quantize_arguments<float16> of = {
      all, all, no_channels, no_channels, all, {q.data(), 3, 1, 8, 8, 8}, {nullptr, 3, 1, 0, 8, 8}};
  std::vector<std::int64_t> slots(3);
  engines::flashinfer::rope_quantize_append(of, cos_sin.data(), 1, zeros.data(), kv, zeros.data(), places.data(), 1.0f,
                                            1.0f, false, slots.data());
  for (std::size_t t = 0; t < 3; ++t) {
    const long double a = number(x[8 * t + 1]), b = number(x[8 * t + 5]);
    expect_quantised(k[(4 + t) * 8 + 1], a * 0.6L - b * 0.8L, "k");
    expect_quantised(q[t * 8 + 5], a * 0.8L + b * 0.6L, "q");
  }
}

// Multiplied by the scale, as FlashInfer does, or divided by its reciprocal: of all float16 numbers, which v and the
// channels at rest are, and of floats, which rotated channels are.
TEST(FlashInfer, FigureOfTheScale) {
  const auto differ = [](float value, float scale) {
    return fp8(value * scale).bits != fp8(value / (1.0f / scale)).bits;
  };
  const std::vector<float> floats = numbers<float>(1000000, 5);
  for (const float scale : {2.0f, 0.7f, 3.0f, 10.0f}) {
    std::size_t of_halves = 0, of_floats = 0;
    for (unsigned bits = 0; bits < 0x7c00; ++bits) {
      float16 value;
      value.bits = static_cast<std::uint16_t>(bits);
      of_halves += differ(static_cast<float>(value), scale);
    }
    for (const float value : floats) of_floats += differ(value, scale);
    std::printf(
        "scale %g: of all 31744 float16 values %zu become another float8 than FlashInfer's, of 1000000 floats %zu\n",
        double{scale}, of_halves, of_floats);
    EXPECT_EQ(of_halves, 0u);
    EXPECT_EQ(of_floats, 0u);
  }
}

TEST(FlashInfer, RefusesKeysAtRestBeforeAnythingIsWritten) {
  const auto expect = [](const auto& change, const std::string& part) {
    appending of(kv_layout::nhd, false);
    const std::vector<fp8> k = of.k_cache, v = of.v_cache, q = of.q_out;
    expect_refused([&] { of.run([&](auto& with) { change(of, with.k_nope); }); }, part);
    EXPECT_EQ(std::memcmp(k.data(), of.k_cache.data(), k.size()), 0) << part;
    EXPECT_EQ(std::memcmp(v.data(), of.v_cache.data(), v.size()), 0) << part;
    EXPECT_EQ(std::memcmp(q.data(), of.q_out.data(), q.size()), 0) << part;
  };
  expect([](auto&, auto& k_nope) { k_nope.head_dim = 4; }, "2 heads of 4 channels and its cache 2 heads of 8");
  expect([](auto&, auto& k_nope) { k_nope.head_dim = 0; }, "2 heads of 0 channels");
  expect([](auto&, auto& k_nope) { k_nope.heads = 1; }, "1 heads of 8 channels");
  expect([](auto&, auto& k_nope) { k_nope.data = nullptr; }, "null");
  expect([](auto&, auto& k_nope) { k_nope.n = 8; }, "1 sequences of 8 tokens");
  expect([](auto&, auto& k_nope) { k_nope.n = -1; }, "n is -1");
  expect([](auto&, auto& k_nope) { k_nope.stride_n = std::numeric_limits<std::int64_t>::max(); }, "address space");
  expect([](auto& of, auto& k_nope) { k_nope.data = reinterpret_cast<const bfloat16*>(of.k_cache.data()); }, "overlap");
}

TEST(FlashInfer, RefusesRowsAndPositionsThatDoNotFit) {
  std::vector<std::int32_t> append_indptr = {0, 3, 5}, indptr = {0, 2, 3}, last_page_len = {1, 2};
  std::vector<std::int32_t> batch_indices(8, 77), positions(8, 77);
  const std::vector<std::int32_t> before = positions;
  paged_kv kv = {nullptr, nullptr, 9, 16, 1, 8, kv_layout::nhd, nullptr, indptr.data(), 2};
  const auto expect = [&](const std::string& part) {
    expect_refused(
        [&] {
          engines::flashinfer::batch_indices_and_positions(append_indptr.data(), kv, last_page_len.data(),
                                                           batch_indices.data() + 1, positions.data() + 1);
        },
        part);
    EXPECT_EQ(batch_indices, before);
    EXPECT_EQ(positions, before);
  };
  append_indptr = {-1, 2, 4};
  expect("append_indptr[0] is -1");
  append_indptr = {1, 2, 4};
  expect("append_indptr[0] is 1");
  append_indptr = {0, 3, 2};
  expect("append_indptr is 2");
  append_indptr = {0, 3, 6};
  expect("position is -1");
  append_indptr = {0, 3, 5};
  indptr = {0, 1 << 27, (1 << 27) + 1};  // 2^27 pages of 16 end at 2^31 - 1
  last_page_len[0] = 17;
  expect("position is 2147483648");
  indptr = {0, 1 << 30, (1 << 30) + 1};
  last_page_len[0] = 16;
  expect("position is 17179869183");
  kv.page_size = std::size_t{1} << 31;
  expect("page_size is 2147483648");
  kv.page_size = 16;
  indptr = {0, 1 << 27, (1 << 27) + 1};
  engines::flashinfer::batch_indices_and_positions(append_indptr.data(), kv, last_page_len.data(), batch_indices.data(),
                                                   positions.data());
  EXPECT_EQ(positions, (std::vector<std::int32_t>{2147483645, 2147483646, 2147483647, 0, 1, 77, 77, 77}));
}

TEST(FlashInfer, RefusesWhatDoesNotFit) {
  expect_refused([] { rope odd(7, false, 1.0, 10000.0); }, "rotary_dim is 7");
  expect_refused([] { rope still(8, false, 0.0, 10000.0); }, "factor");
  rope of(8, false, 1.0, 10000.0);
  std::vector<float> x(64, 7.0f);
  const std::vector<float> before = x;
  const std::vector<std::int32_t> ids = {0, 2, 4};
  ragged<float> q = {x.data(), 4, 2, 8, 16, 8}, k = {x.data(), 3, 2, 8, 16, 8};
  expect_refused([&] { of.apply_rope_pos_ids(read_only(q), read_only(k), q, k, ids.data()); }, "k's size 0 is 3");
  k.n = 4;
  expect_refused([&] { of.apply_rope(read_only(q), read_only(k), q, k, ids.data(), ids.data(), 1); }, "cu_seqlens");
  EXPECT_EQ(x, before);

  const auto broken = [](const auto& change) {
    return [change] {
      appending scene(kv_layout::nhd, false);
      change(scene);
      const auto unchanged = [](const std::vector<fp8>& cache) {
        return std::all_of(cache.begin(), cache.end(), [](fp8 value) { return value.bits == 0x55; });
      };
      try {
        scene.run();
      } catch (const rotary::error&) {
        EXPECT_TRUE(unchanged(scene.k_cache) && unchanged(scene.v_cache));
        throw;
      }
    };
  };
  expect_refused(broken([](appending& s) { s.batch_indices[1] = 3; }), "batch index is 3");
  expect_refused(broken([](appending& s) { s.positions[1] = 8; }), "position is 8");
  expect_refused(broken([](appending& s) { s.positions[1] = -1; }), "position is -1");
  expect_refused(broken([](appending& s) { s.positions[1] = s.positions[0]; }), "slot");
  expect_refused(broken([](appending& s) { s.indices[1] = 9; }), "slot");
  expect_refused(broken([](appending& s) { s.pos_ids[1] = 50; }), "50");
  expect_refused(broken([](appending& s) { s.kv.page_size = 0; }), "page_size is 0");
  expect_refused(broken([](appending& s) { s.kv.head_dim = 11; }), "head_dim = 11");
  expect_refused(broken([](appending& s) { s.kv.heads = 1; }), "heads");
  expect_refused(broken([](appending& s) { s.kv_scale = 0.0f; }), "scale");
}

}  // namespace
