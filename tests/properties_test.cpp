// What must hold for rotations whatever the numbers are. Bounds count u = 2^-24 (float) or 2^-53 (double): a rotated
// channel of the pair x is within 3 u |x| of the exact one where the row's angle is exact.
#include <gtest/gtest.h>

#include <Eigen/Dense>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <rotary/rotary.hpp>
#include <type_traits>
#include <vector>

#include "every_backend.hpp"
#include "guarded.hpp"
#include "reference.hpp"
#include "type_names.hpp"

namespace {

using rotary::layout;
using rotary::pairing;

template <class T>
constexpr double unit = std::is_same<T, float>::value ? 0x1p-24 : 0x1p-53;
// How far a row's length is from the magnitude: half an ulp of float, or, in double, what up to four complex products
// of its digits add (3e-16 each).
template <class T>
constexpr double row_length = std::is_same<T, float>::value ? 0x1p-24 : 1.5e-15;
// By how much an angle may be off, for each position.
constexpr double angle_error = 2.3e-16;

constexpr pairing pairings[] = {pairing::split_half, pairing::interleaved};
bool interleaved(pairing p) { return p == pairing::interleaved; }

template <class T>
std::vector<T> some_numbers(std::size_t count, std::uint32_t seed) {
  reference::random_bits random(seed);
  std::vector<T> result(count);
  for (T& x : result) x = static_cast<T>(random.next_unit());
  return result;
}

template <class T>
double pair_length(const T* block, std::size_t pairs, std::size_t j, pairing how) {
  const double a = static_cast<double>(block[reference::first_channel(interleaved(how), j)]);
  const double b = static_cast<double>(block[reference::second_channel(interleaved(how), pairs, j)]);
  return std::sqrt(a * a + b * b);
}

// Sum of |x_j| |y_j| over the pairs: what a bound of a dot product is a multiple of.
template <class T>
double pair_products(const std::vector<T>& x, const std::vector<T>& y, pairing how) {
  double sum = 0;
  for (std::size_t j = 0; j < x.size() / 2; ++j) {
    sum += pair_length(x.data(), x.size() / 2, j, how) * pair_length(y.data(), y.size() / 2, j, how);
  }
  return sum;
}

template <class T>
double dot(const std::vector<T>& x, const std::vector<T>& y) {
  long double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += static_cast<long double>(x[i]) * static_cast<long double>(y[i]);
  return static_cast<double>(sum);
}

template <class T>
class Properties : public testing::Test {};
using Reals = testing::Types<float, double>;
TYPED_TEST_SUITE(Properties, Reals, type_names);

// Every even rotary_dim from 2 to 576, so that every number of whole vectors meets every kind of rest.
TYPED_TEST(Properties, EveryRotaryDimAgreesWithTheReferenceAndKeepsLengths) {
  using T = TypeParam;
  constexpr std::int64_t position = 123457;
  std::size_t dims = 0;
  for (std::size_t d = 2; d <= 576; d += 2, ++dims) {
    const std::vector<double> inv_freq = reference::inverse_frequencies(d, 10000.0);
    const reference::rows<long double> row(inv_freq, {position});
    rotary::step_table<T> step((rotary::spectrum(inv_freq)));
    step.assign(&position, 1);
    const std::vector<T> x = some_numbers<T>(3 * d, static_cast<std::uint32_t>(d));
    const std::vector<long double> exact_in(x.begin(), x.end());
    std::vector<long double> exact(3 * d);
    for (const pairing read : pairings) {
      for (const pairing write : pairings) {
        for (std::size_t h = 0; h < 3; ++h) {
          reference::rotate_block(exact_in.data() + h * d, exact.data() + h * d, d / 2, row.cos.data(), row.sin.data(),
                                  interleaved(read), interleaved(write));
        }
        backends::on_each([&](rotary::backend which) {
          std::vector<T> y(3 * d);
          rotary::rotate(rotary::thd(x.data(), 1, 3, d), rotary::thd(y.data(), 1, 3, d), step, layout(read, 0, write));
          for (std::size_t h = 0; h < 3; ++h) {
            for (std::size_t j = 0; j < d / 2; ++j) {
              const double length = pair_length(x.data() + h * d, d / 2, j, read);
              const double turned = pair_length(y.data() + h * d, d / 2, j, write);
              ASSERT_NEAR(turned, length, (3 * std::sqrt(2.0) * unit<T> + row_length<T>)*length)
                  << "rotary_dim " << d << ", head " << h << ", pair " << j << ", " << rotary::backend_name(which);
              const double bound = (3 * unit<T> + static_cast<double>(position) * angle_error * inv_freq[j]) * length;
              const std::size_t first = h * d + reference::first_channel(interleaved(write), j);
              const std::size_t second = h * d + reference::second_channel(interleaved(write), d / 2, j);
              ASSERT_NEAR(static_cast<double>(y[first]), static_cast<double>(exact[first]), bound)
                  << "rotary_dim " << d << ", head " << h << ", pair " << j << ", " << rotary::backend_name(which);
              ASSERT_NEAR(static_cast<double>(y[second]), static_cast<double>(exact[second]), bound)
                  << "rotary_dim " << d << ", head " << h << ", pair " << j << ", " << rotary::backend_name(which);
            }
          }
          if (read != write) return;
          std::vector<T> in_place = x;
          rotary::rotate(rotary::thd(in_place.data(), 1, 3, d), step, read);
          ASSERT_EQ(in_place, y) << "rotary_dim " << d << ", " << rotary::backend_name(which);
        });
        if (this->HasFatalFailure()) return;
      }
    }
  }
  EXPECT_EQ(dims, 288u);
}

// Heads so wide that a row which must be gathered or multiplied first is prepared in parts.
TYPED_TEST(Properties, WideHeads) {
  using T = TypeParam;
  constexpr std::int64_t position = 4321;
  constexpr std::size_t heads = 2, gap = 3;
  for (const std::size_t d : {1022u, 1030u, 2050u, 4094u, 4096u, 4098u, 4102u, 6150u}) {
    const std::vector<double> inv_freq = reference::inverse_frequencies(d, 10000.0);
    const reference::rows<long double> row(inv_freq, {position});
    const rotary::table<T> table(rotary::spectrum(inv_freq), 2, position - 1);
    guarded::array<T> alternating(2 * d);  // {cos, sin} pairs
    for (std::size_t i = 0; i < 2 * d; ++i) {
      const auto from = static_cast<std::ptrdiff_t>(i / d * d + i % d / 2);
      alternating[i] = (i % 2 == 0 ? table.view().cos : table.view().sin)[from];
    }
    rotary::table_view<T> pairwise = table.view();
    pairwise.cos = alternating.data();
    pairwise.sin = alternating.data() + 1;
    pairwise.pair_step = 2;
    const std::vector<T> x = some_numbers<T>(heads * (d + gap), static_cast<std::uint32_t>(d));
    for (const pairing read : pairings) {
      for (const pairing write : pairings) {
        for (const bool adjoint : {false, true}) {
          for (const double scale : {1.0, 0.5}) {
            for (const bool by_pairs : {false, true}) {
              const auto rows = by_pairs ? pairwise : table.view();
              const layout how(read, gap, write);
              backends::on_each([&](rotary::backend which) {
                guarded::array<T> y(x.size());
                const auto from = rotary::thd(x.data(), 1, heads, d + gap);
                const auto to = rotary::thd(y.data(), 1, heads, d + gap);
                if (adjoint) {
                  rotary::rotate_adjoint(from, to, rows, position, how, {}, scale);
                } else {
                  rotary::rotate(from, to, rows, position, how, {}, scale);
                }
                for (std::size_t i = 0; i < x.size(); i += d + gap) {
                  for (std::size_t j = 0; j < d / 2; ++j) {
                    const T* block = x.data() + i + gap;
                    const long double a = block[reference::first_channel(interleaved(read), j)];
                    const long double b = block[reference::second_channel(interleaved(read), d / 2, j)];
                    const long double c = scale * row.cos[j], s = (adjoint ? -scale : scale) * row.sin[j];
                    const double bound = (3 * unit<T> + static_cast<double>(position) * angle_error * inv_freq[j]) *
                                         scale * static_cast<double>(std::sqrt(a * a + b * b));
                    const T* got = y.data() + i + gap;
                    ASSERT_NEAR(static_cast<double>(got[reference::first_channel(interleaved(write), j)]),
                                static_cast<double>(a * c - b * s), bound)
                        << "rotary_dim " << d << ", pair " << j << ", " << rotary::backend_name(which);
                    ASSERT_NEAR(static_cast<double>(got[reference::second_channel(interleaved(write), d / 2, j)]),
                                static_cast<double>(b * c + a * s), bound)
                        << "rotary_dim " << d << ", pair " << j << ", " << rotary::backend_name(which);
                  }
                  for (std::size_t k = 0; k < gap; ++k) ASSERT_EQ(y[i + k], x[i + k]);
                }
                if (read != write) return;
                guarded::array<T> in_place(x.size());
                std::copy(x.begin(), x.end(), in_place.begin());
                const auto view = rotary::thd(in_place.data(), 1, heads, d + gap);
                if (adjoint) {
                  rotary::rotate_adjoint(view, rows, position, how, {}, scale);
                } else {
                  rotary::rotate(view, rows, position, how, {}, scale);
                }
                ASSERT_TRUE(std::equal(y.begin(), y.end(), in_place.begin())) << "rotary_dim " << d;
              });
              if (this->HasFatalFailure()) return;
            }
          }
        }
      }
    }
  }
}

template <class T>
std::vector<T> rotated(const std::vector<T>& x, rotary::step_table<T>& step, std::int64_t position, pairing how) {
  std::vector<T> y = x;
  step.assign(&position, 1);
  rotary::rotate(rotary::thd(y.data(), 1, 1, y.size()), step, how);
  return y;
}

// A dot product of q and k depends on the distance of their positions alone.
TYPED_TEST(Properties, DotProductsDependOnTheDistanceOnly) {
  using T = TypeParam;
  for (const std::size_t d : {20u, 64u, 128u}) {
    rotary::step_table<T> step(rotary::make_spectrum(d, 500000.0));
    const std::vector<T> q = some_numbers<T>(d, 31), k = some_numbers<T>(d, 32);
    for (const pairing how : pairings) {
      const double scale = pair_products(q, k, how);
      backends::on_each([&](rotary::backend) {
        const double here = dot(rotated(q, step, 5, how), rotated(k, step, 2, how));
        for (const std::int64_t shift : {-5, 100, 100000, 1048576, 9999990, -10000000}) {
          const double there = dot(rotated(q, step, 5 + shift, how), rotated(k, step, 2 + shift, how));
          // Two rotations here and two there, each off by the bound of a pair in either channel, and the angles.
          const double angles = 2 * std::sqrt(2.0) * angle_error * (std::fabs(static_cast<double>(shift)) + 5);
          ASSERT_NEAR(there, here, (4 * std::sqrt(2.0) * 3 * unit<T> + angles) * scale) << "moved by " << shift;
        }
        const double elsewhere = dot(rotated(q, step, 6, how), rotated(k, step, 2, how));
        ASSERT_GT(std::fabs(elsewhere - here), 1e-3 * scale) << "another distance must give another product";
      });
    }
  }
}

// Turning by p and then by q is turning by p + q: how cached keys move.
TYPED_TEST(Properties, TurnsAdd) {
  using T = TypeParam;
  rotary::step_table<T> step(rotary::make_spectrum(72, 10000.0));
  const std::vector<T> x = some_numbers<T>(72, 33);
  for (const pairing how : pairings) {
    backends::on_each([&](rotary::backend) {
      for (const std::int64_t p : {7, 4096, 1000000}) {
        for (const std::int64_t q : {-7, -3, 50, 999}) {
          const std::vector<T> twice = rotated(rotated(x, step, p, how), step, q, how);
          const std::vector<T> once = rotated(x, step, p + q, how);
          for (std::size_t j = 0; j < 36; ++j) {
            const double length = pair_length(x.data(), 36, j, how);
            const double angles = 4 * angle_error * static_cast<double>(p + 999);
            for (const std::size_t i :
                 {reference::first_channel(interleaved(how), j), reference::second_channel(interleaved(how), 36, j)}) {
              ASSERT_NEAR(static_cast<double>(twice[i]), static_cast<double>(once[i]),
                          ((3 + 3 * std::sqrt(2.0) + 3) * unit<T> + angles) * length)
                  << p << " and " << q;
            }
          }
        }
      }
    });
  }
}

constexpr double magnitude = 1.4158883083359672;  // of yarn by 64

TYPED_TEST(Properties, InverseUndoesRotation) {
  using T = TypeParam;
  for (const std::size_t d : {6u, 72u, 192u}) {
    const rotary::table<T> table(rotary::spectrum(reference::inverse_frequencies(d, 10000.0), magnitude), 5, 70000);
    const std::vector<T> given = some_numbers<T>(2 * 2 * 3 * d, 34);
    for (const pairing how : pairings) {
      backends::on_each([&](rotary::backend) {
        std::vector<T> x = given, y(given.size());
        const auto view = rotary::bshd(x.data(), 2, 2, 3, d);
        rotary::rotate(view, table, 70002, how);
        rotary::rotate_inverse(rotary::bshd(static_cast<const T*>(x.data()), 2, 2, 3, d),
                               rotary::bshd(y.data(), 2, 2, 3, d), table, 70002, how);
        rotary::rotate_inverse(view, table, 70002, how);
        ASSERT_EQ(x, y);
        for (std::size_t i = 0; i < given.size(); i += d) {
          for (std::size_t j = 0; j < d / 2; ++j) {
            const double length = pair_length(given.data() + i, d / 2, j, how);
            // 3 sqrt(2) u of the way there, 4.5 u of the way back, whose row is multiplied by 1/m^2 first.
            const double bound = (9 * unit<T> + 2 * row_length<T>)*length;
            const std::size_t a = i + reference::first_channel(interleaved(how), j);
            const std::size_t b = i + reference::second_channel(interleaved(how), d / 2, j);
            ASSERT_NEAR(static_cast<double>(x[a]), static_cast<double>(given[a]), bound);
            ASSERT_NEAR(static_cast<double>(x[b]), static_cast<double>(given[b]), bound);
          }
        }
      });
    }
  }
}

// <Rx, y> = <x, R^T y>, magnitude, scale and change of pairing included.
TYPED_TEST(Properties, AdjointIsTheTranspose) {
  using T = TypeParam;
  for (const std::size_t d : {2u, 10u, 88u, 256u}) {
    const rotary::table<T> table(rotary::spectrum(reference::inverse_frequencies(d, 10000.0), magnitude), 5, 70000);
    const std::vector<T> x = some_numbers<T>(d, 35), y = some_numbers<T>(d, 36);
    for (const pairing read : pairings) {
      for (const pairing write : pairings) {
        backends::on_each([&](rotary::backend) {
          std::vector<T> rx(d), ry(d);
          rotary::rotate(rotary::thd(x.data(), 1, 1, d), rotary::thd(rx.data(), 1, 1, d), table, 70003,
                         layout(read, 0, write), {}, 0.75);
          rotary::rotate_adjoint(rotary::thd(y.data(), 1, 1, d), rotary::thd(ry.data(), 1, 1, d), table, 70003,
                                 layout(write, 0, read), {}, 0.75);
          double lengths = 0;
          for (std::size_t j = 0; j < d / 2; ++j) {
            lengths += pair_length(x.data(), d / 2, j, read) * pair_length(y.data(), d / 2, j, write);
          }
          // Both use the same rows, so that only the arithmetic differs; the row is multiplied by the scale first.
          ASSERT_NEAR(dot(rx, y), dot(x, ry), 2 * std::sqrt(2.0) * 3 * unit<T> * 0.75 * magnitude * lengths)
              << "rotary_dim " << d;
        });
      }
    }
  }
}

// ---- rotation matrices

// The matrix that turns pair j of the block behind `offset` by position * inv_freq[j]; the identity elsewhere.
Eigen::MatrixXd rotation_matrix(const std::vector<double>& inv_freq, std::int64_t position, std::size_t offset,
                                std::size_t head_dim, pairing how) {
  const auto size = static_cast<Eigen::Index>(head_dim);
  Eigen::MatrixXd result = Eigen::MatrixXd::Identity(size, size);
  for (std::size_t j = 0; j < inv_freq.size(); ++j) {
    const reference::phasor at = reference::phasor_at(position, inv_freq[j]);
    const auto a = static_cast<Eigen::Index>(offset + reference::first_channel(interleaved(how), j));
    const auto b = static_cast<Eigen::Index>(offset + reference::second_channel(interleaved(how), inv_freq.size(), j));
    const double c = static_cast<double>(at.cos), s = static_cast<double>(at.sin);
    result(a, a) = c;
    result(a, b) = -s;
    result(b, a) = s;
    result(b, b) = c;
  }
  return result;
}

TEST(RotationMatrices, RotationIsMultiplication) {
  const std::int64_t positions[] = {0, 1, 77, -300, 65536, 1048575, 10000000};
  constexpr std::size_t tokens = 7, heads = 3;
  for (const std::size_t d : {2u, 6u, 20u, 48u, 96u}) {
    for (const std::size_t offset : {0u, 5u}) {
      const std::size_t head_dim = d + (offset == 0 ? 0 : offset + 4);
      const std::vector<double> inv_freq = reference::inverse_frequencies(d, 10000.0);
      rotary::step_table<double> step((rotary::spectrum(inv_freq)));
      step.assign(positions, tokens);
      const std::vector<double> given = some_numbers<double>(tokens * heads * head_dim, 41);
      const auto columns = [&](const std::vector<double>& x, std::size_t t) {
        return Eigen::Map<const Eigen::MatrixXd>(x.data() + t * heads * head_dim, static_cast<Eigen::Index>(head_dim),
                                                 static_cast<Eigen::Index>(heads));
      };
      for (const pairing how : pairings) {
        backends::on_each([&](rotary::backend) {
          std::vector<double> x = given, adjoint = given, inverse = given;
          rotary::rotate(rotary::thd(x.data(), tokens, heads, head_dim), step, layout(how, offset));
          rotary::rotate_adjoint(rotary::thd(adjoint.data(), tokens, heads, head_dim), step, layout(how, offset));
          rotary::rotate_inverse(rotary::thd(inverse.data(), tokens, heads, head_dim), step, layout(how, offset));
          for (std::size_t t = 0; t < tokens; ++t) {
            const Eigen::MatrixXd r = rotation_matrix(inv_freq, positions[t], offset, head_dim, how);
            const Eigen::MatrixXd in = columns(given, t);
            const double bound = std::sqrt(2.0) * (4 * 0x1p-53 + angle_error * std::fabs(double(positions[t])));
            const auto expect_near = [&](const std::vector<double>& got, const Eigen::MatrixXd& expected) {
              ASSERT_LE((columns(got, t) - expected).cwiseAbs().maxCoeff(), bound)
                  << "position " << positions[t] << ", rotary_dim " << d << ", offset " << offset;
            };
            expect_near(x, r * in);
            expect_near(adjoint, r.transpose() * in);
            expect_near(inverse, r.partialPivLu().solve(in));
          }
        });
      }
    }
  }
}

// R(m)^T R(n) = R(n - m), seen through the library: rotating the columns of R(n) by the adjoint of m.
TEST(RotationMatrices, ProductsDependOnTheDistanceOnly) {
  constexpr std::size_t d = 20;
  const std::vector<double> inv_freq = reference::inverse_frequencies(d, 10000.0);
  rotary::step_table<double> step((rotary::spectrum(inv_freq)));
  for (const pairing how : pairings) {
    for (const std::int64_t m : {3, 5000, 10000000}) {
      for (const std::int64_t distance : {-3, 0, 1, 129}) {
        Eigen::MatrixXd columns = Eigen::MatrixXd::Identity(d, d);
        const auto view = rotary::thd(columns.data(), 1, d, d);  // a column is a head
        const std::int64_t n = m + distance;
        step.assign(&n, 1);
        rotary::rotate(view, step, how);
        step.assign(&m, 1);
        rotary::rotate_adjoint(view, step, how);
        const Eigen::MatrixXd expected = rotation_matrix(inv_freq, distance, 0, d, how);
        EXPECT_LE((columns - expected).cwiseAbs().maxCoeff(), 1e-15 + 4 * angle_error * static_cast<double>(m + 129));
      }
    }
  }
}

}  // namespace
