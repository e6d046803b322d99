// What the tests compare against: rotation and 16-bit formats from their definitions, slow, in double or long double,
// sharing no code with the library.
#ifndef ROTARY_TESTS_REFERENCE_HPP
#define ROTARY_TESTS_REFERENCE_HPP

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

namespace reference {

// ---- numbers

/// A binary format of 16 bits: a sign, then the exponent, then fraction_bits.
struct format {
  int fraction_bits;
  int least_exponent;  // of a normal number: 1.0 * 2^least_exponent
  unsigned infinity;   // its bits
};
constexpr format binary16{10, -14, 0x7c00u};
constexpr format bfloat{7, -126, 0x7f80u};

/// The number that `bits` stand for. NaN for a NaN.
inline double decode(format f, std::uint16_t bits) {
  const unsigned magnitude = bits & 0x7fffu;
  const double sign = (bits & 0x8000u) != 0 ? -1.0 : 1.0;
  if (magnitude == f.infinity) return sign * std::numeric_limits<double>::infinity();
  if (magnitude > f.infinity) return std::numeric_limits<double>::quiet_NaN();
  const int biased = static_cast<int>(magnitude >> f.fraction_bits);
  const double fraction = static_cast<double>(magnitude & ((1u << f.fraction_bits) - 1u));
  const double hidden = biased == 0 ? 0.0 : std::ldexp(1.0, f.fraction_bits);
  const int unit = (biased == 0 ? 0 : biased - 1) + f.least_exponent - f.fraction_bits;
  return sign * std::ldexp(hidden + fraction, unit);
}

/// The nearest number of the format, ties to even: the value in units of the last place is rounded to an integer.
inline std::uint16_t encode(format f, long double value) {
  const unsigned sign = std::signbit(value) ? 0x8000u : 0u;
  const long double magnitude = std::fabs(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | f.infinity | 1u << (f.fraction_bits - 1));
  if (std::isinf(value)) return static_cast<std::uint16_t>(sign | f.infinity);
  if (magnitude == 0.0L) return static_cast<std::uint16_t>(sign);
  int exponent = 0;
  std::frexp(magnitude, &exponent);
  --exponent;  // magnitude = 1.xxx * 2^exponent
  if (exponent < f.least_exponent) exponent = f.least_exponent;
  const long double units = std::nearbyint(std::ldexp(magnitude, f.fraction_bits - exponent));
  const long double bits = std::ldexp(static_cast<long double>(exponent - f.least_exponent), f.fraction_bits) + units;
  const unsigned rounded = bits >= static_cast<long double>(f.infinity) ? f.infinity : static_cast<unsigned>(bits);
  return static_cast<std::uint16_t>(sign | rounded);
}

template <class To, class From>
To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From), "bits_as keeps the size");
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

/// Half a unit in the last place at `value`, for a format of that many fraction bits: the largest error of one
/// rounding.
inline double half_ulp(double value, int fraction_bits, int least_exponent) {
  const double least = std::ldexp(1.0, least_exponent);
  const double at = std::fabs(value) < least ? least : std::fabs(value);
  // Clearing the fraction leaves the power of two.
  const double power = bits_as<double>(bits_as<std::uint64_t>(at) & 0x7ff0000000000000u);
  return power * std::ldexp(1.0, -fraction_bits - 1);
}

/// The larger of the two. Unlike std::fmax it keeps a NaN, so that no largest error hides one.
inline double larger(double a, double b) { return std::isnan(a) || b <= a ? a : b; }

// ---- rotation

/// The channels of pair j in a rotated block of that many pairs.
inline std::size_t first_channel(bool interleaved, std::size_t pair) { return interleaved ? 2 * pair : pair; }
inline std::size_t second_channel(bool interleaved, std::size_t pairs, std::size_t pair) {
  return interleaved ? 2 * pair + 1 : pair + pairs;
}

/// theta^(-2j/rotary_dim)
inline std::vector<double> inverse_frequencies(std::size_t rotary_dim, double theta) {
  std::vector<double> result(rotary_dim / 2);
  for (std::size_t j = 0; j < result.size(); ++j) {
    const long double exponent = -2.0L * static_cast<long double>(j) / static_cast<long double>(rotary_dim);
    result[j] = static_cast<double>(std::pow(static_cast<long double>(theta), exponent));
  }
  return result;
}

struct phasor {
  long double cos, sin;
};

/// cos and sin of position * inv_freq. The product's rounding error (fma finds it exactly) is put back to first order.
inline phasor phasor_at(std::int64_t position, double inv_freq) {
  const long double p = static_cast<long double>(position), w = static_cast<long double>(inv_freq);
  const long double angle = p * w;
  const long double rest = std::fma(p, w, -angle);
  const long double c = std::cos(angle), s = std::sin(angle);
  return {c - rest * s, s + rest * c};
}

/// [tokens, pairs] cos and sin of the positions, times magnitude.
template <class Real>
struct rows {
  std::size_t pairs = 0;
  std::vector<Real> cos, sin;

  rows() = default;
  rows(const std::vector<double>& inv_freq, const std::vector<std::int64_t>& positions, double magnitude = 1.0)
      : pairs(inv_freq.size()) {
    for (const std::int64_t position : positions) {
      for (const double w : inv_freq) {
        const phasor at = phasor_at(position, w);
        cos.push_back(static_cast<Real>(static_cast<long double>(magnitude) * at.cos));
        sin.push_back(static_cast<Real>(static_cast<long double>(magnitude) * at.sin));
      }
    }
  }
};

/// One head's rotated block, [2 * pairs]: reads one pairing and writes another.
template <class Real>
void rotate_block(const Real* in, Real* out, std::size_t pairs, const Real* cos, const Real* sin, bool read_interleaved,
                  bool write_interleaved) {
  for (std::size_t j = 0; j < pairs; ++j) {
    const Real a = in[first_channel(read_interleaved, j)], b = in[second_channel(read_interleaved, pairs, j)];
    out[first_channel(write_interleaved, j)] = a * cos[j] - b * sin[j];
    out[second_channel(write_interleaved, pairs, j)] = b * cos[j] + a * sin[j];
  }
}

// ---- numbers to test with

/// The linear congruential generator of Numerical Recipes; the upper bits are good enough to fill tensors.
class random_bits {
 public:
  explicit random_bits(std::uint32_t seed) : state_(seed) {}
  std::uint32_t next() {
    state_ = state_ * 1664525u + 1013904223u;
    return state_ >> 8;
  }
  std::uint16_t next16() { return static_cast<std::uint16_t>(next() >> 4); }
  /// In [-1, 1), a multiple of 2^-23.
  double next_unit() { return static_cast<double>(next()) / 8388608.0 - 1.0; }

 private:
  std::uint32_t state_;
};

/// Numbers in [-scale, scale), rounded to T by way of float.
template <class T>
std::vector<T> numbers(std::size_t count, std::uint32_t seed = 1, double scale = 1.0) {
  random_bits random(seed);
  std::vector<T> made(count);
  for (T& x : made) x = static_cast<T>(static_cast<float>(random.next_unit() * scale));
  return made;
}

}  // namespace reference

#endif
