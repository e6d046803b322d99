// Tables of cos and sin: against the reference data, against long double, and against each other.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <rotary/rotary.hpp>
#include <string>
#include <utility>
#include <vector>

#include "every_backend.hpp"
#include "golden.hpp"
#include "reference.hpp"
#include "refusals.hpp"
#include "type_names.hpp"

// ---- every allocation of this program is counted

namespace {
std::size_t allocations = 0;

void* counted(std::size_t size, std::size_t alignment) {
  ++allocations;
  const std::size_t rounded = (size + alignment - 1) / alignment * alignment;
  return rounded < size ? nullptr : std::aligned_alloc(alignment, rounded == 0 ? alignment : rounded);
}
void* counted_or_throw(std::size_t size, std::size_t alignment = alignof(std::max_align_t)) {
  void* const memory = counted(size, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
// Not inlined: g++ would warn of a free() behind `new`, which it sees but half replaced.
[[gnu::noinline]] void release(void* memory) { std::free(memory); }
}  // namespace

// The other forms of the standard library call these.
void* operator new(std::size_t size) { return counted_or_throw(size); }
void* operator new(std::size_t size, std::align_val_t a) { return counted_or_throw(size, static_cast<std::size_t>(a)); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return counted(size, alignof(std::max_align_t));
}
void* operator new(std::size_t size, std::align_val_t a, const std::nothrow_t&) noexcept {
  return counted(size, static_cast<std::size_t>(a));
}
void operator delete(void* memory) noexcept { release(memory); }
void operator delete(void* memory, std::size_t) noexcept { release(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { release(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { release(memory); }

#if defined(__has_feature)
#  if __has_feature(address_sanitizer)
#    define ROTARY_TESTS_ASAN
#  endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(ROTARY_TESTS_ASAN)
// Without this, AddressSanitizer ends the program for the sizes that have to be refused.
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }
#endif

namespace {

using nlohmann::json;
using refusals::expect_refused;
using rotary::angles;
using rotary::bfloat16;
using rotary::float16;
using rotary::spectrum;
using rotary::step_table;
using rotary::table;
using rotary::table_view;

// ---- what a row may differ by

template <class T>
constexpr int fraction_bits = sizeof(T) == 8                    ? 52
                              : std::is_same<T, float>::value   ? 23
                              : std::is_same<T, float16>::value ? 10
                                                                : 7;
template <class T>
constexpr int least_exponent = sizeof(T) == 8                    ? -1022
                               : std::is_same<T, float16>::value ? -14
                                                                 : -126;

// Half an ulp of T for its rounding, and |position| * 2.3e-16 for the angle, which a magnitude above 1 multiplies.
template <class T>
double permitted(double exact, double position, double magnitude) {
  return reference::half_ulp(exact, fraction_bits<T>, least_exponent<T>) +
         std::fabs(position) * 2.3e-16 * std::fmax(1.0, magnitude);
}

// The largest error in units of what is permitted. `of_exact` is how far `exact` itself may be off.
class worst_error {
 public:
  template <class T>
  void add(T got, double exact, double position, double magnitude, double of_exact = 0.0) {
    const double error = std::fabs(static_cast<double>(got) - exact);
    if (error == 0.0) return;  // where nothing is permitted, too
    const double share = error / (permitted<T>(exact, position, magnitude) + of_exact);
    if (reference::larger(share_, share) == share_ || std::isnan(share_)) return;
    share_ = share;
    text_ = "position " + std::to_string(position) + ": " + std::to_string(static_cast<double>(got)) + " for " +
            std::to_string(exact) + ", off by " + std::to_string(error);
  }
  void expect_permitted() const { EXPECT_LE(share_, 1.0) << text_; }

 private:
  double share_ = 0.0;
  std::string text_;
};

// cos and sin of pair j in row r.
template <class T>
T cos_of(const table_view<T>& rows, std::size_t r, std::size_t j) {
  return rows.cos[static_cast<std::ptrdiff_t>(r) * rows.row_stride + static_cast<std::ptrdiff_t>(j) * rows.pair_step];
}
template <class T>
T sin_of(const table_view<T>& rows, std::size_t r, std::size_t j) {
  return rows.sin[static_cast<std::ptrdiff_t>(r) * rows.row_stride + static_cast<std::ptrdiff_t>(j) * rows.pair_step];
}

template <class T>
void expect_same_rows(const table_view<T>& a, std::size_t a_row, const table_view<T>& b, std::size_t b_row) {
  ASSERT_EQ(a.pairs, b.pairs);
  std::size_t different = 0;
  for (std::size_t j = 0; j < a.pairs; ++j) {
    const T of_a[2] = {cos_of(a, a_row, j), sin_of(a, a_row, j)}, of_b[2] = {cos_of(b, b_row, j), sin_of(b, b_row, j)};
    different += std::memcmp(of_a, of_b, sizeof of_a) != 0;
  }
  EXPECT_EQ(different, 0u) << "pairs differ";
}

spectrum spectrum_of(const json& record) {
  if (record.at("inv_freq_basis") == "float32") {
    return spectrum(record.at("inv_freq_f32").get<std::vector<double>>(), record.at("attention_factor_f32"));
  }
  return golden::spectrum_from(record.at("parameters"));
}

template <class Body>
void for_each_table(const Body& body) {
  const json file = golden::load("tables");
  for (const json& record : file.at("records")) {
    SCOPED_TRACE(record.at("name").get<std::string>());
    body(record, spectrum_of(record));
  }
}

const spectrum& llama() {
  static const spectrum of = rotary::make_spectrum(128, 500000.0);
  return of;
}
const spectrum& with_magnitude() {  // of 6 pairs and 1.2
  static const spectrum of({1.0, 0.7, 0.1, 0.003, 0.0, -0.5}, 1.2);
  return of;
}

template <class T>
class EveryRowType : public testing::Test {};
using row_types = testing::Types<float, double, float16, bfloat16>;
TYPED_TEST_SUITE(EveryRowType, row_types, type_names);

// ---- the reference data

// The pairs of a record's rows, as pairs of spectrum_of(record): a record with its own frequencies has only those.
std::vector<std::size_t> pairs_of(const json& record) {
  std::vector<std::size_t> pairs = record.at("pairs");
  if (record.at("inv_freq_basis") == "float32") {
    for (std::size_t i = 0; i < pairs.size(); ++i) pairs[i] = i;
  }
  return pairs;
}

// The listed pairs of one recorded row against row r. The recorded doubles are themselves rounded.
template <class T>
void compare_row(const json& record, const json& row, double magnitude, const table_view<T>& rows, std::size_t r,
                 worst_error& worst) {
  const std::vector<std::size_t> pairs = pairs_of(record);
  const std::vector<double> cos = row.at("cos_f64"), sin = row.at("sin_f64");
  const double position = row.at("position");
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    ASSERT_LT(pairs[i], rows.pairs);
    worst.add(cos_of(rows, r, pairs[i]), cos[i], position, magnitude, 0x1p-53 * std::fabs(cos[i]));
    worst.add(sin_of(rows, r, pairs[i]), sin[i], position, magnitude, 0x1p-53 * std::fabs(sin[i]));
  }
}

TYPED_TEST(EveryRowType, RangeTablesAroundEveryRecordedPosition) {
  using T = TypeParam;
  for_each_table([](const json& record, const spectrum& of) {
    worst_error worst;
    for (const json& row : record.at("rows")) {
      const std::int64_t position = row.at("position");
      const table<T> short_window(of, 7, position - 3), long_window(of, 301, position - 300);
      compare_row(record, row, of.magnitude(), short_window.rows(position, 1), 0, worst);
      compare_row(record, row, of.magnitude(), long_window.view(), 300, worst);
    }
    worst.expect_permitted();
  });
}

template <class T, class Position>
void expect_step_of(const spectrum& of, const std::vector<std::int64_t>& positions, const table_view<T>& expected) {
  std::vector<Position> given;
  std::vector<std::size_t> rows;
  for (std::size_t t = 0; t < positions.size(); ++t) {
    const Position position = static_cast<Position>(positions[t]);
    if (static_cast<long double>(position) != static_cast<long double>(positions[t])) continue;  // not of this type
    given.push_back(position);
    rows.push_back(t);
  }
  ASSERT_GT(given.size(), 0u);
  step_table<T> step(of);
  step.assign(given.data(), given.size());
  ASSERT_EQ(step.size(), given.size());
  for (std::size_t t = 0; t < given.size(); ++t) expect_same_rows(step.view(), t, expected, rows[t]);
}

TYPED_TEST(EveryRowType, StepTablesOfEveryRecordedPositionInEveryTypeOfPosition) {
  using T = TypeParam;
  for_each_table([](const json& record, const spectrum& of) {
    std::vector<std::int64_t> positions;
    for (const json& row : record.at("rows")) positions.push_back(row.at("position"));
    step_table<T> step(of);
    step.assign(positions.data(), positions.size());
    worst_error worst;
    for (std::size_t t = 0; t < positions.size(); ++t) {
      compare_row(record, record.at("rows")[t], of.magnitude(), step.view(), t, worst);
    }
    worst.expect_permitted();
    expect_step_of<T, std::int32_t>(of, positions, step.view());
    expect_step_of<T, float>(of, positions, step.view());
    expect_step_of<T, double>(of, positions, step.view());
  });
}

TEST(GoldenTables, FloatRowsAreTheRecordedFloatsButForOneInAThousand) {
  std::size_t entries = 0, different = 0;
  for_each_table([&](const json& record, const spectrum& of) {
    const std::vector<std::size_t> pairs = pairs_of(record);
    for (const json& row : record.at("rows")) {
      const std::vector<float> cos = row.at("cos_f32"), sin = row.at("sin_f32");
      const table<float> one(of, 1, row.at("position").get<std::int64_t>());
      if (std::abs(row.at("position").get<std::int64_t>()) > 1000000) continue;  // where the angle's error shows
      for (std::size_t i = 0; i < pairs.size(); ++i) {
        different += cos_of(one.view(), 0, pairs[i]) != cos[i];
        different += sin_of(one.view(), 0, pairs[i]) != sin[i];
        entries += 2;
      }
    }
  });
  std::printf("%zu of %zu recorded floats are not the same\n", different, entries);
  EXPECT_GT(entries, 0u);
  EXPECT_LE(static_cast<double>(different), 0.001 * static_cast<double>(entries));
}

template <class T>
std::pair<std::size_t, std::size_t> differing_from_rounded_once(const reference::format& format) {
  std::size_t entries = 0, different = 0;
  for_each_table([&](const json& record, const spectrum& of) {
    const std::vector<std::size_t> pairs = pairs_of(record);
    for (const json& row : record.at("rows")) {
      const std::vector<double> cos = row.at("cos_f64"), sin = row.at("sin_f64");
      const table<T> one(of, 1, row.at("position").get<std::int64_t>());
      for (std::size_t i = 0; i < pairs.size(); ++i) {
        different +=
            cos_of(one.view(), 0, pairs[i]).bits != reference::encode(format, static_cast<long double>(cos[i]));
        different +=
            sin_of(one.view(), 0, pairs[i]).bits != reference::encode(format, static_cast<long double>(sin[i]));
        entries += 2;
      }
    }
  });
  return {different, entries};
}

TEST(GoldenTables, SixteenBitRowsAreTheRecordedDoublesRoundedOnce) {
  const auto half = differing_from_rounded_once<float16>(reference::binary16);
  const auto brain = differing_from_rounded_once<bfloat16>(reference::bfloat);
  EXPECT_GT(half.second, 0u);
  EXPECT_EQ(half.first, 0u) << "of " << half.second << " float16 entries";
  EXPECT_EQ(brain.first, 0u) << "of " << brain.second << " bfloat16 entries";
}

// ---- the float modes have the errors of the programs they follow

// The largest difference of a mode's row to the exact one.
double error_of_mode(const spectrum& exact, const spectrum& theirs, angles mode, std::int64_t position) {
  const table<double> correct(exact, 1, position);
  const table<float> got(theirs, 1, position, mode);
  double most = 0.0;
  for (std::size_t j = 0; j < exact.pairs(); ++j) {
    most = reference::larger(most, std::fabs(double{cos_of(got.view(), 0, j)} - cos_of(correct.view(), 0, j)));
    most = reference::larger(most, std::fabs(double{sin_of(got.view(), 0, j)} - sin_of(correct.view(), 0, j)));
  }
  return most;
}

TEST(FloatModes, AnglesFloat32HasTransformersErrorWithItsFrequencies) {
  const json spectra = golden::load("spectra");
  std::size_t compared = 0;
  for_each_table([&](const json& record, const spectrum& of) {
    if (!record.contains("oracle_errors")) return;
    for (const json& other : spectra.at("records")) {
      if (other.at("name") != record.at("name") || !golden::given(other, "hf_float32")) continue;
      const json& floats = other.at("hf_float32");
      const spectrum theirs(floats.at("inv_freq").get<std::vector<double>>(), floats.at("attention_factor"));
      for (const json& row : record.at("oracle_errors")) {
        const std::int64_t position = row.at("position");
        EXPECT_NEAR(error_of_mode(of, theirs, angles::float32, position), row.at("hf_float32").get<double>(), 0x1p-23)
            << "position " << position;
        ++compared;
      }
    }
  });
  EXPECT_GT(compared, 0u);
}

TEST(FloatModes, AnglesFloat32RecurrenceHasGgmlsOrderOfError) {
  std::size_t compared = 0;
  for_each_table([&](const json& record, const spectrum& of) {
    if (!record.contains("oracle_errors")) return;
    // ggml always truncates yarn's range, so its errors are of another spectrum where that is false.
    if (!record.at("parameters").value("truncate", true)) return;
    for (const json& row : record.at("oracle_errors")) {
      if (!golden::given(row, "ggml")) continue;
      const std::int64_t position = row.at("position");
      const double theirs = row.at("ggml");
      const double error = error_of_mode(of, of, angles::float32_recurrence, position);
      EXPECT_LE(error, 3.0 * theirs + 0x1p-23) << "position " << position;
      EXPECT_GE(error, theirs / 3.0 - 0x1p-23) << "position " << position;
      ++compared;
    }
  });
  EXPECT_GT(compared, 0u);
}

TEST(FloatModes, RecurrenceNeedsOneTheta) {
  EXPECT_THROW(table<float>(with_magnitude(), 4, 0, angles::float32_recurrence), rotary::error);
  EXPECT_THROW(step_table<float>(with_magnitude(), angles::float32_recurrence), rotary::error);
  EXPECT_NO_THROW(step_table<float>(with_magnitude(), angles::float32));
}

// ---- one position, one row: whatever table it is in

TYPED_TEST(EveryRowType, RangeAndStepTablesAreTheSameBitForBit) {
  using T = TypeParam;
  constexpr std::int64_t least = std::numeric_limits<std::int64_t>::min(), most = ~least;
  struct window {
    std::int64_t first;
    std::int64_t count;
  };
  const window windows[] = {{-300, 700},
                            {-1, 1},
                            {-1, 2},
                            {0, 1},
                            {250, 20},
                            {-270, 300},
                            {-256, 1},
                            {-255, 256},
                            {65530, 20},
                            {-65546, 20},
                            {-65536, 3},
                            {(1 << 24) - 10, 20},
                            {-(1 << 24) - 9, 20},
                            {4294967290, 20},
                            {-4294967300, 20},
                            {(std::int64_t{1} << 40) - 5, 10},
                            {least, 600},
                            {most - 599, 600},
                            {most, 1},
                            {least, 1}};
  const spectrum two(std::vector<double>{1.0});
  backends::on_each([&](rotary::backend) {
    for (const spectrum* of : {&two, &with_magnitude(), &llama()}) {
      step_table<T> step(*of);
      for (const window& w : windows) {
        SCOPED_TRACE("first " + std::to_string(w.first) + ", " + std::to_string(of->pairs()) + " pairs");
        const table<T> range(*of, w.count, w.first);
        std::vector<std::int64_t> positions;
        for (std::int64_t i = 0; i < w.count; ++i) positions.push_back(w.first + i);
        step.assign(positions.data(), positions.size());
        ASSERT_EQ(range.size(), positions.size());
        ASSERT_EQ(step.size(), positions.size());
        for (std::size_t t = 0; t < positions.size(); ++t) expect_same_rows(range.view(), t, step.view(), t);
        if (testing::Test::HasFailure()) return;
      }
    }
  });
}

TEST(Table, EveryModeGivesTheSameRowsInBothKindsOfTable) {
  const std::vector<std::int64_t> positions = {-7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7};
  for (const angles mode : {angles::exact, angles::float32, angles::float32_recurrence}) {
    const table<float> range(llama(), 15, -7, mode);
    step_table<float> step(llama(), mode);
    step.assign(positions.data(), positions.size());
    for (std::size_t t = 0; t < positions.size(); ++t) expect_same_rows(range.view(), t, step.view(), t);
  }
}

TEST(Table, RowsAreAPartOfTheView) {
  const table<float> whole(with_magnitude(), 600, -300);
  const table_view<float> part = whole.rows(-5, 17);
  EXPECT_EQ(part.rows, 17u);
  EXPECT_EQ(part.first_position, -5);
  EXPECT_EQ(part.magnitude, 1.2);
  for (std::size_t r = 0; r < 17; ++r) expect_same_rows(part, r, whole.view(), 295 + r);
  EXPECT_NO_THROW(whole.rows(299, 1));
  EXPECT_NO_THROW(whole.rows(1000, 0));
  for (const auto& [first, count] :
       std::vector<std::pair<std::int64_t, std::size_t>>{{-301, 1},
                                                         {300, 1},
                                                         {299, 2},
                                                         {-300, 601},
                                                         {0, ~std::size_t{0}},
                                                         {std::numeric_limits<std::int64_t>::min(), 2}}) {
    EXPECT_THROW(whole.rows(first, count), rotary::error) << first << " " << count;
  }
}

TEST(Table, CopiesAreTheirOwnAndMovesKeepTheRows) {
  table<float> original(llama(), 20, -10);
  const table<float> copy = original;
  EXPECT_NE(copy.view().cos, original.view().cos);
  const float* const rows = original.view().cos;
  const table<float> moved = std::move(original);
  EXPECT_EQ(moved.view().cos, rows);
  original = copy;
  EXPECT_NE(original.view().cos, copy.view().cos);
  for (std::size_t r = 0; r < 20; ++r) {
    expect_same_rows(copy.view(), r, moved.view(), r);
    expect_same_rows(original.view(), r, moved.view(), r);
  }
  step_table<float> step(llama());
  const std::int32_t at[] = {-10, -9};
  step.assign(at, 2);
  const step_table<float> step_copy = step;
  const std::int32_t elsewhere[] = {5, 6};
  step.assign(elsewhere, 2);
  expect_same_rows(step_copy.view(), 1, copy.view(), 1);
  expect_same_rows(step.view(), 1, copy.view(), 16);
}

// ---- accuracy beyond the recorded rows

// reference::phasor_at multiplies in long double, whose 64 bits hold the position, and adds what that product dropped
// (fma finds it), so that its error is below 1e-18 up to 2^45; cosl and sinl reduce their argument exactly.
TYPED_TEST(EveryRowType, RandomPositionsOfEverySizeAgainstLongDouble) {
  using T = TypeParam;
  reference::random_bits random(sizeof(T));
  std::vector<std::int64_t> positions;
  for (unsigned bits = 1; bits <= 45; ++bits) {
    for (int i = 0; i < 8; ++i) {
      const std::uint64_t u = (std::uint64_t{random.next()} << 40 ^ std::uint64_t{random.next()} << 20 ^ random.next());
      const std::int64_t position = static_cast<std::int64_t>(u & ((std::uint64_t{1} << bits) - 1));
      positions.push_back(i % 2 == 0 ? position : -position);
    }
  }
  positions.push_back(2147483647);
  positions.push_back(-2147483648);
  for (const spectrum* of : {&llama(), &with_magnitude()}) {
    step_table<T> step(*of);
    step.assign(positions.data(), positions.size());
    worst_error worst;
    for (std::size_t t = 0; t < positions.size(); ++t) {
      for (std::size_t j = 0; j < of->pairs(); ++j) {
        const reference::phasor exact = reference::phasor_at(positions[t], of->inv_freq()[j]);
        const long double m = static_cast<long double>(of->magnitude());
        const double position = static_cast<double>(positions[t]);
        worst.add(cos_of(step.view(), t, j), static_cast<double>(m * exact.cos), position, of->magnitude(), 0x1p-53);
        worst.add(sin_of(step.view(), t, j), static_cast<double>(m * exact.sin), position, of->magnitude(), 0x1p-53);
      }
    }
    worst.expect_permitted();
  }
}

TYPED_TEST(EveryRowType, FractionalPositionsAgainstLongDouble) {
  using T = TypeParam;
  const std::vector<double> positions = {0.5, -0.5, 1.0 / 3.0, 1857.25, -262143.75, 1e9 + 0.5};
  step_table<T> step(with_magnitude());
  step.assign(positions.data(), positions.size());
  worst_error worst;
  for (std::size_t t = 0; t < positions.size(); ++t) {
    for (std::size_t j = 0; j < step.pairs(); ++j) {
      const long double p = static_cast<long double>(positions[t]);
      const long double w = static_cast<long double>(with_magnitude().inv_freq()[j]);
      const long double angle = p * w, rest = std::fma(p, w, -angle);
      const double cos = static_cast<double>(1.2L * (std::cos(angle) - rest * std::sin(angle)));
      const double sin = static_cast<double>(1.2L * (std::sin(angle) + rest * std::cos(angle)));
      worst.add(cos_of(step.view(), t, j), cos, positions[t], 1.2, 0x1p-52);
      worst.add(sin_of(step.view(), t, j), sin, positions[t], 1.2, 0x1p-52);
    }
  }
  worst.expect_permitted();
}

// Correct rounding fails where the exact value lies within the error (|position| * 1e-16 at most) of the middle between
// two floats, which are about 6e-8 apart. Every 17th of 131072 positions.
TEST(Accuracy, FloatRowsAreCorrectlyRoundedButForOneInTenThousand) {
  const table<float> rows(llama(), 131072);
  std::size_t entries = 0, different = 0;
  for (std::int64_t position = 0; position < 131072; position += 17) {
    for (std::size_t j = 0; j < rows.pairs(); ++j) {
      const reference::phasor exact = reference::phasor_at(position, llama().inv_freq()[j]);
      const std::size_t r = static_cast<std::size_t>(position);
      different += cos_of(rows.view(), r, j) != static_cast<float>(exact.cos);
      different += sin_of(rows.view(), r, j) != static_cast<float>(exact.sin);
      entries += 2;
    }
  }
  std::printf("%zu of %zu float entries are not correctly rounded\n", different, entries);
  EXPECT_LE(static_cast<double>(different), 1e-4 * static_cast<double>(entries));
}

// The largest error of the rows of 32 positions that end at `last`.
template <class T>
double largest_error(const spectrum& of, std::int64_t last, angles mode) {
  const table<T> rows(of, 32, last - 31, mode);
  double most = 0.0;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::size_t j = 0; j < of.pairs(); ++j) {
      const std::int64_t position = last - 31 + static_cast<std::int64_t>(r);
      const reference::phasor exact = reference::phasor_at(position, of.inv_freq()[j]);
      const double cos = static_cast<double>(cos_of(rows.view(), r, j)),
                   sin = static_cast<double>(sin_of(rows.view(), r, j));
      most = reference::larger(most, static_cast<double>(std::fabs(static_cast<long double>(cos) - exact.cos)));
      most = reference::larger(most, static_cast<double>(std::fabs(static_cast<long double>(sin) - exact.sin)));
    }
  }
  return most;
}

// What docs/accuracy.md shows.
TEST(Accuracy, LargestErrorByPositionAndMode) {
  std::printf("%12s %12s %12s %12s %12s %12s %12s\n", "position", "float", "double", "float16", "bfloat16", "float32",
              "recurrence");
  for (const std::int64_t last : {127, 4095, 131071, 1048575, 10000000, 2147483647}) {
    const double p = static_cast<double>(last), of_angle = p * 2.3e-16;
    const double of_float = largest_error<float>(llama(), last, angles::exact);
    const double of_double = largest_error<double>(llama(), last, angles::exact);
    const double of_float16 = largest_error<float16>(llama(), last, angles::exact);
    const double of_bfloat16 = largest_error<bfloat16>(llama(), last, angles::exact);
    const double of_float32 = largest_error<float>(llama(), last, angles::float32);
    const double of_recurrence = largest_error<float>(llama(), last, angles::float32_recurrence);
    std::printf("%12lld %12.1e %12.1e %12.1e %12.1e %12.1e %12.1e\n", static_cast<long long>(last), of_float, of_double,
                of_float16, of_bfloat16, of_float32, of_recurrence);
    EXPECT_LE(of_float, 0x1p-25 + of_angle);  // half an ulp below 1
    EXPECT_LE(of_double, 0x1p-54 + of_angle);
    EXPECT_LE(of_float16, 0x1p-12 + of_angle);
    EXPECT_LE(of_bfloat16, 0x1p-9 + of_angle);
    EXPECT_GE(of_float32, std::fmin(1.0, p * 1e-9)) << "the modes cannot be told apart";
    EXPECT_GE(of_recurrence, std::fmin(1.0, p * 1e-9)) << "the modes cannot be told apart";
    EXPECT_LE(of_float32, p * 1.2e-7) << "a float product is within an ulp of the angle";
  }
}

// ---- xPos

// zeta^((position - center) / scale_base), zeta = (2j + 0.4 d) / (1.4 d), and its inverse for keys.
long double xpos_multiplier(bool key, std::int64_t position, std::size_t j, std::size_t d, long double center) {
  const long double size = static_cast<long double>(d);
  const long double zeta = (2.0L * static_cast<long double>(j) + 0.4L * size) / (1.4L * size);
  const long double power = (static_cast<long double>(position) - center) / 512.0L;
  return std::pow(zeta, key ? -power : power);
}

TYPED_TEST(EveryRowType, XposRowsGrowForQueriesAndShrinkForKeys) {
  using T = TypeParam;
  constexpr std::size_t d = 20;
  for (const bool key : {false, true}) {
    const rotary::xpos policy{key ? rotary::xpos_role::key : rotary::xpos_role::query, 512.0, 1000.0};
    const spectrum of = rotary::make_spectrum(d, 10000.0, policy);
    const std::vector<std::int64_t> positions = {-3, 0, 1, 17, 999, 1000, 1001, 2047, 4000};
    step_table<T> step(of);
    step.assign(positions.data(), positions.size());
    EXPECT_EQ(step.view().magnitude, 0.0) << "rows of xPos have no single magnitude";
    worst_error worst;
    for (std::size_t t = 0; t < positions.size(); ++t) {
      expect_same_rows(table<T>(of, 1, positions[t]).view(), 0, step.view(), t);
      for (std::size_t j = 0; j < d / 2; ++j) {
        const long double m = xpos_multiplier(key, positions[t], j, d, 1000.0L);
        const reference::phasor exact = reference::phasor_at(positions[t], of.inv_freq()[j]);
        const double size = static_cast<double>(m), of_multiplier = 1e-14 * size;  // exp of up to 7 in double
        const double position = static_cast<double>(positions[t]);
        worst.add(cos_of(step.view(), t, j), static_cast<double>(m * exact.cos), position, size, of_multiplier);
        worst.add(sin_of(step.view(), t, j), static_cast<double>(m * exact.sin), position, size, of_multiplier);
      }
    }
    worst.expect_permitted();
  }
}

// ---- memory

TEST(StepTable, AllocatesOnlyForMoreTokensThanEverBefore) {
  for (const angles mode : {angles::exact, angles::float32, angles::float32_recurrence}) {
    step_table<float> step(llama(), mode);
    std::vector<std::int64_t> positions(300);
    std::vector<double> floating(300);
    for (std::size_t i = 0; i < 300; ++i) {
      positions[i] = static_cast<std::int64_t>(i * i * i * 1001) - 77;
      floating[i] = static_cast<double>(i) * 0.37 - 11.0;
    }
    const std::size_t before = allocations;
    step.assign(positions.data(), 300);
    EXPECT_GT(allocations, before) << "the counter does not count";
    const std::size_t after = allocations;
    for (const unsigned tokens : {300u, 1u, 0u, 299u, 300u}) step.assign(positions.data(), tokens);
    step.assign(floating.data(), 300);
    EXPECT_EQ(allocations, after);
  }
}

TEST(StepTable, SeveralAxesAllocateOnlyForMoreTokensToo) {
  step_table<float> step(llama(), rotary::mrope_interleaved({24, 20, 20}));
  std::vector<std::int64_t> ids(3 * 300);
  std::vector<double> floating(3 * 300);
  for (std::size_t i = 0; i < ids.size(); ++i) {
    ids[i] = static_cast<std::int64_t>(i * i * i * 1001) - 77;
    floating[i] = static_cast<double>(i) * 0.5 - 11.0;
  }
  step.assign(rotary::axis_major(ids.data(), 3, 300));
  const std::size_t after = allocations;
  for (const unsigned tokens : {300u, 1u, 0u, 299u, 300u}) step.assign(rotary::axis_major(ids.data(), 3, tokens));
  step.assign(rotary::axis_major(floating.data(), 3, 300));
  EXPECT_EQ(allocations, after);
}

TEST(StepTable, RotatingAllocatesNothing) {
  std::vector<float> x(3 * 2 * 128, 1.0f);
  const std::int32_t ids[] = {5, 700000, -3};
  step_table<float> step(llama());
  step.assign(ids, 3);
  const table<float> range(llama(), 100, -50);
  const std::size_t before = allocations;
  rotary::rotate(rotary::thd(x.data(), 3, 2, 128), step);
  rotary::rotate(rotary::bhsd(x.data(), 1, 2, 3, 128), range, -4, rotary::pairing::interleaved);
  EXPECT_EQ(allocations, before);
}

TEST(StepTable, ShorterAndEmptyStepsShowOnlyTheirRows) {
  step_table<float> step(with_magnitude());
  EXPECT_EQ(step.size(), 0u);
  const std::int32_t ids[] = {9, -2, 70000};
  step.assign(ids, 3);
  EXPECT_EQ(step.view().rows, 3u);
  step.assign(ids + 1, 1);
  EXPECT_EQ(step.view().rows, 1u);
  expect_same_rows(step.view(), 0, table<float>(with_magnitude(), 1, -2).view(), 0);
  step.assign(static_cast<const std::int64_t*>(nullptr), 0);
  EXPECT_EQ(step.view().rows, 0u);
}

// ---- refusals

TEST(Refusals, TableSizes) {
  constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
  expect_refused([] { table<float>(llama(), -1); }, "table", {"count is -1"});
  expect_refused([] { table<float>(llama(), std::numeric_limits<std::int64_t>::min()); }, "table", {});
  expect_refused([] { table<float>(llama(), 2, most); }, "table",
                 {"first is 9223372036854775807", "count is 2", "2^63 - 1"});
  expect_refused([] { table<float>(llama(), std::int64_t{1} << 60); }, "table", {"1152921504606846976", "128 numbers"});
  // 2^60 rows of 2 floats are 2^63 bytes, more than any object; 2^45 rows of 128 doubles are 2^55.
  const spectrum two(std::vector<double>{1.0});
  expect_refused([&] { table<float>(two, std::int64_t{1} << 60); }, "table", {"9.223e+09 GB"});
  expect_refused([] { table<double>(llama(), std::int64_t{1} << 45); }, "table", {"3.603e+07 GB"});
  EXPECT_NO_THROW(table<float>(llama(), 1, most));
  EXPECT_EQ(table<float>(llama(), 0).size(), 0u);
}

TEST(Refusals, StepTableSizes) {
  step_table<float> step(llama());
  const std::int32_t id = 5;
  step.assign(&id, 1);
  expect_refused([&] { step.assign(static_cast<const double*>(nullptr), 3); }, "step_table::assign",
                 {"null", "3 tokens"});
  EXPECT_EQ(step.size(), 1u);
  expect_same_rows(step.view(), 0, table<float>(llama(), 1, 5).view(), 0);
}

template <class Position>
void expect_refused_unchanged(Position bad) {
  step_table<float> step(with_magnitude());
  const Position good[] = {Position(3), Position(-8)};
  step.assign(good, 2);
  const float* const memory = step.view().cos;
  for (const std::size_t tokens : {std::size_t{2}, std::size_t{40}}) {
    std::vector<Position> positions(tokens, Position(1));
    positions.back() = bad;
    expect_refused([&] { step.assign(positions.data(), tokens); }, "step_table::assign", {"not finite"});
    EXPECT_EQ(step.size(), 2u);
    EXPECT_EQ(step.view().cos, memory);
    expect_same_rows(step.view(), 0, table<float>(with_magnitude(), 1, 3).view(), 0);
    expect_same_rows(step.view(), 1, table<float>(with_magnitude(), 1, -8).view(), 0);
  }
}

TEST(Refusals, PositionsThatAreNotFiniteLeaveTheRowsAsTheyWere) {
  expect_refused_unchanged(std::numeric_limits<float>::quiet_NaN());
  expect_refused_unchanged(std::numeric_limits<float>::infinity());
  expect_refused_unchanged(-std::numeric_limits<double>::infinity());
  expect_refused_unchanged(std::numeric_limits<double>::quiet_NaN());
}

// The angle of such a position means little, but its row is a rotation, or it is refused.
TEST(Refusals, PositionsBeyondTheRangeOfTheArithmeticGiveARotationOrAreRefused) {
  const spectrum fast(std::vector<double>{10.0, 1.0, 1e-3});
  for (const angles mode : {angles::exact, angles::float32}) {
    for (const double position : {0x1p53, -0x1p63, 0x1p127, -0x1p128, 1e39, 1e300, 1.7e308}) {
      step_table<double> step(fast, mode);
      try {
        step.assign(&position, 1);
      } catch (const rotary::error&) {
        continue;
      }
      for (std::size_t j = 0; j < 3; ++j) {
        EXPECT_NEAR(std::hypot(cos_of(step.view(), 0, j), sin_of(step.view(), 0, j)), 1.0, 1e-6)
            << "mode " << static_cast<int>(mode) << ", position " << position << ", pair " << j;
      }
    }
  }
}

TEST(Refusals, XposBeyondTheRangeOfFloat) {
  const spectrum of = rotary::make_spectrum(64, 10000.0, rotary::xpos{rotary::xpos_role::key});
  expect_refused([&] { table<float>(of, 100000); }, "table", {"99999", "xpos::center"});
  expect_refused([&] { table<float>(of, 10, -100000); }, "table", {"-100000"});
  step_table<float> step(of);
  const std::int64_t near = 3, far = 1 << 20;
  step.assign(&near, 1);
  expect_refused([&] { step.assign(&far, 1); }, "step_table::assign", {"1048576"});
  EXPECT_EQ(step.size(), 1u);
  expect_same_rows(step.view(), 0, table<float>(of, 1, 3).view(), 0);
}

TEST(Table, TenMillionPositionsOfASmallSpectrum) {
  const spectrum two(std::vector<double>{1.0});
  const table<float> rows(two, 10485760);
  worst_error worst;
  for (std::int64_t position = 0; position < 10485760; position += position < 10485000 ? 1009 : 1) {
    const reference::phasor exact = reference::phasor_at(position, 1.0);
    const double p = static_cast<double>(position);
    const std::size_t r = static_cast<std::size_t>(position);
    worst.add(cos_of(rows.view(), r, 0), static_cast<double>(exact.cos), p, 1.0, 0x1p-53);
    worst.add(sin_of(rows.view(), r, 0), static_cast<double>(exact.sin), p, 1.0, 0x1p-53);
  }
  worst.expect_permitted();
}

TEST(Table, OneThatWasMovedFromIsEmptyAndItsRowsLiveOn) {
  const spectrum of = rotary::make_spectrum(64, 10000.0);
  table<float> first(of, 10);
  const table<float> second(std::move(first));
  EXPECT_EQ(first.size(), 0u);
  EXPECT_EQ(second.size(), 10u);
  expect_refused([&] { first.rows(3, 1); }, "table::rows", {"0 positions"});
  first = second;
  expect_same_rows(first.view(), 3, second.view(), 3);

  const std::int32_t positions[] = {5, -7};
  step_table<float> step(of);
  step.assign(positions, 2);
  step_table<float> next(std::move(step));
  EXPECT_EQ(step.size(), 0u);
  EXPECT_EQ(next.size(), 2u);
  expect_refused([&] { step.assign(positions, 2); }, "step_table::assign", {"moved from"});
  step = next;
  step.assign(positions, 1);
  expect_same_rows(step.view(), 0, next.view(), 0);
}

// What the rows' type or the angle mode cannot hold is refused, and does not become NaN or infinity.
TEST(Table, NumbersThatRowsCannotHold) {
  using rotary::float16;
  expect_refused([] { table<float>(spectrum({1e39}), 1, 0, angles::float32); }, "table", {"1e+39"});
  expect_refused(
      [] {
        step_table<float>(spectrum({1.0, 1.0, 1.0}, 1.0, 1e-300), angles::float32_recurrence);
      },
      "table", {"1e-300"});
  expect_refused([] { table<float>(spectrum({1.0}, 1e39), 1); }, "table", {"1e+39", "3e+38"});
  expect_refused([] { table<float16>(spectrum({1.0}, 65520.0), 1); }, "table", {"65520", "65504"});
  expect_refused([] { table<double>(spectrum({1.0}, 1e300).with_growth({1.0}, 0.0), 1, 79); }, "table", {"79"});
  const table<double> held(spectrum({1.0}, 1e300), 2);
  EXPECT_EQ(held.view().cos[0], 1e300);
}

// Lists come from containers of other numbers too, and go back into them.
TEST(List, OfAnotherContainersNumbers) {
  const std::vector<float> floats = {0.5f, 0.25f};
  const spectrum of(floats);
  const std::vector<double> back = of.inv_freq();
  EXPECT_EQ(back, (std::vector<double>{0.5, 0.25}));
  EXPECT_EQ(rotary::list<double>(3), (rotary::list<double>{0.0, 0.0, 0.0}));
  EXPECT_NE(of.inv_freq(), rotary::list<double>());
}

}  // namespace
