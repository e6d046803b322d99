// Every combination of data type, pairing, rotary_dim, block, memory layout, heads, batch, place and backend, against a
// slow reference, with every buffer against a guard page. One test program per data type includes this file.
#ifndef ROTARY_TESTS_CROSS_PRODUCT_HPP
#define ROTARY_TESTS_CROSS_PRODUCT_HPP

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <rotary/rotary.hpp>
#include <string>
#include <type_traits>
#include <vector>

#include "every_backend.hpp"
#include "guarded.hpp"
#include "reference.hpp"
#include "type_names.hpp"

namespace cross_product {

using rotary::backend;
using rotary::bfloat16;
using rotary::float16;
using rotary::pairing;
using rotary::table_view;
using rotary::tensor_view;

// ---- numbers

template <class T>
constexpr bool is_16_bit = sizeof(T) == 2;
template <class T>
constexpr reference::format format_of = std::is_same<T, float16>::value ? reference::binary16 : reference::bfloat;

template <class T>
double value_of(T x) {
  if constexpr (is_16_bit<T>) {
    static const std::vector<double> decoded = [] {
      std::vector<double> all(65536);
      for (unsigned k = 0; k < all.size(); ++k) all[k] = reference::decode(format_of<T>, static_cast<std::uint16_t>(k));
      return all;
    }();
    return decoded[x.bits];
  } else {
    return static_cast<double>(x);
  }
}

template <class T>
T rounded(double value) {
  if constexpr (is_16_bit<T>) {
    T result;
    result.bits = reference::encode(format_of<T>, static_cast<long double>(value));
    return result;
  } else {
    return static_cast<T>(value);
  }
}

/// Numbers of T from 2^-27 to 8 in magnitude, some zeros, in no order.
template <class T>
const std::vector<T>& numbers() {
  static const std::vector<T> pool = [] {
    std::vector<T> result;
    reference::random_bits random(17);
    for (int i = 0; i < 10007; ++i) {
      result.push_back(rounded<T>(std::ldexp(random.next_unit(), static_cast<int>(random.next() % 8) - 4)));
    }
    return result;
  }();
  return pool;
}

// ---- the shapes

constexpr std::size_t rotary_dims[] = {2, 6, 10, 20, 32, 48, 64, 72, 80, 88, 96, 128, 160, 192, 256, 576};

struct block {
  const char* name;
  std::size_t rotary_dim, offset, head_dim;
};
inline std::vector<block> blocks_of(std::size_t d) {
  return {{"whole head", d, 0, d}, {"partial", d, 0, d + 22}, {"offset", d, 13, d + 13 + 10}};
}

enum class memory { bshd, bhsd, packed_qkv, channel_slice, odd_strides };
constexpr memory memories[] = {memory::bshd, memory::bhsd, memory::packed_qkv, memory::channel_slice,
                               memory::odd_strides};
inline const char* name_of(memory m) {
  constexpr const char* names[] = {"bshd", "bhsd", "packed qkv", "channel slice", "odd strides"};
  return names[static_cast<int>(m)];
}

/// q or k of a layer: `count` heads from `first` on of a token's q, k and v heads.
struct heads {
  std::size_t all, first, count;
};
constexpr heads head_counts[] = {{40, 0, 32}, {40, 32, 4}, {5, 0, 3}, {5, 3, 1}};

/// The view of that layout, with its pointer at element 0 of `base`.
template <class T>
tensor_view<T> view_in(memory m, T* base, const heads& h, std::size_t batch, std::size_t tokens, std::size_t head_dim) {
  switch (m) {
    case memory::bshd:
      return rotary::bshd(base, batch, tokens, h.count, head_dim);
    case memory::bhsd:
      return rotary::bhsd(base, batch, h.count, tokens, head_dim);
    case memory::packed_qkv:
      return rotary::heads(rotary::bshd(base, batch, tokens, h.all, head_dim), h.first, h.count);
    case memory::channel_slice:
      return rotary::channels(rotary::bshd(base, batch, tokens, h.count, head_dim + 37), 19, head_dim);
    default: {
      // Heads with gaps of 3, tokens from the last to the first, batches with gaps.
      const std::ptrdiff_t head = static_cast<std::ptrdiff_t>(head_dim) + 3;
      const std::ptrdiff_t token = head * static_cast<std::ptrdiff_t>(h.count) + 5;
      return {base, batch, tokens, h.count, head_dim, token * static_cast<std::ptrdiff_t>(tokens) + 7, -token, head};
    }
  }
}

/// A view moved so that the last element it reaches lies against the guard page, or the first one.
template <class T>
struct placed {
  tensor_view<T> view;
  T* low;            // the lowest element reached
  std::size_t size;  // elements from there to behind the highest

  placed(guarded::region& where, bool at_front, memory m, const heads& h, std::size_t batch, std::size_t tokens,
         std::size_t head_dim)
      : view(view_in(m, where.starting<T>(1), h, batch, tokens, head_dim)) {
    std::size_t below = 0;
    size = head_dim;
    const auto reach = [&](std::size_t count, std::ptrdiff_t stride) {
      const std::size_t length = (count - 1) * static_cast<std::size_t>(stride < 0 ? -stride : stride);
      size += length;
      if (stride < 0) below += length;
    };
    reach(batch, view.batch_stride);
    reach(tokens, view.token_stride);
    reach(h.count, view.head_stride);
    low = at_front ? where.starting<T>(size) : where.ending<T>(size);
    view.data = low + below;
  }

  std::ptrdiff_t head_at(std::size_t b, std::size_t t, std::size_t h) const {
    return (view.data - low) + static_cast<std::ptrdiff_t>(b) * view.batch_stride +
           static_cast<std::ptrdiff_t>(t) * view.token_stride + static_cast<std::ptrdiff_t>(h) * view.head_stride;
  }
};

// ---- rows of cos and sin

enum class form { separate, cos_then_sin, alternating, halves_repeated, each_twice };
constexpr form forms[] = {form::separate, form::cos_then_sin, form::alternating, form::halves_repeated,
                          form::each_twice};
inline const char* name_of(form f) {
  constexpr const char* names[] = {"two arrays", "[cos | sin]", "{cos, sin}", "halves repeated", "each twice"};
  return names[static_cast<int>(f)];
}

constexpr std::int64_t first_position = 65531;  // the rows cross a power of the table's radix
constexpr std::int64_t row_count = 9;

/// A table's rows copied into one of the layouts that engines keep. The last element that belongs to the last pair of
/// the last row lies against the guard page, even where an engine's own array would go on.
template <class Row>
class borrowed_rows {
 public:
  borrowed_rows() : cos_(bytes), sin_(bytes) {}

  table_view<Row> make(const table_view<Row>& from, form f, bool at_front) {
    const bool one_array = f == form::cos_then_sin || f == form::alternating;
    const std::size_t pairs = from.pairs;
    const std::size_t step = f == form::alternating || f == form::each_twice ? 2 : 1;
    const std::size_t stride = f == form::separate ? pairs : 2 * pairs;
    std::size_t behind = (from.rows - 1) * stride + (pairs - 1) * step + 1;  // the last cos, if it stands alone
    if (f == form::cos_then_sin) behind += pairs;
    if (f == form::alternating) behind += 1;
    Row* cos = at_front ? cos_.starting<Row>(behind) : cos_.ending<Row>(behind);
    Row* sin = at_front ? sin_.starting<Row>(behind) : sin_.ending<Row>(behind);
    if (one_array) sin = cos + (f == form::alternating ? 1 : pairs);
    if (!one_array) fill(sin, behind);
    fill(cos, behind);
    for (std::size_t r = 0; r < from.rows; ++r) {
      for (std::size_t j = 0; j < pairs; ++j) {
        const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(r) * from.row_stride + static_cast<std::ptrdiff_t>(j);
        cos[r * stride + j * step] = from.cos[at];
        sin[r * stride + j * step] = from.sin[at];
      }
    }
    return {cos,
            sin,
            from.rows,
            pairs,
            static_cast<std::ptrdiff_t>(stride),
            static_cast<std::ptrdiff_t>(step),
            from.first_position,
            from.magnitude};
  }

 private:
  // What lies between the pairs must not matter.
  static void fill(Row* at, std::size_t count) { std::memset(static_cast<void*>(at), 0xff, count * sizeof(Row)); }

  static constexpr std::size_t bytes = 9 * 2 * 576 * sizeof(Row);
  guarded::region cos_, sin_;
};

// ---- one data type

/// Tensors of From become tensors of To by rows of Row.
template <class From, class To, class Row>
class comparison {
 public:
  static constexpr bool same_type = std::is_same<From, To>::value;
  static constexpr bool in_double =
      std::is_same<From, double>::value || std::is_same<To, double>::value || std::is_same<Row, double>::value;
  static constexpr bool half_rows =
      std::is_same<Row, float16>::value && std::is_same<From, float16>::value && same_type;
  using Real = std::conditional_t<in_double, long double, double>;

  comparison() : from_memory_(memory_bytes), to_memory_(memory_bytes) {}

  /// {whole, partial, offset} x {layouts} x {heads} x {batch} for every rotary_dim, with float or double rows.
  void every_layout() {
    for (const std::size_t d : rotary_dims) {
      set_rotary_dim(d);
      const table_view<Row> rows = borrowed_.make(table_->view(), form::separate, false);
      for (const block& part : blocks_of(d)) {
        for (const memory m : memories) {
          for (const heads& h : head_counts) {
            for (const std::size_t batch : {std::size_t{1}, std::size_t{2}}) {
              for (const bool at_front : {false, true}) {
                every_pairing_and_place(rows, part, m, h, batch, at_front);
                if (testing::Test::HasFailure()) return;
              }
              ++cases_;
            }
          }
        }
      }
    }
    const std::size_t pairings = same_type ? 2 + 4 : 4;
    EXPECT_EQ(rotations_, 16u * 3 * 5 * 4 * 2 * 2 * pairings * backends::available().size())
        << "some of the cross product is missing";
    print("layouts");
  }

  /// The forms of borrowed tables x {whole, partial, offset} for every rotary_dim.
  void every_form() {
    for (const std::size_t d : rotary_dims) {
      set_rotary_dim(d);
      for (const form f : forms) {
        for (const bool at_front : {false, true}) {
          const table_view<Row> rows = borrowed_.make(table_->view(), f, at_front);
          form_ = f;
          for (const block& part : blocks_of(d)) {
            every_pairing_and_place(rows, part, memory::bshd, head_counts[2], 1, at_front);
            if (testing::Test::HasFailure()) return;
          }
        }
      }
    }
    const std::size_t pairings = same_type ? 2 + 4 : 4;
    EXPECT_EQ(rotations_, 16u * 5 * 2 * 3 * pairings * backends::available().size())
        << "some of the cross product is missing";
    print("table forms");
  }

 private:
  static constexpr std::size_t memory_bytes = std::size_t{1} << 22;
  static constexpr std::size_t tokens = 2;

  void print(const char* what) const {
    std::printf("[ %-8s ] %s -> %s by rows of %s: %zu rotations, %zu numbers compared\n", "CROSSED", type_name<From>(),
                type_name<To>(), type_name<Row>(), rotations_, compared_);
    std::printf("[ %-8s ] %s; on", "", what);
    for (const backend which : backends::available()) std::printf(" %s", rotary::backend_name(which));
    std::printf("\n");
  }

  // Float rows are compared with the exact cos and sin; others are taken as they are, since their own error would hide
  // that of the rotation: the tests of the table judge it.
  void set_rotary_dim(std::size_t d) {
    const std::vector<double> inv_freq = reference::inverse_frequencies(d, 10000.0);
    table_ = std::make_unique<rotary::table<Row>>(rotary::spectrum(inv_freq), row_count, first_position);
    std::vector<std::int64_t> positions;
    for (std::int64_t r = 0; r < row_count; ++r) positions.push_back(first_position + r);
    rows_ = reference::rows<Real>(inv_freq, positions);
    if (std::is_same<Row, float>::value && !in_double) return;
    const table_view<Row> stored = table_->view();
    for (std::size_t r = 0; r < stored.rows; ++r) {
      for (std::size_t j = 0; j < stored.pairs; ++j) {
        const std::ptrdiff_t at = static_cast<std::ptrdiff_t>(r) * stored.row_stride + static_cast<std::ptrdiff_t>(j);
        rows_.cos[r * stored.pairs + j] = static_cast<Real>(value_of(stored.cos[at]));
        rows_.sin[r * stored.pairs + j] = static_cast<Real>(value_of(stored.sin[at]));
      }
    }
  }

  void every_pairing_and_place(const table_view<Row>& rows, const block& part, memory m, const heads& h,
                               std::size_t batch, bool at_front) {
    const placed<From> from(from_memory_, at_front, m, h, batch, tokens, part.head_dim);
    const memory other = memories[(static_cast<std::size_t>(m) + 1 + cases_ % 4) % 5];
    const placed<To> to(to_memory_, at_front, other, h, batch, tokens, part.head_dim);
    set_numbers(from, to, part);
    for (const pairing read : {pairing::split_half, pairing::interleaved}) {
      if constexpr (same_type) {
        const rotary::layout how(read, part.offset);
        expect(from, part, how);
        run(from, from, rows, part, how, m, m, source_, source_, source_);
      }
      for (const pairing write : {pairing::split_half, pairing::interleaved}) {
        const rotary::layout how(read, part.offset, write);
        expect(from, part, how);
        run(from, to, rows, part, how, m, other, source_, before_, outside_);
      }
    }
  }

  // source_: what the source holds. before_: noise in the destination. outside_: the destination with its channels
  // outside the block as they must become. Noise is of any bits, NaNs among them.
  void set_numbers(const placed<From>& from, const placed<To>& to, const block& part) {
    fill_noise(source_, from.size);
    fill_noise(before_, to.size);
    const std::vector<From>& pool = numbers<From>();
    for_each_head(from.view, [&](std::size_t b, std::size_t t, std::size_t h) {
      From* head = source_.data() + from.head_at(b, t, h);
      // Channels outside keep any bits where the type stays; where it changes, they are numbers.
      const std::size_t begin = same_type ? part.offset : 0;
      const std::size_t end = same_type ? part.offset + part.rotary_dim : part.head_dim;
      for (std::size_t i = begin; i < end; ++i) {
        head[i] = pool[next_];
        next_ = next_ + 1 == pool.size() ? 0 : next_ + 1;
      }
    });
    outside_ = before_;
    for_each_head(from.view, [&](std::size_t b, std::size_t t, std::size_t h) {
      const From* in = source_.data() + from.head_at(b, t, h);
      To* out = outside_.data() + to.head_at(b, t, h);
      for (std::size_t i = 0; i < part.head_dim; ++i) {
        if (i - part.offset < part.rotary_dim) continue;
        if constexpr (same_type) {
          std::memcpy(static_cast<void*>(out + i), in + i, sizeof(To));
        } else {
          out[i] = rounded<To>(value_of(in[i]));
        }
      }
    });
  }

  template <class T>
  void fill_noise(std::vector<T>& to, std::size_t size) {
    to.resize(size);
    unsigned char* bytes = reinterpret_cast<unsigned char*>(to.data());
    for (std::size_t i = 0; i < size * sizeof(T); i += 2) {
      const std::uint16_t bits = random_.next16();
      std::memcpy(bytes + i, &bits, 2);
    }
  }

  template <class T, class Visit>
  static void for_each_head(const tensor_view<T>& x, const Visit& visit) {
    for (std::size_t b = 0; b < x.batch; ++b) {
      for (std::size_t t = 0; t < x.tokens; ++t) {
        for (std::size_t h = 0; h < x.heads; ++h) visit(b, t, h);
      }
    }
  }

  static std::size_t row_of(std::size_t b, std::size_t t) { return (3 + 5 * (b * tokens + t)) % row_count; }

  // What the rotated block must become, and how far from it a number may be.
  void expect(const placed<From>& from, const block& part, const rotary::layout& how) {
    const std::size_t d = part.rotary_dim, pairs = d / 2;
    expected_.clear();
    tolerance_.clear();
    std::vector<Real> in(d), out(d);
    for_each_head(from.view, [&](std::size_t b, std::size_t t, std::size_t h) {
      const From* head = source_.data() + from.head_at(b, t, h) + part.offset;
      for (std::size_t i = 0; i < d; ++i) in[i] = static_cast<Real>(value_of(head[i]));
      const bool read = how.pairing == pairing::interleaved, write = how.stored == pairing::interleaved;
      const Real* cos = rows_.cos.data() + row_of(b, t) * pairs;
      const Real* sin = rows_.sin.data() + row_of(b, t) * pairs;
      reference::rotate_block(in.data(), out.data(), pairs, cos, sin, read, write);
      const std::size_t base = expected_.size();
      expected_.insert(expected_.end(), out.begin(), out.end());
      tolerance_.resize(base + d);
      if (half_rows) half_tolerance_.resize(base + d);
      for (std::size_t j = 0; j < pairs; ++j) {
        const Real x = in[reference::first_channel(read, j)], y = in[reference::second_channel(read, pairs, j)];
        const Real c = cos[j], s = sin[j];
        const std::size_t first = base + reference::first_channel(write, j);
        const std::size_t second = base + reference::second_channel(write, pairs, j);
        tolerance_[first] = tolerance(x, y, c, s, expected_[first]);
        tolerance_[second] = tolerance(x, y, c, s, expected_[second]);
        if (!half_rows) continue;
        half_tolerance_[first] = half_tolerance(x * c, y * s, expected_[first]);
        half_tolerance_[second] = half_tolerance(y * c, x * s, expected_[second]);
      }
    });
  }

  // Of one result y, the sum of a pair's two products p and q; (a, b) is the pair and (c, s) its row.
  //
  // Float arithmetic: each product is off by 2^-24 of itself at most (or not at all, where it is fused), the sum by
  // 2^-24 of itself, and the row's entries by 2^-25 each: together 2.71 * 2^-24 * |(a, b)|; 3 is the documented bound.
  // Double arithmetic has 2^-53 in its place. A shorter result is then rounded once: half an ulp more.
  static double tolerance(Real a, Real b, Real c, Real s, Real y) {
    const double unit = in_double ? 0x1p-53 : 0x1p-24;
    const double bound =
        3.0 * unit * static_cast<double>(std::sqrt((a * a + b * b) * std::max(Real(1), c * c + s * s)));
    if (is_16_bit<To>) {
      constexpr reference::format stored = format_of<To>;
      return bound + reference::half_ulp(static_cast<double>(y), stored.fraction_bits, stored.least_exponent);
    }
    if (in_double && !std::is_same<To, double>::value) {
      return bound + reference::half_ulp(static_cast<double>(y), 23, -126);
    }
    return bound;
  }

  // Half arithmetic (float16 tensors and rows on avx512_fp16): one product is rounded, 2^-11 of itself, then the fused
  // sum, 2^-11 of what it is; either may be subnormal, 2^-25.
  static double half_tolerance(Real p, Real q, Real y) {
    const Real product = std::max(std::fabs(p), std::fabs(q));
    return 0x1p-11 * static_cast<double>(product * (1 + 0x1p-11) + std::fabs(y)) + 2 * 0x1p-25;
  }

  // `source`: what is in the source before. `before`: what is in the destination before. `after`: what must be there
  // afterwards outside the rotated block, and anything inside it.
  void run(const placed<From>& from, const placed<To>& to, const table_view<Row>& rows, const block& part,
           const rotary::layout& how, memory from_memory, memory to_memory, const std::vector<From>& source,
           const std::vector<To>& before, const std::vector<To>& after) {
    std::int64_t ids[2 * tokens];
    for (std::size_t b = 0; b < from.view.batch; ++b) {
      for (std::size_t t = 0; t < tokens; ++t) {
        ids[b * tokens + t] = first_position + static_cast<std::int64_t>(row_of(b, t));
      }
    }
    const rotary::positions where(ids, from.view.batch * tokens);
    const bool in_place = static_cast<const void*>(from.low) == static_cast<const void*>(to.low);
    for (const backend which : backends::available()) {
      const backends::forced only(which);
      copy(to.low, before);
      copy(from.low, source);
      if (in_place) {
        if constexpr (same_type) rotary::rotate(to.view, rows, where, how);
      } else {
        rotary::rotate(from.view, to.view, rows, where, how);
      }
      ++rotations_;
      const bool in_half = half_rows && which == backend::avx512_fp16;
      std::string fault = compare(to, part, after, in_half ? half_tolerance_ : tolerance_);
      if (fault.empty() && std::memcmp(to.low, after.data(), after.size() * sizeof(To)) != 0) {
        fault = "something outside the rotated block is not what it must be";
      }
      if (fault.empty() && !in_place && std::memcmp(from.low, source.data(), source.size() * sizeof(From)) != 0) {
        fault = "the source was written";
      }
      if (!fault.empty()) {
        ADD_FAILURE() << type_name<From>() << " -> " << type_name<To>() << (in_place ? " in place" : " out of place")
                      << ", rows of " << type_name<Row>() << ", " << name_of(form_) << ", backend "
                      << rotary::backend_name(which) << ", pairing "
                      << (how.pairing == pairing::interleaved ? "interleaved" : "split_half") << ", stored "
                      << (how.stored == pairing::interleaved ? "interleaved" : "split_half") << ", " << part.name
                      << ", rotary_dim " << part.rotary_dim << ", offset " << part.offset << ", head_dim "
                      << part.head_dim << ", batch " << from.view.batch << ", heads " << from.view.heads << ", from "
                      << name_of(from_memory) << ", to " << name_of(to_memory) << "\n"
                      << fault;
        return;
      }
    }
  }

  template <class T>
  static void copy(T* to, const std::vector<T>& from) {
    std::memcpy(static_cast<void*>(to), from.data(), from.size() * sizeof(T));
  }

  // Compares the rotated block; puts `after` in its place, so that the rest can be compared at once.
  std::string compare(const placed<To>& to, const block& part, const std::vector<To>& after,
                      const std::vector<double>& tolerances) {
    const Real* expected = expected_.data();
    const double* tolerance = tolerances.data();
    std::string fault;
    for_each_head(to.view, [&](std::size_t b, std::size_t t, std::size_t h) {
      const std::ptrdiff_t at = to.head_at(b, t, h) + static_cast<std::ptrdiff_t>(part.offset);
      To* got = to.low + at;
      std::size_t wrong = 0;
      for (std::size_t i = 0; i < part.rotary_dim; ++i) {
        const Real error = std::fabs(static_cast<Real>(value_of(got[i])) - expected[i]);
        wrong += error <= static_cast<Real>(tolerance[i]) ? 0 : 1;  // a NaN is wrong
      }
      for (std::size_t i = 0; wrong != 0 && fault.empty(); ++i) {
        const Real error = std::fabs(static_cast<Real>(value_of(got[i])) - expected[i]);
        if (error <= static_cast<Real>(tolerance[i])) continue;
        char text[200];
        std::snprintf(text, sizeof text, "sequence %zu, token %zu, head %zu, channel %zu: %.17g, not %.17g +- %.3g", b,
                      t, h, part.offset + i, value_of(got[i]), static_cast<double>(expected[i]), tolerance[i]);
        fault = text;
      }
      std::memcpy(static_cast<void*>(got), after.data() + at, part.rotary_dim * sizeof(To));
      expected += part.rotary_dim;
      tolerance += part.rotary_dim;
      compared_ += part.rotary_dim;
    });
    return fault;
  }

  guarded::region from_memory_, to_memory_;
  borrowed_rows<Row> borrowed_;
  std::unique_ptr<rotary::table<Row>> table_;
  reference::rows<Real> rows_;
  std::vector<From> source_;
  std::vector<To> before_, outside_;
  std::vector<Real> expected_;
  std::vector<double> tolerance_, half_tolerance_;
  reference::random_bits random_{23};
  form form_ = form::separate;
  std::size_t next_ = 0, cases_ = 0, rotations_ = 0, compared_ = 0;
};

}  // namespace cross_product

#endif
