// The verbs: what they refuse, what they allow, and where they must not write.
#include <gtest/gtest.h>

#include <Eigen/Core>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <rotary/rotary.hpp>
#include <string>
#include <utility>
#include <vector>

#include "every_backend.hpp"
#include "guarded.hpp"
#include "reference.hpp"
#include "refusals.hpp"
#include "sparse.hpp"

// A project's own types. raw_bfloat16 is as plain as they come: bits without an operation.
namespace project {
struct raw_bfloat16 {
  std::uint16_t raw;
};
struct raw_float16 {
  std::uint16_t raw;
};
}  // namespace project

template <>
struct rotary::element<project::raw_bfloat16> {
  using format = rotary::bfloat16;
};
template <>
struct rotary::element<project::raw_float16> {
  using format = rotary::float16;
};
template <>
struct rotary::element<Eigen::half> {
  using format = rotary::float16;
};
// g++ for Arm describes _Float16 from version 12 on, but accepts it in C++ from 13 on.
#if defined(__FLT16_MANT_DIG__) && !(defined(__aarch64__) && !defined(__clang__) && __GNUC__ < 13)
#  define HAS_FLOAT16 1
#else
#  define HAS_FLOAT16 0
#endif
#if HAS_FLOAT16
__extension__ typedef _Float16 compiler_float16;
template <>
struct rotary::element<compiler_float16> {
  using format = rotary::float16;
};
#endif

namespace {

using refusals::expect_refused;
using rotary::layout;
using rotary::pairing;
using rotary::positions;
using rotary::slice;
using rotary::table_view;
using rotary::tensor_view;

enum class verb { rotate, rotate_adjoint, rotate_inverse };
constexpr verb verbs[] = {verb::rotate, verb::rotate_adjoint, verb::rotate_inverse};
const char* name_of(verb v) {
  return v == verb::rotate ? "rotate" : v == verb::rotate_adjoint ? "rotate_adjoint" : "rotate_inverse";
}

template <class... Arguments>
void call(verb v, const Arguments&... arguments) {
  if (v == verb::rotate) rotary::rotate(arguments...);
  if (v == verb::rotate_adjoint) rotary::rotate_adjoint(arguments...);
  if (v == verb::rotate_inverse) rotary::rotate_inverse(arguments...);
}

constexpr std::size_t batch = 2, tokens = 3, heads = 5, head_dim = 24, pairs = 8;
constexpr std::size_t size = batch * tokens * heads * head_dim;
constexpr std::size_t most = std::numeric_limits<std::size_t>::max();

// Tensors in guarded memory, and a check that a refused call left them as they were.
class Refusals : public testing::TestWithParam<verb> {
 protected:
  Refusals() : table_(rotary::make_spectrum(2 * pairs, 10000.0), 10, -2), from_(size), to_(size), narrow_(size) {
    for (std::size_t i = 0; i < size; ++i) {
      from_[i] = static_cast<float>(i) + 0.5f;
      to_[i] = -static_cast<float>(i) - 0.5f;
      narrow_[i].bits = static_cast<std::uint16_t>(i);
    }
    from_before_.assign(from_.begin(), from_.end());
    to_before_.assign(to_.begin(), to_.end());
    narrow_before_.assign(narrow_.begin(), narrow_.end());
  }

  // Both of in place and out of place.
  template <class... Rest>
  void refused(std::initializer_list<const char*> parts, const Rest&... rest) {
    refused_call(parts, x(), rest...);
    refused_call(parts, x(), y(), rest...);
    refused_call(parts, x(), z(), rest...);
  }

  template <class... Arguments>
  void refused_call(std::initializer_list<const char*> parts, const Arguments&... arguments) {
    expect_refused([&] { call(GetParam(), arguments...); }, name_of(GetParam()), parts);
    EXPECT_EQ(std::memcmp(from_.data(), from_before_.data(), size * sizeof(float)), 0) << "written before the refusal";
    EXPECT_EQ(std::memcmp(to_.data(), to_before_.data(), size * sizeof(float)), 0) << "written before the refusal";
    EXPECT_EQ(std::memcmp(narrow_.data(), narrow_before_.data(), size * 2), 0) << "written before the refusal";
  }

  tensor_view<float> x() { return rotary::bshd(from_.data(), batch, tokens, heads, head_dim); }
  tensor_view<float> y() { return rotary::bshd(to_.data(), batch, tokens, heads, head_dim); }
  tensor_view<rotary::bfloat16> z() { return rotary::bshd(narrow_.data(), batch, tokens, heads, head_dim); }

  rotary::table<float> table_;  // positions -2 .. 7
  guarded::array<float> from_, to_;
  guarded::array<rotary::bfloat16> narrow_;
  std::vector<float> from_before_, to_before_;
  std::vector<rotary::bfloat16> narrow_before_;
};

INSTANTIATE_TEST_SUITE_P(Verbs, Refusals, testing::ValuesIn(verbs),
                         [](const auto& given) { return std::string(name_of(given.param)); });

TEST_P(Refusals, PositionsOutsideTheTable) {
  constexpr std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
  constexpr std::int64_t highest = std::numeric_limits<std::int64_t>::max();
  refused({"positions -3 to -1", "10 positions from -2"}, table_, positions(-3));
  refused({"positions 6 to 8", "10 positions from -2"}, table_, positions(6));
  refused({"positions 8 to 10"}, table_, positions(8));
  refused({"-9223372036854775808"}, table_, positions(lowest));
  refused({"9223372036854775807"}, table_, positions(highest));
  refused({"9223372036854775805"}, table_, positions(highest - 2));
  const std::int32_t last_is_wrong[] = {0, 1, 2, 3, 4, 8};
  const std::int64_t first_is_wrong[] = {std::int64_t{1} << 32, 1, 2};  // 0 if cut to 32 bits
  const std::int32_t second_sequence[] = {0, 6};
  const std::int64_t before[] = {-2, -3};
  refused({"positions 8 to 8"}, table_, positions(last_is_wrong, 6));
  refused({"4294967296"}, table_, positions(first_is_wrong, 3));
  refused({"positions 8 to 8"}, table_, positions::per_sequence(second_sequence, 2));
  refused({"positions -3 to -3"}, table_, positions::per_sequence(before, 2));
  refused({"positions 8 to 8"}, table_.rows(-2, 10), positions(last_is_wrong, 6));
  const rotary::table<float> empty(rotary::make_spectrum(2 * pairs, 10000.0), 0);
  refused({"positions 0 to 2", "0 positions"}, empty, positions(0));
}

TEST_P(Refusals, CountsOfPositions) {
  const std::int32_t ids[8] = {};
  refused({"4 positions", "2 sequences", "3 tokens"}, table_, positions(ids, 4));
  refused({"3 positions per sequence", "2 sequences"}, table_, positions::per_sequence(ids, 3));
  const std::int64_t* const none = nullptr;
  refused({"positions is a null pointer"}, table_, positions(none, 6));
}

TEST_P(Refusals, CountsOfASteptable) {
  const std::int32_t ids[8] = {};
  rotary::step_table<float> step(rotary::make_spectrum(2 * pairs, 10000.0));
  step.assign(ids, 8);
  refused({"8 rows", "2 sequences of 3 tokens"}, step);
  step.assign(ids, 2);
  refused({"2 rows"}, step);
  step.assign(ids, 0);
  refused({"0 rows"}, step);
}

TEST_P(Refusals, BlocksThatDoNotFit) {
  refused({"offset 9", "16 channels", "head_dim = 24"}, table_, positions(0), layout(pairing::split_half, 9));
  refused({"offset 18446744073709551615"}, table_, positions(0), layout(pairing::interleaved, most));
  refused({"offset 18446744073709551608"}, table_, positions(0), layout(pairing::split_half, most - 7));
  const rotary::table<float> wide(rotary::make_spectrum(26, 10000.0), 4);
  refused({"offset 0", "26 channels", "head_dim = 24"}, wide, positions(0));
  std::vector<float> one(1, 1.0f);
  const table_view<float> vast = {one.data(), one.data(), 4, most / 2 + 1, 0, 1, 0, 1.0};
  refused({"head_dim = 24"}, vast, positions(0));
}

TEST_P(Refusals, TableViewsThatCannotBe) {
  table_view<float> rows = table_.view();
  for (const std::ptrdiff_t step : {std::ptrdiff_t{0}, std::ptrdiff_t{3}, std::ptrdiff_t{-1}}) {
    rows.pair_step = step;
    refused({"pair_step is", std::to_string(step).c_str(), "1 (planar) or 2"}, rows, positions(0));
  }
}

TEST_P(Refusals, NullTables) {
  table_view<float> rows = table_.view();
  rows.cos = nullptr;
  refused({"table", "null"}, rows, positions(0));
  rows = table_.view();
  rows.sin = nullptr;
  refused({"table", "null"}, rows, positions(0));
}

TEST_P(Refusals, NullData) {
  float* const none = nullptr;
  const tensor_view<float> nothing = rotary::bshd(none, batch, tokens, heads, head_dim);
  refused_call({"null", "source"}, nothing, table_, positions(0));
  refused_call({"null", "source"}, nothing, y(), table_, positions(0));
  refused_call({"null", "destination"}, x(), nothing, table_, positions(0));
}

TEST_P(Refusals, SizesThatDiffer) {
  for (int axis = 0; axis < 4; ++axis) {
    tensor_view<float> other = y();
    std::size_t& changed = axis == 0   ? other.batch
                           : axis == 1 ? other.tokens
                           : axis == 2 ? other.heads
                                       : other.head_dim;
    changed -= 1;
    refused_call({"[2, 3, 5, 24]", std::to_string(changed).c_str(), "must be equal"}, x(), other, table_, positions(0));
  }
}

TEST_P(Refusals, Slices) {
  refused({"slice index is 2 of count 2"}, table_, positions(0), layout(), slice{2, 2});
  refused({"slice index is 0 of count 0"}, table_, positions(0), layout(), slice{0, 0});
  refused({"slice index is 18446744073709551615"}, table_, positions(0), layout(), slice{most, 4});
}

TEST_P(Refusals, ScalesThatNoFloatHolds) {
  const std::pair<double, const char*> scales[] = {{std::nan(""), "scale is nan"},
                                                   {HUGE_VAL, "scale is inf"},
                                                   {-HUGE_VAL, "scale is -inf"},
                                                   {-1e39, "scale is -1e+39"}};
  for (const auto& [scale, text] : scales) {
    refused({text, "must be a number", "3e+38"}, table_, positions(0), layout(), slice(), scale);
  }
  if (GetParam() != verb::rotate_inverse) return;
  table_view<float> rows = table_.view();  // 1 / magnitude^2 is too large
  rows.magnitude = 1e-20;
  refused({"1e+40", "3e+38"}, rows, positions(0));
}

TEST_P(Refusals, InversesOfRowsWithoutOneMagnitude) {
  if (GetParam() != verb::rotate_inverse) {
    table_view<float> rows = table_.view();
    rows.magnitude = 0.0;
    EXPECT_NO_THROW(call(GetParam(), x(), rows, positions(0)));
    return;
  }
  for (const double magnitude : {0.0, std::nan(""), HUGE_VAL}) {
    table_view<float> rows = table_.view();
    rows.magnitude = magnitude;
    refused({"magnitude is"}, rows, positions(0));
  }
}

TEST_P(Refusals, PairingsThatDifferInPlace) {
  const layout how(pairing::interleaved, 0, pairing::split_half);
  refused_call({"layout.stored", "in place"}, x(), table_, positions(0), how);
  refused_call({"layout.stored", "in place"}, x(), x(), table_, positions(0), how);
}

// Source and destination share elements without being the same.
TEST_P(Refusals, PartialOverlap) {
  const tensor_view<float> all = x();
  const auto at = [&](std::ptrdiff_t shift) {
    tensor_view<float> part = rotary::heads(all, 0, 4);  // room for a shift by one head
    part.data += shift;
    return part;
  };
  for (const std::ptrdiff_t shift : {1, 7, 23, 24, 48}) {
    refused_call({"overlap"}, at(0), at(shift), table_, positions(0));
    refused_call({"overlap"}, at(shift), at(0), table_, positions(0));
  }
  // Channels [0, 16) and [8, 24) of the same heads.
  refused_call({"overlap"}, rotary::channels(all, 0, 16), rotary::channels(all, 8, 16), table_, positions(0));
  // Equal pointers, other strides.
  tensor_view<float> swapped = all;
  swapped.batch = swapped.tokens = 2;
  tensor_view<float> transposed = swapped;
  transposed.batch_stride = swapped.token_stride;
  transposed.token_stride = swapped.batch_stride;
  refused_call({"overlap"}, swapped, transposed, table_, positions(0));
}

// The same address under another type: every store would destroy a source that is still to be read.
TEST_P(Refusals, AnotherTypeAtTheSameAddress) {
  const auto narrow = rotary::bshd(reinterpret_cast<rotary::bfloat16*>(from_.data()), batch, tokens, heads, head_dim);
  refused_call({"overlap"}, x(), narrow, table_, positions(0));
  refused_call({"overlap"}, narrow, x(), table_, positions(0));
  const auto half = rotary::bshd(reinterpret_cast<rotary::float16*>(narrow_.data()), batch, tokens, heads, head_dim);
  const auto brain = rotary::bshd(narrow_.data(), batch, tokens, heads, head_dim);
  expect_refused([&] { call(GetParam(), half, brain, table_, positions(0)); }, name_of(GetParam()), {"overlap"});
}

TEST_P(Refusals, DestinationsThatHoldAnElementTwice) {
  for (int axis = 0; axis < 3; ++axis) {
    for (const std::ptrdiff_t stride : {0, 1, 23, -23}) {
      tensor_view<float> twice = y();
      (axis == 0 ? twice.batch_stride : axis == 1 ? twice.token_stride : twice.head_stride) = stride;
      if (axis == 0) twice.data += stride < 0 ? 23 : 0;
      if (axis == 1) twice.data += stride < 0 ? 2 * 23 : 0;
      if (axis == 2) twice.data += stride < 0 ? 4 * 23 : 0;
      refused_call({"overlap", std::to_string(stride).c_str(), "24 channels"}, twice, table_, positions(0));
      refused_call({"overlap", std::to_string(stride).c_str()}, x(), twice, table_, positions(0));
    }
  }
  tensor_view<float> crossing = y();  // tokens start inside the heads of the one before
  crossing.token_stride = 3 * head_dim;
  refused_call({"overlap"}, crossing, table_, positions(0));
}

TEST_P(Refusals, StridesBeyondTheAddressSpace) {
  constexpr std::ptrdiff_t far = std::numeric_limits<std::ptrdiff_t>::max();
  for (int axis = 0; axis < 3; ++axis) {
    for (const std::ptrdiff_t stride : {far, -far, -far - 1, far / 2, far / 4 + 1}) {
      tensor_view<float> x1 = x(), y1 = y();
      (axis == 0 ? x1.batch_stride : axis == 1 ? x1.token_stride : x1.head_stride) = stride;
      (axis == 0 ? y1.batch_stride : axis == 1 ? y1.token_stride : y1.head_stride) = stride;
      refused_call({"address space", std::to_string(stride).c_str()}, x1, table_, positions(0));
      refused_call({"the source", "address space"}, x1, y(), table_, positions(0));
      refused_call({"the destination", "address space"}, x(), y1, table_, positions(0));
    }
  }
  // Each stride fits, their sum does not.
  tensor_view<float> sum = x();
  sum.head_stride = std::ptrdiff_t{1} << 57;
  sum.token_stride = std::ptrdiff_t{5} << 57;
  sum.batch_stride = std::ptrdiff_t{15} << 57;
  refused_call({"address space"}, sum, table_, positions(0));
}

// Counts whose product wraps around to something small.
TEST_P(Refusals, SizesThatWrapAround) {
  tensor_view<float> vast = x();
  vast.batch = std::size_t{1} << 62;
  vast.heads = 4;
  refused_call({"4611686018427387904"}, vast, table_, positions(0));
  vast.batch_stride = 0;
  refused_call({"rotary::"}, vast, table_, positions(0));
}

// ---- what is allowed

// The rotation of q by position p in double: what `rotate` must give, up to float arithmetic.
std::vector<double> turned(const std::vector<double>& x, std::int64_t position, bool interleaved, double cos_factor = 1,
                           double sin_factor = 1) {
  reference::rows<double> row(reference::inverse_frequencies(x.size(), 10000.0), {position});
  for (double& c : row.cos) c *= cos_factor;
  for (double& s : row.sin) s *= sin_factor;
  std::vector<double> y(x.size());
  reference::rotate_block(x.data(), y.data(), row.pairs, row.cos.data(), row.sin.data(), interleaved, interleaved);
  return y;
}

double norm(const std::vector<double>& x) {
  double sum = 0;
  for (const double v : x) sum += v * v;
  return std::sqrt(sum);
}

class Allowed : public testing::Test {
 protected:
  Allowed() : table_(rotary::make_spectrum(16, 10000.0), 300, -100) {}

  // Each head of `got` must be what rotation makes of the same head of `given`, both [batch, tokens, heads, 16].
  template <class T, class U>
  static void expect_rotated(const tensor_view<const T>& given, const tensor_view<const U>& got, std::int64_t first,
                             double bound = 3 * 0x1p-24) {
    for (std::size_t b = 0; b < given.batch; ++b) {
      for (std::size_t t = 0; t < given.tokens; ++t) {
        for (std::size_t h = 0; h < given.heads; ++h) {
          const auto head = [&](const auto& x) {
            const auto* at = x.data + static_cast<std::ptrdiff_t>(b) * x.batch_stride +
                             static_cast<std::ptrdiff_t>(t) * x.token_stride +
                             static_cast<std::ptrdiff_t>(h) * x.head_stride;
            std::vector<double> numbers;
            for (std::size_t d = 0; d < 16; ++d) numbers.push_back(static_cast<double>(at[d]));
            return numbers;
          };
          const std::vector<double> x = head(given), y = head(got);
          const std::vector<double> expected = turned(x, first + static_cast<std::int64_t>(t), false);
          for (std::size_t d = 0; d < 16; ++d) {
            ASSERT_NEAR(y[d], expected[d], bound * norm(x)) << b << ", " << t << ", " << h << ", " << d;
          }
        }
      }
    }
  }

  static std::vector<float> some(std::size_t count, std::uint32_t seed = 5) {
    reference::random_bits random(seed);
    std::vector<float> result;
    for (std::size_t i = 0; i < count; ++i) result.push_back(static_cast<float>(random.next_unit()));
    return result;
  }

  rotary::table<float> table_;
};

TEST_F(Allowed, IdenticalSourceAndDestination) {
  const std::vector<float> given = some(2 * 3 * 4 * 16);
  std::vector<float> once = given, twice = given;
  const auto x = rotary::bshd(once.data(), 2, 3, 4, 16);
  rotary::rotate(x, x, table_, 5);
  rotary::rotate(rotary::bshd(twice.data(), 2, 3, 4, 16), table_, 5);
  EXPECT_EQ(once, twice);
  expect_rotated<float, float>(rotary::bshd(given.data(), 2, 3, 4, 16), x, 5);
}

TEST_F(Allowed, ReadingOneHeadForMany) {
  const std::vector<float> given = some(3 * 16);
  tensor_view<const float> broadcast = rotary::thd(given.data(), 3, 1, 16);
  broadcast.heads = 4;
  broadcast.head_stride = 0;
  std::vector<float> result(3 * 4 * 16);
  rotary::rotate(broadcast, rotary::thd(result.data(), 3, 4, 16), table_, 7);
  expect_rotated<float, float>(broadcast, rotary::thd(result.data(), 3, 4, 16), 7);
}

TEST_F(Allowed, DisjointChannelsOfOneBuffer) {
  std::vector<float> memory = some(2 * 3 * 4 * 48);
  const std::vector<float> before = memory;
  const auto all = rotary::bshd(memory.data(), 2, 3, 4, 48);
  const auto all_before = rotary::bshd(before.data(), 2, 3, 4, 48);
  rotary::rotate(rotary::channels(all, 32, 16), rotary::channels(all, 0, 16), table_, 9);
  expect_rotated<float, float>(rotary::channels(all_before, 32, 16), rotary::channels(all, 0, 16), 9);
  for (std::size_t i = 0; i < memory.size(); ++i) {
    if (i % 48 >= 16) {
      ASSERT_EQ(memory[i], before[i]);
    }
  }
  EXPECT_NO_THROW(rotary::rotate(rotary::channels(all, 0, 16), rotary::channels(all, 16, 16), table_, 9));
}

TEST_F(Allowed, DisjointHeadsAndTokensOfOneBuffer) {
  std::vector<float> memory = some(2 * 6 * 9 * 16);
  const std::vector<float> before = memory;
  const auto all = rotary::bshd(memory.data(), 2, 6, 9, 16);
  const auto all_before = rotary::bshd(before.data(), 2, 6, 9, 16);
  rotary::rotate(rotary::heads(all, 0, 4), rotary::heads(all, 5, 4), table_, 1);
  expect_rotated<float, float>(rotary::heads(all_before, 0, 4), rotary::heads(all, 5, 4), 1);
  // Even tokens into the odd ones.
  memory = before;
  const auto every_second = [](auto x, std::size_t first) {
    x.data += static_cast<std::ptrdiff_t>(first) * x.token_stride;
    x.tokens /= 2;
    x.token_stride *= 2;
    return x;
  };
  rotary::rotate(every_second(all, 0), every_second(all, 1), table_, 2);
  expect_rotated<float, float>(every_second(all_before, 0), every_second(all, 1), 2);
}

TEST_F(Allowed, NeighboursInMemory) {
  std::vector<float> memory = some(2 * 4 * 16);
  const std::vector<float> before = memory;
  const auto low = rotary::thd(memory.data(), 2, 2, 16), high = rotary::thd(memory.data() + 64, 2, 2, 16);
  rotary::rotate(low, high, table_, 3);
  expect_rotated<float, float>(rotary::thd(before.data(), 2, 2, 16), high, 3);
  rotary::rotate(high, low, table_, 3);
  const std::vector<float> after_first(memory.begin() + 64, memory.end());
  expect_rotated<float, float>(rotary::thd(after_first.data(), 2, 2, 16), low, 3);
}

TEST_F(Allowed, NegativeStridesOnEveryAxis) {
  const std::vector<float> given = some(2 * 3 * 4 * 16);
  for (int reversed = 1; reversed < 8; ++reversed) {
    std::vector<float> memory = given;
    const auto reverse = [&](auto x) {
      if (reversed & 1) x.data += x.batch_stride, x.batch_stride = -x.batch_stride;
      if (reversed & 2) x.data += 2 * x.token_stride, x.token_stride = -x.token_stride;
      if (reversed & 4) x.data += 3 * x.head_stride, x.head_stride = -x.head_stride;
      return x;
    };
    const auto source = reverse(rotary::bshd(given.data(), 2, 3, 4, 16));
    backends::on_each([&](rotary::backend) {
      memory = given;
      const auto x = reverse(rotary::bshd(memory.data(), 2, 3, 4, 16));
      rotary::rotate(x, table_, -3);
      expect_rotated<float, float>(source, x, -3);
      std::vector<float> elsewhere(given.size());
      const auto y = rotary::bhsd(elsewhere.data(), 2, 4, 3, 16);
      rotary::rotate(source, y, table_, -3);
      expect_rotated<float, float>(source, y, -3);
    });
  }
}

// The stride of an axis with one entry means nothing, on the way of a decoding step either.
TEST_F(Allowed, AnyStrideOfAnAxisWithOneEntry) {
  const std::vector<float> given = some(16);
  std::vector<float> expected = given, memory = given;
  rotary::rotate(rotary::thd(expected.data(), 1, 1, 16), table_, 5);
  constexpr std::ptrdiff_t absurd = -(std::ptrdiff_t{1} << 60);
  rotary::rotate(tensor_view<float>{memory.data(), 1, 1, 1, 16, absurd, absurd, absurd}, table_, 5);
  EXPECT_EQ(memory, expected);
}

TEST_F(Allowed, SizesOfZeroWithNullPointers) {
  float* const none = nullptr;
  rotary::bfloat16* const narrow = nullptr;
  const std::int32_t* const no_ids = nullptr;
  rotary::step_table<float> step(rotary::make_spectrum(16, 10000.0));
  step.assign(no_ids, 0);
  const std::size_t shapes[][3] = {{0, 3, 4}, {2, 0, 4}, {2, 3, 0}, {0, 0, 0}};
  for (const auto& shape : shapes) {
    const auto x = rotary::bshd(none, shape[0], shape[1], shape[2], 16);
    const auto y = rotary::bshd(narrow, shape[0], shape[1], shape[2], 16);
    for (const verb v : verbs) {
      EXPECT_NO_THROW(call(v, x, table_, positions(0)));
      EXPECT_NO_THROW(call(v, x, y, table_, positions(0), layout(pairing::interleaved), slice{1, 2}));
      EXPECT_NO_THROW(call(v, x, table_, positions(no_ids, 0)));
      if (shape[1] != 0) continue;
      EXPECT_NO_THROW(call(v, x, step));
      EXPECT_NO_THROW(call(v, x, y, step));
    }
  }
  EXPECT_NO_THROW(
      rotary::rotate(rotary::thd(none, 3, 4, 0), rotary::table<float>(rotary::make_spectrum(0, 1e4), 4), 0));
}

TEST_F(Allowed, NoPairsMeansNothingTurns) {
  const rotary::table<float> nothing(rotary::make_spectrum(0, 10000.0), 300);
  const std::vector<float> given = some(3 * 4 * 16);
  std::vector<float> x = given, y(given.size());
  rotary::rotate(rotary::thd(x.data(), 3, 4, 16), nothing, 5);
  EXPECT_EQ(x, given);
  rotary::rotate(rotary::thd(given.data(), 3, 4, 16), rotary::thd(y.data(), 3, 4, 16), nothing, 5, {}, {}, 7.0);
  EXPECT_EQ(y, given);
}

// ---- offsets beyond 32 bits

TEST_F(Allowed, StridesBeyond32Bits) {
  constexpr std::ptrdiff_t far = (std::ptrdiff_t{1} << 31) + 64;
  const sparse::memory memory((static_cast<std::size_t>(far) + 16) * sizeof(float));
  if (!memory.exists()) GTEST_SKIP() << "this system gives no sparse mapping of 8 GiB";
  const std::vector<float> given = some(2 * 16);
  float* const low = memory.data<float>();
  for (int axis = 0; axis < 3; ++axis) {
    for (const bool reversed : {false, true}) {
      const auto of = [&](auto* data) {
        auto x = rotary::bshd(data, axis == 0 ? 2 : 1, axis == 1 ? 2 : 1, axis == 2 ? 2 : 1, 16);
        (axis == 0 ? x.batch_stride : axis == 1 ? x.token_stride : x.head_stride) = reversed ? -far : far;
        if (reversed) x.data += far;
        return x;
      };
      backends::on_each([&](rotary::backend) {
        // In place: what lies far apart is what lay side by side.
        std::copy(given.begin(), given.begin() + 16, low + (reversed ? far : 0));
        std::copy(given.begin() + 16, given.end(), low + (reversed ? 0 : far));
        rotary::rotate(of(low), table_, 100);
        const auto near = rotary::bshd(given.data(), axis == 0 ? 2 : 1, axis == 1 ? 2 : 1, axis == 2 ? 2 : 1, 16);
        expect_rotated<float, float>(near, of(low), 100);
        // From near to far, and from far to near.
        rotary::rotate(near, of(low), table_, -50);
        expect_rotated<float, float>(near, of(low), -50);
        std::vector<float> back(2 * 16);
        rotary::rotate_inverse(of(low),
                               rotary::bshd(back.data(), axis == 0 ? 2 : 1, axis == 1 ? 2 : 1, axis == 2 ? 2 : 1, 16),
                               table_, -50);
        for (std::size_t i = 0; i < back.size(); ++i) EXPECT_NEAR(back[i], given[i], 1e-6);
      });
    }
  }
}

TEST_F(Allowed, SixteenBitStridesBeyond32Bits) {
  constexpr std::ptrdiff_t far = (std::ptrdiff_t{1} << 31) + 64;
  const sparse::memory memory((static_cast<std::size_t>(far) + 16) * 2);
  if (!memory.exists()) GTEST_SKIP() << "this system gives no sparse mapping of 4 GiB";
  rotary::bfloat16* const low = memory.data<rotary::bfloat16>();
  std::vector<rotary::bfloat16> given;
  for (const float v : some(2 * 16)) given.push_back(rotary::bfloat16(v));
  tensor_view<rotary::bfloat16> x = rotary::thd(low, 2, 1, 16);
  x.token_stride = far;
  std::copy(given.begin(), given.begin() + 16, low);
  std::copy(given.begin() + 16, given.end(), low + far);
  rotary::rotate(x, table_, 100);
  expect_rotated<rotary::bfloat16, rotary::bfloat16>(rotary::thd(given.data(), 2, 1, 16), x, 100, 0x1p-9);
}

TEST_F(Allowed, RowsBeyond32Bits) {
  constexpr std::ptrdiff_t far = (std::ptrdiff_t{1} << 31) + 64;
  const sparse::memory memory((static_cast<std::size_t>(far) + 16) * sizeof(float));
  if (!memory.exists()) GTEST_SKIP() << "this system gives no sparse mapping of 8 GiB";
  const table_view<float> near = table_.rows(40, 2);
  float* const low = memory.data<float>();
  for (const bool reversed : {false, true}) {
    float* const start = reversed ? low + far : low;
    const std::ptrdiff_t stride = reversed ? -far : far;
    for (std::ptrdiff_t r = 0; r < 2; ++r) {
      std::copy(near.cos + r * near.row_stride, near.cos + r * near.row_stride + 16, start + r * stride);
    }
    const table_view<float> rows = {start, start + 8, 2, 8, stride, 1, 40, 1.0};
    const std::vector<float> given = some(2 * 2 * 16);
    std::vector<float> x = given;
    rotary::rotate(rotary::thd(x.data(), 2, 2, 16), rows, 40);
    expect_rotated<float, float>(rotary::thd(given.data(), 2, 2, 16), rotary::thd(x.data(), 2, 2, 16), 40);
  }
}

// ---- the verbs' numbers

TEST(Verbs, MagnitudeAndScale) {
  constexpr double magnitude = 1.4158883083359672;
  const rotary::spectrum scaled(reference::inverse_frequencies(16, 10000.0), magnitude);
  const rotary::table<float> table(scaled, 10, 200);
  rotary::step_table<float> step(scaled);
  const std::int32_t ids[] = {203};
  step.assign(ids, 1);
  reference::random_bits random(9);
  std::vector<float> given(20);
  for (float& v : given) v = static_cast<float>(random.next_unit());
  const std::vector<double> wide(given.begin() + 1, given.begin() + 17);
  for (const double scale : {1.0, 0.125, -3.0, 0.0}) {
    for (const verb v : verbs) {
      for (const bool interleaved : {false, true}) {
        SCOPED_TRACE(testing::Message() << name_of(v) << " by " << scale);
        const double factor = scale * (v == verb::rotate_inverse ? 1.0 / magnitude : magnitude);
        const double sign = v == verb::rotate ? 1.0 : -1.0;
        const std::vector<double> expected = turned(wide, 203, interleaved, factor, sign * factor);
        const layout how(interleaved ? pairing::interleaved : pairing::split_half, 1);
        backends::on_each([&](rotary::backend) {
          std::vector<float> x = given, y = given, z(20);
          call(v, rotary::thd(x.data(), 1, 1, 20), table, positions(203), how, slice(), scale);
          call(v, rotary::thd(y.data(), 1, 1, 20), step, how, slice(), scale);
          call(v, rotary::thd(given.data(), 1, 1, 20), rotary::thd(z.data(), 1, 1, 20), step, how, slice(), scale);
          EXPECT_EQ(x, y);
          EXPECT_EQ(x, z);
          // One rounding more than without: the row is multiplied.
          const double bound = 4.5 * 0x1p-24 * std::fabs(factor) * norm(wide);
          for (std::size_t i = 0; i < 16; ++i) EXPECT_NEAR(x[i + 1], expected[i], bound) << i;
          for (const std::size_t i : {0u, 17u, 18u, 19u}) EXPECT_EQ(x[i], given[i]) << "outside the block";
        });
      }
    }
  }
}

TEST(Verbs, StepTablesOfOneSequenceOrOfAll) {
  const rotary::spectrum of = rotary::make_spectrum(16, 10000.0);
  const rotary::table<float> table(of, 1000);
  const std::int32_t shared[] = {900, 3, 77};
  const std::int64_t each[] = {900, 3, 77, 0, 999, 5};
  rotary::step_table<float> step(of);
  std::vector<float> given(2 * 3 * 4 * 16);
  reference::random_bits random(11);
  for (float& v : given) v = static_cast<float>(random.next_unit());
  for (const bool all : {false, true}) {
    if (all) {
      step.assign(each, 6);
    } else {
      step.assign(shared, 3);
    }
    const positions where = all ? positions(each, 6) : positions(shared, 3);
    for (const verb v : verbs) {
      backends::on_each([&](rotary::backend) {
        std::vector<float> x = given, y = given, z(given.size());
        call(v, rotary::bshd(x.data(), 2, 3, 4, 16), table, where);
        call(v, rotary::bshd(y.data(), 2, 3, 4, 16), step);
        call(v, rotary::bshd(given.data(), 2, 3, 4, 16), rotary::bshd(z.data(), 2, 3, 4, 16), step);
        EXPECT_EQ(x, y);
        EXPECT_EQ(x, z);
        EXPECT_NE(x, given);
      });
    }
  }
}

// ---- a project's own element types

// Bits of Own, rotated as the library's Known: the results must have the same bits.
template <class Own, class Known>
void check_own_type() {
  static_assert(sizeof(Own) == 2, "");
  const rotary::table<float> table(rotary::make_spectrum(36, 10000.0), 100);
  const rotary::table<Known> narrow_table(rotary::make_spectrum(36, 10000.0), 100);
  std::vector<Known> known(2 * 3 * 40);
  reference::random_bits random(13);
  for (Known& v : known) v = Known(static_cast<float>(random.next_unit()));
  const auto own_of = [](const std::vector<Known>& from) {
    std::vector<Own> own(from.size());
    std::memcpy(static_cast<void*>(own.data()), from.data(), from.size() * 2);
    return own;
  };
  std::vector<Own> own = own_of(known), copy(own.size());
  const std::vector<Own> given = own;
  std::vector<float> wide(known.size()), wide_of_own(known.size());
  const layout how(pairing::interleaved, 3);
  rotary::rotate(rotary::thd(given.data(), 2, 3, 40), rotary::thd(copy.data(), 2, 3, 40), table, 41, how);
  rotary::rotate(rotary::thd(given.data(), 2, 3, 40), rotary::thd(wide_of_own.data(), 2, 3, 40), table, 41, how);
  rotary::rotate(rotary::thd(own.data(), 2, 3, 40), table, 41, how);
  rotary::rotate(rotary::thd(known.data(), 2, 3, 40), rotary::thd(wide.data(), 2, 3, 40), table, 41, how);
  rotary::rotate(rotary::thd(known.data(), 2, 3, 40), table, 41, how);
  EXPECT_EQ(std::memcmp(own.data(), known.data(), known.size() * 2), 0);
  EXPECT_EQ(std::memcmp(copy.data(), known.data(), known.size() * 2), 0);
  EXPECT_EQ(wide, wide_of_own);
  EXPECT_NE(std::memcmp(own.data(), given.data(), known.size() * 2), 0);
  // Own type at the address of the known one is the same place: in place.
  const auto as_known = rotary::thd(reinterpret_cast<Known*>(own.data()), 2, 3, 40);
  rotary::rotate(rotary::thd(own.data(), 2, 3, 40), as_known, table, 5, how);
  rotary::rotate(rotary::thd(known.data(), 2, 3, 40), table, 5, how);
  EXPECT_EQ(std::memcmp(own.data(), known.data(), known.size() * 2), 0);
}

TEST(OwnTypes, RawBfloat16) { check_own_type<project::raw_bfloat16, rotary::bfloat16>(); }
TEST(OwnTypes, RawFloat16) { check_own_type<project::raw_float16, rotary::float16>(); }
TEST(OwnTypes, EigenHalf) { check_own_type<Eigen::half, rotary::float16>(); }
#if HAS_FLOAT16
TEST(OwnTypes, CompilersFloat16) { check_own_type<compiler_float16, rotary::float16>(); }
#endif

// A borrowed table may hold a project's own type, too.
TEST(OwnTypes, Rows) {
  const rotary::table<rotary::bfloat16> table(rotary::make_spectrum(20, 10000.0), 100);
  const table_view<rotary::bfloat16> rows = table.view();
  const table_view<project::raw_bfloat16> own = {reinterpret_cast<const project::raw_bfloat16*>(rows.cos),
                                                 reinterpret_cast<const project::raw_bfloat16*>(rows.sin),
                                                 rows.rows,
                                                 rows.pairs,
                                                 rows.row_stride,
                                                 1,
                                                 0,
                                                 1.0};
  std::vector<rotary::bfloat16> x(40), y;
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = rotary::bfloat16(static_cast<float>(i) - 20.0f);
  y = x;
  rotary::rotate(rotary::thd(x.data(), 2, 1, 20), table, 7);
  rotary::rotate(rotary::thd(y.data(), 2, 1, 20), own, 7);
  EXPECT_EQ(std::memcmp(x.data(), y.data(), 80), 0);
}

// A run of positions that would wrap around is refused like the same positions one by one.
TEST(Verbs, PositionsThatWrapAround) {
  const float c[] = {1, 0}, sine[] = {0, 1};
  float x[] = {1, 2, 3, 4};
  const table_view<float> rows = {c, sine, 2, 1, 1, 1, INT64_MAX};
  const tensor_view<float> two_tokens = {x, 1, 2, 1, 2, 4, 2, 2};
  expect_refused([&] { rotary::rotate(two_tokens, rows, positions(INT64_MAX)); }, "rotate", {"9223372036854775807"});
  const std::int64_t ids[] = {INT64_MAX, INT64_MIN};
  expect_refused([&] { rotary::rotate(two_tokens, rows, positions(ids, 2)); }, "rotate", {"-9223372036854775808"});
  // One row for every position there is.
  const table_view<float> all = {c, sine, SIZE_MAX, 1, 0, 1, INT64_MIN};
  rotary::rotate(two_tokens, all, positions(INT64_MAX - 2));
  EXPECT_EQ(x[3], 4.0f);
  expect_refused([] { positions(std::uint64_t{1} << 63); }, "positions", {"9223372036854775808"});
}

// A factor that is no normal number of the compute type would drop digits in silence, or all of them.
TEST(Verbs, FactorsThatRowsCannotHold) {
  float x[] = {1, 2};
  const rotary::table<float> huge(rotary::spectrum({1.0}, 1e30), 4), usual(rotary::spectrum({1.0}, 1.4), 4);
  expect_refused([&] { rotary::rotate_inverse(rotary::thd(x, 1, 1, 2), huge, 1); }, "rotate_inverse", {"1e-60"});
  expect_refused([&] { rotary::rotate(rotary::thd(x, 1, 1, 2), usual, 1, {}, {}, 1e-60); }, "rotate", {"1e-60"});
  expect_refused([&] { rotary::rotate(rotary::thd(x, 1, 1, 2), usual, 1, {}, {}, 1e39); }, "rotate", {"1e+39"});
  EXPECT_EQ(x[0], 1.0f);
  EXPECT_EQ(x[1], 2.0f);
  rotary::rotate(rotary::thd(x, 1, 1, 2), usual, 1, {}, {}, 0.0);
  EXPECT_EQ(x[0], 0.0f);
}

}  // namespace
