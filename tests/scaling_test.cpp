// Edge cases of the scaling policies, and what they refuse. Also built with -ffast-math, under which comparisons cannot
// find a NaN: the refusals must not depend on them.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <rotary/scaling.hpp>
#include <string>
#include <vector>

namespace {

using rotary::make_spectrum;
using rotary::spectrum;

constexpr std::size_t d = 12;
constexpr double theta = 10000.0;

// From bits at run time, since -ffast-math lets a compiler do as it likes with such constants.
double from_bits(std::uint64_t bits) {
  volatile std::uint64_t hidden = bits;
  const std::uint64_t copy = hidden;
  double value;
  std::memcpy(&value, &copy, sizeof value);
  return value;
}

const double nan_value = from_bits(0x7ff8000000000000u);
const double negative_nan = from_bits(0xfff8000000000001u);
const double infinity = from_bits(0x7ff0000000000000u);
const double negative_infinity = from_bits(0xfff0000000000000u);
const double negative_zero = from_bits(0x8000000000000000u);

// The call throws, and the text has the form "rotary::<function>: <argument> is <value>; <range>. <remedy>."
void expect_refused(const std::function<void()>& call, const std::string& function, const std::string& argument,
                    const std::string& value, const std::string& range) {
  SCOPED_TRACE(function + " " + argument + " " + value);
  std::string text;
  try {
    call();
  } catch (const rotary::error& raised) {
    text = raised.what();
  }
  ASSERT_FALSE(text.empty()) << "was accepted";
  EXPECT_EQ(text.rfind("rotary::" + function + ": ", 0), 0u) << text;
  EXPECT_NE(text.find(argument + " is " + value), std::string::npos) << text;
  EXPECT_NE(text.find(range, text.find(';')), std::string::npos) << text;
  EXPECT_EQ(text.back(), '.') << text;
  EXPECT_LT(text.size(), 399u) << text;
}

void expect_non_finite_refused(const std::function<void(double)>& call, const std::string& function,
                               const std::string& argument, const std::string& range) {
  expect_refused([&] { call(nan_value); }, function, argument, "nan", range);
  expect_refused([&] { call(negative_nan); }, function, argument, "-nan", range);
  expect_refused([&] { call(infinity); }, function, argument, "inf", range);
  expect_refused([&] { call(negative_infinity); }, function, argument, "-inf", range);
}

// `call` passes its value as an argument that must be finite and greater than 0; `good` is a value inside the range.
void expect_positive_required(const std::function<void(double)>& call, const std::string& function,
                              const std::string& argument, double good) {
  const std::string range = "finite and greater than 0";
  EXPECT_NO_THROW(call(good)) << function << ' ' << argument;
  expect_non_finite_refused(call, function, argument, range);
  expect_refused([&] { call(0.0); }, function, argument, "0", range);
  expect_refused([&] { call(negative_zero); }, function, argument, "-0", range);
  expect_refused([&] { call(-1.5); }, function, argument, "-1.5", range);
}

void expect_length_required(const std::function<void(std::int64_t)>& call, const std::string& function,
                            const std::string& argument, std::int64_t least) {
  EXPECT_NO_THROW(call(least)) << function << ' ' << argument;
  const std::string range = "at least " + std::to_string(least);
  for (const std::int64_t bad : {least - 1, std::int64_t{-7}, std::numeric_limits<std::int64_t>::min()}) {
    expect_refused([&] { call(bad); }, function, argument, std::to_string(bad), range);
  }
}

std::vector<double> six(std::size_t index, double value) {
  std::vector<double> list(d / 2, 2.0);
  list[index] = value;
  return list;
}

// ---- refusals

TEST(Refused, RotaryDim) {
  const auto theta_only = [](std::size_t dim) { return [dim] { make_spectrum(dim, theta); }; };
  for (const std::size_t odd : {std::size_t{1}, std::size_t{9}, std::size_t{65}}) {
    expect_refused(theta_only(odd), "make_spectrum", "rotary_dim", std::to_string(odd), "must be even");
    expect_refused([=] { make_spectrum(odd, theta, rotary::linear{2.0}); }, "make_spectrum", "rotary_dim",
                   std::to_string(odd), "must be even");
    expect_refused([=] { rotary::none{}(odd, theta); }, "make_spectrum", "rotary_dim", std::to_string(odd),
                   "must be even");
    expect_refused([=] { rotary::inverse_frequencies(odd, theta); }, "inverse_frequencies", "rotary_dim",
                   std::to_string(odd), "must be even");
  }
  const std::size_t minus_two = std::size_t{0} - 2;
  expect_refused(theta_only(minus_two), "make_spectrum", "rotary_dim", std::to_string(minus_two), "at most 16777216");
}

TEST(Refused, RopeTheta) {
  expect_positive_required([](double v) { make_spectrum(d, v); }, "make_spectrum", "rope_theta", 0.5);
  expect_positive_required([](double v) { make_spectrum(0, v); }, "make_spectrum", "rope_theta", 0.5);
  expect_positive_required([](double v) { make_spectrum(d, v, rotary::linear{2.0}); }, "make_spectrum", "rope_theta",
                           1.0);
  expect_positive_required(
      [](double v) {
        make_spectrum(d, v, rotary::dynamic_ntk{2.0, 64}, 65);
      },
      "make_spectrum", "rope_theta", 1.0);
  expect_positive_required([](double v) { rotary::inverse_frequencies(d, v); }, "inverse_frequencies", "rope_theta",
                           1.0);
}

TEST(Refused, FactorOfEveryPolicy) {
  expect_positive_required([](double v) { make_spectrum(d, theta, rotary::linear{v}); }, "linear", "factor", 0.5);
  expect_positive_required(
      [](double v) {
        make_spectrum(d, theta, rotary::dynamic_linear{v, 64}, 10);
      },
      "dynamic_linear", "factor", 0.5);
  expect_positive_required([](double v) { make_spectrum(d, theta, rotary::ntk{v}); }, "ntk", "alpha", 0.5);
  expect_positive_required([](double v) { make_spectrum(d, theta, rotary::ntk_fixed{v}); }, "ntk_fixed", "factor", 0.5);
  expect_positive_required(
      [](double v) {
        make_spectrum(d, theta, rotary::ntk_mixed{v, 0.6});
      },
      "ntk_mixed", "factor", 0.5);
  expect_positive_required(
      [](double v) {
        make_spectrum(d, theta, rotary::dynamic_ntk{v, 64}, 10);
      },
      "dynamic_ntk", "factor", 0.5);
  expect_positive_required([](double v) { make_spectrum(d, theta, rotary::yarn{v, 4096}); }, "yarn", "factor", 0.5);
  expect_positive_required(
      [](double v) {
        make_spectrum(d, theta, rotary::longrope{v, 64, {}, six(0, 1.0)}, 1);
      },
      "longrope", "factor", 0.5);
  expect_positive_required(
      [](double v) {
        make_spectrum(d, theta, rotary::llama3{v, 1.0, 4.0, 8192});
      },
      "llama3", "factor", 0.5);
  expect_positive_required(
      [](double v) {
        make_spectrum(d, theta, rotary::proportional{0.5, v});
      },
      "proportional", "factor", 0.5);
  expect_positive_required([](double v) { rotary::softmax_scale_multiplier(v, 1.0); }, "softmax_scale_multiplier",
                           "factor", 0.5);
}

TEST(Refused, Lengths) {
  const std::vector<double> slowest = six(0, 1.0);
  expect_length_required(
      [](std::int64_t v) {
        make_spectrum(d, theta, rotary::dynamic_linear{2.0, v}, 9);
      },
      "dynamic_linear", "pretrained_max_position_embeddings", 1);
  expect_length_required(
      [](std::int64_t v) {
        make_spectrum(d, theta, rotary::dynamic_linear{2.0, 9}, v);
      },
      "dynamic_linear", "seq_len", 0);
  expect_length_required(
      [](std::int64_t v) {
        make_spectrum(d, theta, rotary::dynamic_ntk{2.0, v}, 9);
      },
      "dynamic_ntk", "max_position_embeddings", 1);
  expect_length_required(
      [](std::int64_t v) {
        make_spectrum(d, theta, rotary::dynamic_ntk{2.0, 9}, v);
      },
      "dynamic_ntk", "seq_len", 0);
  expect_length_required([](std::int64_t v) { make_spectrum(d, theta, rotary::qwen_dynamic_ntk{v}, 9); },
                         "qwen_dynamic_ntk", "seq_length", 1);
  expect_length_required([](std::int64_t v) { make_spectrum(d, theta, rotary::qwen_dynamic_ntk{9}, v); },
                         "qwen_dynamic_ntk", "seq_len", 0);
  expect_length_required(
      [](std::int64_t v) {
        make_spectrum(d, theta, rotary::llama3{8.0, 1.0, 4.0, v});
      },
      "llama3", "original_max_position_embeddings", 1);
  expect_length_required(
      [&](std::int64_t v) {
        make_spectrum(d, theta, rotary::longrope{2.0, v, {}, slowest}, 9);
      },
      "longrope", "original_max_position_embeddings", 2);
  expect_length_required(
      [&](std::int64_t v) {
        make_spectrum(d, theta, rotary::longrope{2.0, 9, {}, slowest}, v);
      },
      "longrope", "seq_len", 0);
  // yarn's shortest length depends on its betas: 7 > 2 pi keeps the ramp forward with beta_slow 1.
  EXPECT_NO_THROW(make_spectrum(d, theta, rotary::yarn{2.0, 7}));
  for (const std::int64_t bad : {0, -7}) {
    expect_refused(
        [=] {
          make_spectrum(d, theta, rotary::yarn{2.0, bad});
        },
        "yarn", "original_max_position_embeddings", std::to_string(bad), "at least 1");
  }
}

TEST(Refused, MixedB) {
  const auto call = [](double v) { make_spectrum(d, theta, rotary::ntk_mixed{2.0, v}); };
  EXPECT_NO_THROW(call(negative_zero));
  expect_non_finite_refused(call, "ntk_mixed", "mixed_b", "finite");
}

TEST(Refused, YarnBetas) {
  expect_positive_required(
      [](double v) {
        make_spectrum(d, theta, rotary::yarn{2.0, 4096, v, 1.0});
      },
      "yarn", "beta_fast", 16.0);
  expect_positive_required(
      [](double v) {
        make_spectrum(d, theta, rotary::yarn{2.0, 4096, 32.0, v});
      },
      "yarn", "beta_slow", 2.0);
  // Betas are looked at even where factor 1 makes them idle.
  expect_positive_required(
      [](double v) {
        make_spectrum(d, theta, rotary::yarn{1.0, 4096, v, 1.0});
      },
      "yarn", "beta_fast", 16.0);
}

TEST(Refused, YarnRampThatRunsBackwards) {
  const auto backwards = [](std::size_t dim, const rotary::yarn& policy) {
    return [=] { make_spectrum(dim, theta, policy); };
  };
  // beta_fast below beta_slow: low 45, high 21.
  expect_refused(backwards(128, {4.0, 4096, 1.0, 32.0}), "yarn", "original_max_position_embeddings 4096", "45 to 21",
                 "low must be at most high");
  // So short a context that even beta_slow lies before the first pair: low 0, high -1.
  expect_refused(backwards(64, {4.0, 4, 32.0, 1.0}), "yarn", "original_max_position_embeddings 4", "0 to -1",
                 "low must be at most high");
  // So long a context that beta_fast lies behind the last channel: low above d - 1.
  expect_refused(backwards(64, {4.0, 1000000000000, 32.0, 1.0}), "yarn",
                 "original_max_position_embeddings 1000000000000", "77 to 63", "low must be at most high");
}

TEST(Refused, YarnTheta) {
  const auto call = [](double v) { rotary::yarn{2.0, 4096}.correction_range(d, v); };
  EXPECT_NO_THROW(call(100.0));
  expect_non_finite_refused(call, "yarn", "rope_theta", "finite and greater than 1");
  for (const double bad : {1.0, 0.5}) {
    expect_refused(
        [=] {
          make_spectrum(d, bad, rotary::yarn{2.0, 4096});
        },
        "yarn", "rope_theta", bad < 1 ? "0.5" : "1", "finite and greater than 1");
  }
}

TEST(Refused, YarnMagnitude) {
  using rotary::yarn_magnitude;
  const auto with = [](yarn_magnitude magnitude) {
    make_spectrum(d, theta, rotary::yarn{4.0, 4096, 32.0, 1.0, true, magnitude});
  };
  expect_positive_required([&](double v) { with(yarn_magnitude::exactly(v)); }, "yarn", "magnitude", 0.5);
  expect_positive_required([&](double v) { with(yarn_magnitude::mscale_ratio(v, 1.0)); }, "yarn", "mscale", 0.7);
  expect_positive_required([&](double v) { with(yarn_magnitude::mscale_ratio(1.0, v)); }, "yarn", "mscale_all_dim",
                           0.7);
  const auto paper = [&](double v) { with(yarn_magnitude::paper(v)); };
  EXPECT_NO_THROW(paper(0.0));
  expect_non_finite_refused(paper, "yarn", "log_multiplier", "finite and at least 0");
  expect_refused([&] { paper(-0.1); }, "yarn", "log_multiplier", "-0.1", "finite and at least 0");
}

TEST(Refused, MscaleAllDimOfTheSoftmaxScale) {
  const auto call = [](double v) { rotary::softmax_scale_multiplier(4.0, v); };
  EXPECT_NO_THROW(call(0.0));
  expect_non_finite_refused(call, "softmax_scale_multiplier", "mscale_all_dim", "finite and at least 0");
  expect_refused([&] { call(-0.5); }, "softmax_scale_multiplier", "mscale_all_dim", "-0.5", "finite and at least 0");
}

TEST(Refused, ListsOfFactors) {
  for (const std::size_t index : {std::size_t{0}, std::size_t{5}}) {
    const std::string at = "[" + std::to_string(index) + "]";
    expect_positive_required([=](double v) { make_spectrum(d, theta, rotary::frequency_factors{six(index, v)}); },
                             "frequency_factors", "factors" + at, 1e30);
    // In the regime that is not in use, too.
    expect_positive_required(
        [=](double v) {
          make_spectrum(d, theta, rotary::longrope{2.0, 64, {}, six(index, v)}, 64);
        },
        "longrope", "long_factor" + at, 1.5);
    expect_positive_required(
        [=](double v) {
          make_spectrum(d, theta, rotary::longrope{2.0, 64, six(index, v), six(0, 2.0)}, 65);
        },
        "longrope", "short_factor" + at, 1.5);
  }
}

TEST(Refused, ListsOfTheWrongLength) {
  const std::vector<double> good(6, 2.0);
  for (const std::size_t length : {std::size_t{0}, std::size_t{5}, std::size_t{7}, d}) {
    const std::vector<double> bad(length, 2.0);
    const std::string text = "has " + std::to_string(length) + " values; it must have 6";
    const auto expect_text = [&](const std::function<void()>& call, const std::string& argument) {
      std::string what;
      try {
        call();
      } catch (const rotary::error& raised) {
        what = raised.what();
      }
      EXPECT_NE(what.find(argument + " " + text), std::string::npos) << argument << ' ' << length << ": " << what;
    };
    expect_text([&] { make_spectrum(d, theta, rotary::frequency_factors{bad}); }, "frequency_factors: factors");
    expect_text([&] { make_spectrum(d, theta, rotary::longrope{2.0, 64, good, bad}, 1); }, "longrope: long_factor");
    if (length != 0) {
      expect_text([&] { make_spectrum(d, theta, rotary::longrope{2.0, 64, bad, good}, 1); }, "longrope: short_factor");
    }
    expect_text([&] { spectrum(good).with_growth(bad, 0.0); }, "spectrum::with_growth: growth");
  }
}

TEST(Refused, LongropeMagnitude) {
  using rotary::longrope_magnitude;
  expect_positive_required(
      [](double v) {
        rotary::longrope policy{2.0, 64, {}, six(0, 1.0)};
        policy.short_magnitude = longrope_magnitude::exactly(v);
        make_spectrum(d, theta, policy, 1);
      },
      "longrope", "magnitude", 1.25);
  expect_positive_required(
      [](double v) {
        rotary::longrope policy{2.0, 64, {}, six(0, 1.0)};
        policy.long_magnitude = longrope_magnitude::exactly(v);
        make_spectrum(d, theta, policy, 1);  // the other regime
      },
      "longrope", "magnitude", 1.25);
}

TEST(Refused, Llama3Band) {
  expect_positive_required(
      [](double v) {
        make_spectrum(d, theta, rotary::llama3{8.0, v, 4.0, 8192});
      },
      "llama3", "low_freq_factor", 3.5);
  const auto high = [](double v) { make_spectrum(d, theta, rotary::llama3{8.0, 2.0, v, 8192}); };
  EXPECT_NO_THROW(high(2.5));
  const std::string range = "finite and greater than low_freq_factor, 2";
  expect_non_finite_refused(high, "llama3", "high_freq_factor", range);
  expect_refused([&] { high(2.0); }, "llama3", "high_freq_factor", "2", range);
  expect_refused([&] { high(1.0); }, "llama3", "high_freq_factor", "1", range);
  expect_refused([&] { high(negative_zero); }, "llama3", "high_freq_factor", "-0", range);
}

TEST(Refused, PartialRotaryFactor) {
  const auto of_policy = [](double v) { make_spectrum(d, theta, rotary::proportional{v, 1.0}); };
  const auto of_function = [](double v) { rotary::rotary_dim(64, v); };
  EXPECT_NO_THROW(of_policy(negative_zero));
  EXPECT_NO_THROW(of_function(negative_zero));
  expect_non_finite_refused(of_policy, "proportional", "partial_rotary_factor", "in [0, 1]");
  expect_non_finite_refused(of_function, "rotary_dim", "partial_rotary_factor", "in [0, 1]");
  expect_refused([&] { of_policy(1.5); }, "proportional", "partial_rotary_factor", "1.5", "in [0, 1]");
  expect_refused([&] { of_policy(-0.25); }, "proportional", "partial_rotary_factor", "-0.25", "in [0, 1]");
  expect_refused([&] { of_function(1.5); }, "rotary_dim", "partial_rotary_factor", "1.5", "in [0, 1]");
  expect_refused([&] { of_function(-0.25); }, "rotary_dim", "partial_rotary_factor", "-0.25", "in [0, 1]");
}

TEST(Refused, OddRotaryDimOfAPartialFactor) {
  expect_refused([] { rotary::rotary_dim(100, 0.25); }, "rotary_dim", "head_dim 100 * partial_rotary_factor 0.25", "25",
                 "must be even");
  expect_refused([] { rotary::rotary_dim(65, 1.0); }, "rotary_dim", "head_dim 65 * partial_rotary_factor 1", "65",
                 "must be even");
  const std::size_t minus_one = std::size_t{0} - 1;
  expect_refused([=] { rotary::rotary_dim(minus_one, 0.5); }, "rotary_dim", "head_dim", std::to_string(minus_one),
                 "at most 16777216");
}

TEST(Refused, AxisSectionsThatDoNotFit) {
  const auto axes = [](std::size_t dim, std::vector<std::size_t> dims) {
    return [=] { make_spectrum(dim, theta, rotary::axial{dims}); };
  };
  EXPECT_NO_THROW(axes(64, {24, 20, 20})());
  EXPECT_NO_THROW(axes(128, {44, 42, 42})());
  expect_refused(axes(64, {22, 21, 21}), "axial", "axis_dims[1]", "21", "even and at most rotary_dim, 64");
  expect_refused(axes(64, {20, 20, 20}), "axial", "the sum of axis_dims", "60", "rotary_dim, 64");
  expect_refused(axes(64, {}), "axial", "the sum of axis_dims", "0", "rotary_dim, 64");
  expect_refused(axes(64, {32, 32, 32, 32}), "axial", "the sum of axis_dims", "at least 96", "rotary_dim, 64");
  const std::size_t minus_two = std::size_t{0} - 2;
  expect_refused(axes(64, {2, minus_two, 64}), "axial", "axis_dims[1]", std::to_string(minus_two),
                 "at most rotary_dim, 64");
  expect_refused([] { make_spectrum(10, theta, rotary::axial_even_odd{}); }, "axial_even_odd", "rotary_dim", "10",
                 "multiple of 4");
  expect_refused([] { make_spectrum(10, theta, rotary::axial_alternating{}); }, "axial_alternating", "rotary_dim", "10",
                 "multiple of 4");
}

TEST(Refused, Xpos) {
  using rotary::xpos;
  using rotary::xpos_role;
  expect_positive_required(
      [](double v) {
        make_spectrum(d, theta, xpos{xpos_role::query, v});
      },
      "xpos", "scale_base", 1.0);
  const auto center = [](double v) { make_spectrum(d, theta, xpos{xpos_role::key, 512.0, v}); };
  EXPECT_NO_THROW(center(-100.5));
  expect_non_finite_refused(center, "xpos", "center", "finite");
  expect_refused([] { make_spectrum(d, theta, xpos{static_cast<xpos_role>(2)}); }, "xpos", "role", "2",
                 "xpos_role::query");
}

TEST(Refused, UserGivenSpectrum) {
  for (const std::size_t index : {std::size_t{0}, std::size_t{5}}) {
    const std::string at = "[" + std::to_string(index) + "]";
    expect_non_finite_refused([=](double v) { spectrum{six(index, v)}; }, "spectrum", "inv_freq" + at, "finite");
    expect_non_finite_refused([=](double v) { spectrum(six(0, 1.0)).with_growth(six(index, v), 0.0); }, "spectrum",
                              "growth" + at, "finite");
  }
  expect_positive_required([](double v) { spectrum(six(0, 1.0), v); }, "spectrum", "magnitude", 1e-3);
  const auto step = [](double v) { spectrum(six(0, 1.0), 1.0, v); };
  EXPECT_NO_THROW(step(0.0));
  expect_non_finite_refused(step, "spectrum", "step_ratio", "finite and at least 0");
  expect_refused([&] { step(-0.5); }, "spectrum", "step_ratio", "-0.5", "finite and at least 0");
  expect_non_finite_refused([](double v) { spectrum(six(0, 1.0)).with_growth(six(0, 1.0), v); },
                            "spectrum::with_growth", "center", "finite");
}

TEST(Refused, PolicyThatMakesTheWrongNumberOfPairs) {
  expect_refused([] { make_spectrum(d, theta, [](std::size_t, double) { return spectrum({1.0}); }); }, "make_spectrum",
                 "the number of pairs of the policy", "1", "6, rotary_dim / 2");
}

TEST(Refused, ResultsThatOverflow) {
  expect_refused([] { make_spectrum(d, 1e300, rotary::ntk{1e200}); }, "make_spectrum", "rope_theta", "inf", "finite");
  expect_refused([] { make_spectrum(4, 1e-300, rotary::linear{1e-200}); }, "spectrum", "inv_freq[1]", "inf", "finite");
}

// ---- edge cases that are accepted

void expect_frequencies(const spectrum& got, const std::vector<double>& expected, double relative = 8e-16) {
  ASSERT_EQ(got.pairs(), expected.size());
  for (std::size_t j = 0; j < expected.size(); ++j) {
    EXPECT_NEAR(got.inv_freq()[j], expected[j], relative * expected[j]) << "pair " << j;
  }
}

TEST(Scaling, FactorOneIsExactlyUnscaled) {
  const std::vector<double> unscaled = make_spectrum(80, theta).inv_freq();
  const std::vector<double> ones(40, 1.0);
  const auto expect_same = [&](const spectrum& got) {
#ifdef __FAST_MATH__  // each inlined copy of a function may round in its own way
    expect_frequencies(got, unscaled, 4e-15);
#else
    EXPECT_EQ(got.inv_freq(), unscaled);
#endif
  };
  expect_same(make_spectrum(80, theta, rotary::none{}));
  expect_same(make_spectrum(80, theta, rotary::linear{1.0}));
  expect_same(make_spectrum(80, theta, rotary::ntk{1.0}));
  expect_same(make_spectrum(80, theta, rotary::ntk_fixed{1.0}));
  expect_same(make_spectrum(80, theta, rotary::ntk_mixed{1.0, 0.6}));
  expect_same(make_spectrum(80, theta, rotary::llama3{1.0, 1.0, 4.0, 8192}));
  expect_same(make_spectrum(80, theta, rotary::proportional{}));
  expect_same(make_spectrum(80, theta, rotary::frequency_factors{ones}));
  expect_same(make_spectrum(80, theta, rotary::longrope{1.0, 64, {}, ones}, 65));
  expect_same(make_spectrum(80, theta, rotary::axial{{80}}));
  // Whatever the betas, even in the wrong order.
  for (const double beta_fast : {0.25, 1.0, 32.0}) {
    const spectrum yarn = make_spectrum(80, theta, rotary::yarn{1.0, 4096, beta_fast, 1.0});
    expect_same(yarn);
    EXPECT_EQ(yarn.magnitude(), 1.0);
  }
}

TEST(Scaling, ThetaOneTurnsAllPairsAlike) {
  EXPECT_EQ(make_spectrum(6, 1.0).inv_freq(), (std::vector<double>{1.0, 1.0, 1.0}));
}

TEST(Scaling, OnePairHasFrequencyOneUnderNtk) {
  EXPECT_EQ(make_spectrum(2, theta, rotary::ntk{8.0}).inv_freq(), std::vector<double>{1.0});
  EXPECT_EQ((rotary::ntk{8.0}.effective_theta(2, theta)), theta);
  EXPECT_EQ((rotary::dynamic_ntk{8.0, 64}.effective_theta(2, theta, 4096)), theta);
  EXPECT_EQ((rotary::qwen_dynamic_ntk{64}.effective_theta(2, theta, 4096)), theta);
  expect_frequencies(make_spectrum(2, theta, rotary::ntk_fixed{8.0}), {0.125});
  expect_frequencies(make_spectrum(2, theta, rotary::ntk_mixed{8.0, 0.6}), {0.125});
}

TEST(Scaling, DynamicLinearFollowsTheLengthBeyondItsFactor) {
  const rotary::dynamic_linear policy{4.0, 1024};
  expect_frequencies(make_spectrum(4, theta, policy, 0), {0.25, 0.0025});
  expect_frequencies(make_spectrum(4, theta, policy, 4096), {0.25, 0.0025});
  expect_frequencies(make_spectrum(4, theta, policy, 8192), {0.125, 0.00125});
}

TEST(Scaling, DynamicNtkWithFactorOneStillGrowsBeyondTheMaximum) {
  const rotary::dynamic_ntk policy{1.0, 1024};
  EXPECT_EQ(policy.effective_theta(4, theta, 1024), theta);
  EXPECT_NEAR(policy.effective_theta(4, theta, 2048), 40000.0, 1e-10);  // 10000 * 2^(4/2)
  // With factor < 1 the bracket 0.5 * 2 - (0.5 - 1) stays above 1.
  EXPECT_NEAR((rotary::dynamic_ntk{0.5, 1024}.effective_theta(4, theta, 2048)), 22500.0, 1e-10);
}

TEST(Scaling, QwenAlphaDoublesWithTheLength) {
  const rotary::qwen_dynamic_ntk policy{2048};
  const auto alpha = [&](std::int64_t seq_len) { return policy.effective_theta(4, 1.0, seq_len); };  // alpha^2
  EXPECT_EQ(alpha(0), 1.0);
  EXPECT_EQ(alpha(2048), 1.0);
  EXPECT_EQ(alpha(2049), 9.0);
  EXPECT_EQ(alpha(4096), 9.0);
  EXPECT_EQ(alpha(4097), 49.0);
  EXPECT_EQ(alpha(8192), 49.0);
  EXPECT_EQ(alpha(8193), 225.0);
  EXPECT_NO_THROW(make_spectrum(d, theta, policy, std::numeric_limits<std::int64_t>::max()));
}

TEST(Scaling, YarnRangesOfPublishedModels) {
  struct row {
    std::size_t rotary_dim;
    double rope_theta;
    std::int64_t original;
    bool truncate;
    double low, high;
  };
  const row rows[] = {{128, 1e4, 4096, true, 20, 46},           {64, 1e4, 4096, true, 10, 23},
                      {128, 1e6, 32768, true, 23, 40},          {128, 5e5, 8192, true, 18, 35},
                      {64, 1.5e5, 4096, false, 8.0928, 17.398}, {64, 1.6e5, 65536, true, 15, 25}};
  for (const row& r : rows) {
    const auto got = rotary::yarn{2.0, r.original, 32.0, 1.0, r.truncate}.correction_range(r.rotary_dim, r.rope_theta);
    EXPECT_NEAR(got.low, r.low, r.truncate ? 0.0 : 5e-5) << r.rotary_dim << ' ' << r.rope_theta;
    EXPECT_NEAR(got.high, r.high, r.truncate ? 0.0 : 5e-5) << r.rotary_dim << ' ' << r.rope_theta;
  }
}

TEST(Scaling, YarnRangeEnds) {
  // Equal betas: one pair wide by rounding; without rounding the ramp is a step.
  const auto rounded = rotary::yarn{32.0, 4096, 1.0, 1.0}.correction_range(64, 5e4);
  EXPECT_EQ(rounded.low, 19.0);
  EXPECT_EQ(rounded.high, 20.0);
  const auto step = rotary::yarn{32.0, 4096, 1.0, 1.0, false}.correction_range(64, 5e4);
  EXPECT_NEAR(step.high - step.low, 0.001, 1e-12);
  // d 4, original 4: both ends lie before the first pair (high is -0.098, rounded up to 0).
  const auto before_all = rotary::yarn{2.0, 4}.correction_range(4, theta);
  EXPECT_EQ(before_all.low, 0.0);
  EXPECT_EQ(before_all.high, 0.001);
  expect_frequencies(make_spectrum(4, theta, rotary::yarn{2.0, 4}), {1.0, 0.005});
  // d - 1, not pairs - 1, bounds the upper end.
  const auto after_all = rotary::yarn{2.0, 628318531}.correction_range(8, theta);  // 8 before the bound
  EXPECT_EQ(after_all.high, 7.0);
  expect_frequencies(make_spectrum(2, theta, rotary::yarn{4.0, 4096}), {1.0});
}

TEST(Scaling, YarnShrinkingHasNoMagnitude) {
  const spectrum s = make_spectrum(4, theta, rotary::yarn{0.5, 4});
  EXPECT_EQ(s.magnitude(), 1.0);
  expect_frequencies(s, {1.0, 0.02});
  EXPECT_EQ(rotary::softmax_scale_multiplier(0.5, 1.0), 1.0);
  // TeleChat3's multiplier.
  EXPECT_NEAR(rotary::yarn_magnitude::paper(0.07).value(16.0), 1.1940812105567846, 1e-15);
}

TEST(Scaling, LongropeRegimes) {
  rotary::longrope policy{4.0, 1024, {2.0, 4.0}, {8.0, 16.0}};
  expect_frequencies(make_spectrum(4, theta, policy, 0), {0.5, 0.0025});
  expect_frequencies(make_spectrum(4, theta, policy, 1024), {0.5, 0.0025});  // the limit itself is short
  expect_frequencies(make_spectrum(4, theta, policy, 1025), {0.125, 0.000625});
  const double paper = 1.0954451150103321;  // sqrt(1 + ln 4 / ln 1024) = sqrt(1.2)
  EXPECT_NEAR(make_spectrum(4, theta, policy, 1).magnitude(), paper, 3e-16);
  EXPECT_NEAR(make_spectrum(4, theta, policy, 2000).magnitude(), paper, 3e-16);
  policy.long_magnitude = rotary::longrope_magnitude::exactly(1.25);
  EXPECT_NEAR(make_spectrum(4, theta, policy, 1).magnitude(), paper, 3e-16);
  EXPECT_EQ(make_spectrum(4, theta, policy, 2000).magnitude(), 1.25);
  policy.short_magnitude = rotary::longrope_magnitude::exactly(0.75);
  EXPECT_EQ(make_spectrum(4, theta, policy, 1).magnitude(), 0.75);
  policy.short_factor = {};
  expect_frequencies(make_spectrum(4, theta, policy, 1), {1.0, 0.01});
  EXPECT_EQ(rotary::longrope_magnitude::paper().value(1.0, 4096), 1.0);
  EXPECT_EQ(rotary::longrope_magnitude::paper().value(0.5, 4096), 1.0);
}

TEST(Scaling, Llama3BandIsContinuous) {
  // One pair of frequency 1 and an original length that puts it just inside either end of the band.
  const auto at = [](double low, double high) {
    return make_spectrum(2, theta, rotary::llama3{8.0, low, high, 1000}).inv_freq()[0];
  };
  const double turns = 1000 / 6.283185307179586;
  EXPECT_EQ(at(turns * 0.5, turns * 0.9), 1.0);
  EXPECT_NEAR(at(turns * 0.5, turns * (1 + 1e-9)), 1.0, 1e-8);
  EXPECT_EQ(at(turns * 1.1, turns * 2.0), 0.125);
  EXPECT_NEAR(at(turns * (1 - 1e-9), turns * 2.0), 0.125, 1e-8);
  EXPECT_NEAR(at(turns * 0.5, turns * 1.5), 0.5625, 1e-14);  // half way: (1 + 1/8) / 2
}

TEST(Scaling, ProportionalRestsTheOtherPairs) {
  expect_frequencies(make_spectrum(8, theta, rotary::proportional{0.5, 4.0}), {0.25, 0.025, 0.0, 0.0});
  expect_frequencies(make_spectrum(8, theta, rotary::proportional{0.74, 1.0}),
                     {1.0, 0.1, 0.0, 0.0});  // 2.96 rounds down
  expect_frequencies(make_spectrum(8, theta, rotary::proportional{0.0, 1.0}), {0.0, 0.0, 0.0, 0.0});
  // Within 2 ulps: under -ffast-math the division by 1 need not be exact.
  EXPECT_NEAR(make_spectrum(512, 1e6, rotary::proportional{0.25, 1.0}).inv_freq()[63],
              make_spectrum(512, 1e6).inv_freq()[63], 1.4e-17);
  EXPECT_EQ(make_spectrum(512, 1e6, rotary::proportional{0.25, 1.0}).inv_freq()[64], 0.0);
}

TEST(Scaling, FrequencyFactorsDivide) {
  expect_frequencies(make_spectrum(6, 1000.0, rotary::frequency_factors{{1.0, 2.0, 1e30}}), {1.0, 0.05, 1e-32});
}

TEST(Scaling, AxesFollowEachOther) {
  expect_frequencies(make_spectrum(10, 10000.0, rotary::axial{{4, 2, 4}}), {1.0, 0.01, 1.0, 1.0, 0.01});
  expect_frequencies(make_spectrum(8, 10000.0, rotary::axial{{0, 8}}), {1.0, 0.1, 0.01, 0.001});
  expect_frequencies(make_spectrum(8, 10000.0, rotary::axial_even_odd{}), {1.0, 0.01, 0.1, 0.001});
  expect_frequencies(make_spectrum(12, 1e6, rotary::axial_alternating{}), {1.0, 1.0, 0.01, 0.01, 1e-4, 1e-4});
}

TEST(Scaling, XposGrowsQueriesAndShrinksKeys) {
  using rotary::xpos_role;
  const spectrum query = make_spectrum(4, theta, rotary::xpos{xpos_role::query, 512.0, 100.0});
  const spectrum key = make_spectrum(4, theta, rotary::xpos{xpos_role::key, 512.0, 100.0});
  expect_frequencies(query, {1.0, 0.01});
  expect_frequencies(key, {1.0, 0.01});
  EXPECT_EQ(query.magnitude(), 1.0);
  EXPECT_EQ(query.growth_center(), 100.0);
  EXPECT_EQ(key.growth_center(), 100.0);
  // ln(1.6 / 5.6) / 512 and ln(3.6 / 5.6) / 512
  const double expected[] = {-0.0024468026728425157, -0.0008629545942949985};
  ASSERT_EQ(query.growth().size(), 2u);
  ASSERT_EQ(key.growth().size(), 2u);
  for (std::size_t j = 0; j < 2; ++j) {
    EXPECT_NEAR(query.growth()[j], expected[j], 1e-17) << j;
    EXPECT_EQ(key.growth()[j], -query.growth()[j]) << j;
  }
  EXPECT_EQ((rotary::xpos{xpos_role::key}).scale_base, 512.0);
}

}  // namespace
