// The conversions inside the kernels, of every backend: all 16-bit patterns, all rounding ties, through rotations that
// turn nothing. What a channel outside the rotated block becomes is a conversion and nothing else.
#ifndef ROTARY_TESTS_VECTOR_CONVERSIONS_HPP
#define ROTARY_TESTS_VECTOR_CONVERSIONS_HPP

#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <rotary/rotary.hpp>
#include <type_traits>
#include <vector>

#include "every_backend.hpp"
#include "flush_subnormals.hpp"
#include "guarded.hpp"
#include "reference.hpp"

namespace vector_conversions {

using reference::bits_as;
using rotary::backend;
using rotary::bfloat16;
using rotary::float16;
using rotary::pairing;

template <class T>
constexpr bool is_16_bit = sizeof(T) == 2;
template <class T>
constexpr reference::format format_of = std::is_same<T, float16>::value ? reference::binary16 : reference::bfloat;

template <class T>
std::vector<T> every_pattern() {
  std::vector<T> all(65536);
  for (unsigned k = 0; k < all.size(); ++k) all[k].bits = static_cast<std::uint16_t>(k);
  return all;
}

// Each number of the 16-bit format, each tie between two, and the neighbours of both, with both signs; infinities,
// NaNs.
template <class From, class Half>
std::vector<From> numbers_around() {
  std::vector<From> result;
  const From infinity = std::numeric_limits<From>::infinity();
  const auto add = [&](From x) {
    for (const From y : {x, std::nextafter(x, infinity), std::nextafter(x, -infinity)}) {
      result.push_back(y);
      result.push_back(-y);
    }
  };
  for (unsigned k = 0; k <= format_of<Half>.infinity; ++k) {
    const double at = k < format_of<Half>.infinity ? reference::decode(format_of<Half>, static_cast<std::uint16_t>(k))
                                                   : std::ldexp(1.0, std::is_same<Half, float16>::value ? 16 : 127);
    const double below = k == 0 ? 0.0 : reference::decode(format_of<Half>, static_cast<std::uint16_t>(k - 1));
    add(static_cast<From>(at));
    add(static_cast<From>((at + below) / 2));
  }
  result.push_back(infinity);
  result.push_back(-infinity);
  // NaNs of many bits first, which rounding would carry over into the sign; the list may be cut to whole vectors.
  if (sizeof(From) == 4) {
    for (const std::uint32_t bits : {0x7fffffffu, 0xffffffffu, 0x7fff8000u, 0x7fff0001u, 0x7f80ffffu, 0xffff8001u}) {
      result.insert(result.begin(), static_cast<From>(bits_as<float>(bits)));
    }
  }
  for (int i = 0; i < 52; ++i) {
    if (sizeof(From) == 4 && i < 23) {
      result.push_back(static_cast<From>(bits_as<float>(0x7f800000u | 1u << i)));
      result.push_back(static_cast<From>(bits_as<float>(0xff800000u | 1u << i)));
    } else if (sizeof(From) == 8) {
      result.push_back(static_cast<From>(bits_as<double>(std::uint64_t{0x7ff0000000000000u} | std::uint64_t{1} << i)));
    }
  }
  return result;
}

// A number's value, sign of zero included, or that it is a NaN; a NaN's sign and payload have a test of their own.
struct outcome {
  bool nan;
  std::uint64_t bits;
  bool operator==(const outcome& other) const { return nan == other.nan && (nan || bits == other.bits); }
};

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

template <class To, class From>
double expected_value(From x) {
  const double v = value_of(x);
  if constexpr (is_16_bit<To>) {
    return reference::decode(format_of<To>, reference::encode(format_of<To>, static_cast<long double>(v)));
  } else {
    return static_cast<double>(static_cast<To>(v));
  }
}

outcome outcome_of(double v) { return {std::isnan(v), bits_as<std::uint64_t>(v)}; }

// vcvtneps2bf16 reads subnormal floats as zero, so where a rotation rounds floats to bfloat16, avx512_bf16 may give
// either, with the sign kept; only there. Channels that do not rotate are exact everywhere.
template <class To, class From>
bool may_be_flushed(From x, backend which) {
  if (std::is_same<From, double>::value || !std::is_same<To, bfloat16>::value) return false;
  return which == backend::avx512_bf16 && std::fabs(value_of(x)) < 0x1p-126;
}

struct counts {
  std::size_t exact = 0, flushed = 0, wrong = 0;
};

// What number i must become.
template <class To, class From>
std::vector<outcome> outcomes(const std::vector<From>& numbers) {
  std::vector<outcome> result;
  for (const From x : numbers) result.push_back(outcome_of(expected_value<To>(x)));
  return result;
}

template <class To, class From>
void compare(From x, To got, const outcome& expected, backend which, counts& seen) {
  const outcome result = outcome_of(value_of(got));
  if (result == expected) {
    ++seen.exact;
  } else if (may_be_flushed<To>(x, which) && result == outcome_of(std::copysign(0.0, value_of(x)))) {
    ++seen.flushed;
  } else if (++seen.wrong <= 5) {
    ADD_FAILURE() << std::hexfloat << value_of(x) << " became " << value_of(got) << ", not " << expected_value<To>(x);
  }
}

template <class From, class To>
using table_of =
    std::conditional_t<std::is_same<From, double>::value || std::is_same<To, double>::value, double, float>;

// Copies channels outside the block, in heads of a length that uses whole vectors and ends in single channels.
template <class From, class To>
void check_copies(const std::vector<From>& numbers) {
  using Row = table_of<From, To>;
  constexpr std::size_t head_dim = 4 * 64 + 13;
  const std::size_t heads = (numbers.size() + head_dim - 1) / head_dim;
  guarded::array<From> from(heads * head_dim);
  guarded::array<To> to(heads * head_dim);
  const std::vector<outcome> expected = outcomes<To>(numbers);
  for (std::size_t i = 0; i < from.size(); ++i) from[i] = numbers[i % numbers.size()];
  const rotary::table_view<Row> no_pairs = {nullptr, nullptr, 1, 0, 0, 1, 0, 1.0};
  backends::on_each([&](backend which) {
    std::memset(static_cast<void*>(to.data()), 0x55, to.size() * sizeof(To));
    rotary::rotate(rotary::thd(static_cast<const From*>(from.data()), 1, heads, head_dim),
                   rotary::thd(to.data(), 1, heads, head_dim), no_pairs, 0);
    counts seen;
    for (std::size_t i = 0; i < from.size(); ++i)
      compare<To>(from[i], to[i], expected[i % numbers.size()], which, seen);
    EXPECT_EQ(seen.wrong, 0u) << "of " << from.size();
    EXPECT_EQ(seen.flushed, 0u);
  });
}

// Rotates by cos 1 and sin 0 or -0, with the number in one member of each pair and zero in the other, so that the
// products add nothing: x * 1 - 0 * 0, and x * 1 + 0 * -0, which keeps the sign of a zero.
template <class From, class To>
void check_rotations(const std::vector<From>& numbers, std::size_t pairs) {
  using Row = table_of<From, To>;
  const std::size_t heads = (numbers.size() + pairs - 1) / pairs;
  const std::vector<Row> ones(pairs, Row(1));
  guarded::array<From> from(heads * 2 * pairs);
  guarded::array<To> to(heads * 2 * pairs);
  const std::vector<outcome> expected = outcomes<To>(numbers);
  for (const pairing how : {pairing::split_half, pairing::interleaved}) {
    for (const bool second : {false, true}) {
      SCOPED_TRACE(testing::Message() << (how == pairing::split_half ? "split_half" : "interleaved") << ", member "
                                      << second << ", pairs " << pairs);
      const std::vector<Row> zeros(pairs, second ? Row(-0.0) : Row(0));
      const rotary::table_view<Row> identity = {
          ones.data(), zeros.data(), 1, pairs, static_cast<std::ptrdiff_t>(pairs), 1, 0, 1.0};
      const auto channel = [&](std::size_t j) {
        const bool interleaved = how == pairing::interleaved;
        return second ? reference::second_channel(interleaved, pairs, j) : reference::first_channel(interleaved, j);
      };
      std::memset(static_cast<void*>(from.data()), 0, from.size() * sizeof(From));
      for (std::size_t i = 0; i < heads * pairs; ++i) {
        from[i / pairs * 2 * pairs + channel(i % pairs)] = numbers[i % numbers.size()];
      }
      backends::on_each([&](backend which) {
        rotary::rotate(rotary::thd(static_cast<const From*>(from.data()), 1, heads, 2 * pairs),
                       rotary::thd(to.data(), 1, heads, 2 * pairs), identity, 0, how);
        counts seen;
        for (std::size_t i = 0; i < heads * pairs; ++i) {
          const std::size_t at = i / pairs * 2 * pairs + channel(i % pairs);
          compare<To>(from[at], to[at], expected[i % numbers.size()], which, seen);
        }
        EXPECT_EQ(seen.wrong, 0u) << "of " << heads * pairs;
        if (pairs >= 16 && may_be_flushed<To>(static_cast<From>(0.0f), which)) {
          EXPECT_GT(seen.flushed, 0u) << "subnormals are kept now: no exception is needed any more";
        }
      });
    }
  }
}

// 64 pairs fill whole vectors, 37 need an overlapping one, 3 and 1 go one by one.
template <class From, class To>
void check_rotations(const std::vector<From>& numbers) {
  for (const std::size_t pairs : {64u, 37u, 3u, 1u}) check_rotations<From, To>(numbers, pairs);
}

template <class From, class To>
void check_all(const std::vector<From>& numbers) {
  check_copies<From, To>(numbers);
  check_rotations<From, To>(numbers);
}

// What is stored in the type it was read from comes back as it was, and a NaN keeps sign and payload on its way.
template <class From, class To>
void check_nans() {
  const std::vector<From> numbers = every_pattern<From>();
  guarded::array<To> wide(numbers.size());
  guarded::array<From> back(numbers.size());
  const rotary::table_view<float> no_pairs = {nullptr, nullptr, 1, 0, 0, 1, 0, 1.0};
  const unsigned quiet = 1u << (format_of<From>.fraction_bits - 1);
  backends::on_each([&](backend) {
    rotary::rotate(rotary::thd(numbers.data(), 1, 1, numbers.size()), rotary::thd(wide.data(), 1, 1, wide.size()),
                   no_pairs, 0);
    rotary::rotate(rotary::thd(static_cast<const To*>(wide.data()), 1, 1, wide.size()),
                   rotary::thd(back.data(), 1, 1, back.size()), no_pairs, 0);
    std::size_t wrong = 0;
    for (unsigned k = 0; k < back.size(); ++k) {
      const bool nan = (k & 0x7fffu) > format_of<From>.infinity;
      if (back[k].bits == (nan ? k | quiet : k)) continue;
      if (++wrong <= 5) ADD_FAILURE() << "0x" << std::hex << k << " came back as 0x" << back[k].bits;
    }
    EXPECT_EQ(wrong, 0u);
  });
}

// With subnormals flushed, channels that do not rotate still come out exact.
template <class From, class To>
void check_copies_flushed(const std::vector<From>& numbers) {
  if (!flush_subnormals::exists) GTEST_SKIP() << "this CPU has no such mode that is known here";
  std::vector<To> to(numbers.size());
  const std::vector<outcome> expected = outcomes<To>(numbers);
  const rotary::table_view<float> no_pairs = {nullptr, nullptr, 1, 0, 0, 1, 0, 1.0};
  backends::on_each([&](backend which) {
    {
      const flush_subnormals mode(true);
      rotary::rotate(rotary::thd(numbers.data(), 1, 1, numbers.size()), rotary::thd(to.data(), 1, 1, to.size()),
                     no_pairs, 0);
    }
    counts seen;
    for (std::size_t i = 0; i < to.size(); ++i) compare<To>(numbers[i], to[i], expected[i], which, seen);
    EXPECT_EQ(seen.wrong, 0u);
    EXPECT_EQ(seen.flushed, 0u);
  });
}

}  // namespace vector_conversions

#endif
