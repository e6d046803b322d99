// Spectra against the reference data, against long double arithmetic, and against hand-checked constants of public
// faults.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <rotary/scaling.hpp>
#include <rotary/spectrum.hpp>
#include <string>
#include <utility>
#include <vector>

#include "golden.hpp"
#include "reference.hpp"

namespace {

using rotary::make_spectrum;
using rotary::spectrum;

// The error of `got` in units in the last place of the double nearest to `exact`.
double ulps(double got, long double exact) {
  const double nearest = std::fabs(static_cast<double>(exact));
  if (nearest == 0.0) return got == 0.0 ? 0.0 : std::numeric_limits<double>::infinity();
  const double ulp = std::nextafter(nearest, std::numeric_limits<double>::infinity()) - nearest;
  return static_cast<double>(std::fabs(static_cast<long double>(got) - exact)) / ulp;
}

std::vector<double> errors_in_ulps(const spectrum& got, const std::vector<double>& expected) {
  EXPECT_EQ(got.pairs(), expected.size());
  std::vector<double> errors;
  for (std::size_t j = 0; j < got.pairs() && j < expected.size(); ++j) {
    errors.push_back(ulps(got.inv_freq()[j], static_cast<long double>(expected[j])));
  }
  return errors;
}

double largest(const std::vector<double>& values) {
  double most = 0.0;
  for (const double v : values) most = reference::larger(most, v);
  return most;
}

// The difference of two nearby numbers on a ramp loses digits: of the turns for llama3, of the ends for yarn
// untruncated.
double permitted_ulps(const nlohmann::json& parameters) {
  const std::string policy = parameters.at("policy");
  if (policy == "llama3") return 8.0;
  if (policy == "yarn" && !parameters.at("truncate").get<bool>()) return 32.0;
  return 2.0;
}

// ---- reference data

TEST(GoldenSpectra, InverseFrequenciesAndAttentionFactor) {
  std::size_t frequencies = 0;
  const nlohmann::json file = golden::load("spectra");
  for (const nlohmann::json& record : file.at("records")) {
    SCOPED_TRACE(record.at("name").get<std::string>());
    const nlohmann::json& parameters = record.at("parameters");
    const spectrum got = golden::spectrum_from(parameters);
    const std::vector<double> expected = record.at("inv_freq");
    EXPECT_LE(largest(errors_in_ulps(got, expected)), permitted_ulps(parameters));
    for (std::size_t j = 0; j < expected.size(); ++j) EXPECT_NEAR(got.inv_freq()[j], expected[j], 1.2e-16);
    EXPECT_LE(ulps(got.magnitude(), record.at("attention_factor").get<double>()), 1.0);
    EXPECT_TRUE(got.growth().empty());
    frequencies += expected.size();
  }
  EXPECT_GT(frequencies, 0u);
}

TEST(GoldenSpectra, AgreeWithTransformersToFloatPrecision) {
  const nlohmann::json file = golden::load("spectra");
  for (const nlohmann::json& record : file.at("records")) {
    if (!golden::given(record, "hf_float32")) continue;
    SCOPED_TRACE(record.at("name").get<std::string>());
    const nlohmann::json& hf = record.at("hf_float32");
    const spectrum got = golden::spectrum_from(record.at("parameters"));
    const std::vector<double> expected = hf.at("inv_freq");
    ASSERT_EQ(got.pairs(), expected.size());
    for (std::size_t j = 0; j < expected.size(); ++j) {
      EXPECT_NEAR(got.inv_freq()[j], expected[j], 5e-7 * expected[j]) << "pair " << j;
    }
    EXPECT_NEAR(got.magnitude(), hf.at("attention_factor").get<double>(), 2e-7);
  }
}

TEST(GoldenSpectra, EffectiveThetaOfNtk) {
  int records = 0;
  const nlohmann::json file = golden::load("spectra");
  for (const nlohmann::json& record : file.at("records")) {
    if (!golden::given(record, "derived") || !golden::given(record.at("derived"), "effective_base")) continue;
    SCOPED_TRACE(record.at("name").get<std::string>());
    const nlohmann::json& p = record.at("parameters");
    const std::size_t d = p.at("rotary_dim");
    const double theta = p.at("base");
    const double expected = record.at("derived").at("effective_base");
    double got = 0.0;
    if (p.at("policy") == "ntk") {
      got = rotary::ntk{p.at("alpha")}.effective_theta(d, theta);
    } else {
      got = rotary::dynamic_ntk{p.at("factor"), p.at("max_position_embeddings")}.effective_theta(
          d, theta, p.at("seq_len").get<std::int64_t>());
    }
    EXPECT_LE(ulps(got, expected), 2.0);
    const long double step = std::pow(static_cast<long double>(expected), -2.0L / static_cast<long double>(d));
    EXPECT_LE(ulps(golden::spectrum_from(p).step_ratio(), step), 2.0);
    ++records;
  }
  EXPECT_GT(records, 0);
}

TEST(GoldenSpectra, CorrectionRangeAndSoftmaxScaleOfYarn) {
  int records = 0;
  const nlohmann::json file = golden::load("spectra");
  for (const nlohmann::json& record : file.at("records")) {
    const nlohmann::json& p = record.at("parameters");
    if (p.at("policy") != "yarn") continue;
    SCOPED_TRACE(record.at("name").get<std::string>());
    const nlohmann::json& derived = record.at("derived");
    const rotary::yarn::range got = golden::yarn_from(p).correction_range(p.at("rotary_dim"), p.at("base"));
    EXPECT_NEAR(got.low, derived.at("correction_dim_low").get<double>(), 2e-14);
    EXPECT_NEAR(got.high, derived.at("correction_dim_high").get<double>(), 2e-14);
    if (golden::given(derived, "softmax_scale_multiplier")) {
      const double multiplier = rotary::softmax_scale_multiplier(p.at("factor"), p.at("mscale_all_dim"));
      EXPECT_LE(ulps(multiplier, derived.at("softmax_scale_multiplier").get<double>()), 2.0);
    }
    ++records;
  }
  EXPECT_GT(records, 0);
}

TEST(GoldenSpectra, VisionTowers) {
  int records = 0;
  const nlohmann::json file = golden::load("multi_axis");
  for (const nlohmann::json& record : file.at("records")) {
    const std::string layout = record.at("layout");
    if (layout.rfind("vision_2d", 0) != 0) continue;
    SCOPED_TRACE(record.at("name").get<std::string>());
    const std::size_t d = record.at("rotary_dim");
    const double theta = record.at("base");
    const spectrum got = layout == "vision_2d_pixtral" ? make_spectrum(d, theta, rotary::axial_even_odd{})
                                                       : make_spectrum(d, theta, rotary::axial{{d / 2, d / 2}});
    const std::vector<int> index = record.at("pair_frequency_index");
    const auto spectrum_dim = record.at("spectrum_dim").get<long double>();
    ASSERT_EQ(got.pairs(), index.size());
    for (std::size_t j = 0; j < index.size(); ++j) {
      const long double exact = std::pow(static_cast<long double>(theta), -2.0L * index[j] / spectrum_dim);
      EXPECT_LE(ulps(got.inv_freq()[j], exact), 1.1) << "pair " << j;
    }
    EXPECT_EQ(got.step_ratio(), 0.0);
    ++records;
  }
  EXPECT_GT(records, 0);
}

// ---- the stated accuracy, by long double arithmetic

class Accuracy : public testing::Test {
 protected:
  void SetUp() override {
    if (std::numeric_limits<long double>::digits < 64) GTEST_SKIP() << "long double is no better than double here";
  }
  const std::vector<std::size_t> dims{2, 4, 6, 10, 20, 28, 32, 48, 64, 72, 80, 88, 96, 112, 128, 192, 256, 576, 1000};
  const std::vector<double> thetas{0.5, 1.0, 1.5, 100.0, 10000.0, 123456.789, 500000.0, 1e7, 1.2e7, 1e15};
  static long double power(long double base, long double exponent) { return std::pow(base, exponent); }
};

TEST_F(Accuracy, InverseFrequencies) {
  for (const std::size_t d : dims) {
    for (const double theta : thetas) {
      const std::vector<double> got = rotary::inverse_frequencies(d, theta);
      ASSERT_EQ(got.size(), d / 2);
      for (std::size_t j = 0; j < got.size(); ++j) {
        const long double exponent = -2.0L * static_cast<long double>(j) / static_cast<long double>(d);
        ASSERT_LE(ulps(got[j], power(theta, exponent)), 1.1) << "d " << d << " theta " << theta << " pair " << j;
      }
      const long double step = power(theta, -2.0L / static_cast<long double>(d));
      EXPECT_LE(ulps(make_spectrum(d, theta).step_ratio(), step), 1.1) << "d " << d << " theta " << theta;
    }
  }
}

TEST_F(Accuracy, NtkFamily) {
  for (const std::size_t d : dims) {
    if (d == 2) continue;
    const long double ld = static_cast<long double>(d);
    for (const double alpha : {0.3, 1.0, 7.0, 1000.0}) {
      const double theta = 10000.0;
      const long double changed = theta * power(alpha, ld / (ld - 2));
      const spectrum plain = make_spectrum(d, theta, rotary::ntk{alpha});
      const spectrum fixed = make_spectrum(d, theta, rotary::ntk_fixed{alpha});
      const spectrum mixed = make_spectrum(d, theta, rotary::ntk_mixed{alpha, 0.625});
      for (std::size_t j = 0; j < d / 2; ++j) {
        const long double lj = static_cast<long double>(j);
        const long double w = power(theta, -2 * lj / ld);
        ASSERT_LE(ulps(plain.inv_freq()[j], power(changed, -2 * lj / ld)), 3.0) << "d " << d << " alpha " << alpha;
        ASSERT_LE(ulps(fixed.inv_freq()[j], w * power(alpha, -(2 * lj + 2) / ld)), 3.0) << "d " << d;
        const long double slowing =
            std::exp(std::log(static_cast<long double>(alpha)) / power(ld / 2, 0.625L) * power(lj + 1, 0.625L));
        ASSERT_LE(ulps(mixed.inv_freq()[j], w / slowing), 8.0) << "d " << d << " alpha " << alpha << " pair " << j;
      }
      EXPECT_LE(ulps(plain.step_ratio(), power(changed, -2 / ld)), 2.0);
      EXPECT_LE(ulps(fixed.step_ratio(), power(theta * static_cast<long double>(alpha), -2 / ld)), 2.0);
    }
  }
}

// The stated bounds over a grid of parameters. The formulas are those of the papers, without any care for cancellation.
class RampAccuracy : public Accuracy {
 protected:
  struct worst {
    double in_ulps = 0, relative = 0, absolute = 0;
    int pairs_on_the_ramp = 0;

    void add(double got, long double w, double factor, long double divided) {
      const long double part = std::fmin(std::fmax(divided, 0.0L), 1.0L);
      const long double exact = w / static_cast<long double>(factor) * part + w * (1 - part);
      const long double error = std::fabs(static_cast<long double>(got) - exact);
      in_ulps = reference::larger(in_ulps, ulps(got, exact));
      relative = reference::larger(relative, static_cast<double>(error / exact));
      absolute = reference::larger(absolute, static_cast<double>(error));
      if (part > 0 && part < 1) ++pairs_on_the_ramp;
    }
  };
  const std::vector<std::size_t> ramp_dims{32, 64, 80, 96, 128, 192};
  const std::vector<double> ramp_thetas{10000.0, 150000.0, 1e6, 1.2e7};
  const std::vector<double> factors{1.1, 1.5, 4.0, 40.0, 90.0};
  static constexpr long double two_pi = 6.28318530717958647692528676655900577L;

  worst yarn_errors(bool truncate) {
    worst result;
    for (const std::size_t d : ramp_dims) {
      for (const double theta : ramp_thetas) {
        const long double ld = static_cast<long double>(d);
        const long double scale = ld / (2 * std::log(static_cast<long double>(theta)));
        long double low = scale * std::log(6000 / (two_pi * 24));
        long double high = scale * std::log(6000 / (two_pi * 2));
        if (truncate) {
          low = std::floor(low);
          high = std::ceil(high);
        }
        for (const double factor : factors) {
          const spectrum got = make_spectrum(d, theta, rotary::yarn{factor, 6000, 24.0, 2.0, truncate});
          for (std::size_t j = 0; j < d / 2; ++j) {
            const long double lj = static_cast<long double>(j);
            result.add(got.inv_freq()[j], power(theta, -2 * lj / ld), factor, (lj - low) / (high - low));
          }
        }
      }
    }
    return result;
  }
};

TEST_F(RampAccuracy, YarnTruncated) {
  const worst errors = yarn_errors(true);
  EXPECT_LE(errors.in_ulps, 4.0);
  EXPECT_LE(errors.absolute, 1.2e-16);
  EXPECT_GT(errors.pairs_on_the_ramp, 500);
}

TEST_F(RampAccuracy, YarnUntruncated) {
  const worst errors = yarn_errors(false);
  EXPECT_LE(errors.relative, 1e-13);
  EXPECT_LE(errors.absolute, 1.2e-16);
  EXPECT_GT(errors.pairs_on_the_ramp, 500);
}

TEST_F(RampAccuracy, Llama3) {
  worst errors;
  for (const std::size_t d : ramp_dims) {
    for (const double theta : ramp_thetas) {
      for (const double factor : factors) {
        const spectrum got = make_spectrum(d, theta, rotary::llama3{factor, 1.25, 7.0, 6000});
        for (std::size_t j = 0; j < d / 2; ++j) {
          const long double w = power(theta, -2.0L * static_cast<long double>(j) / static_cast<long double>(d));
          errors.add(got.inv_freq()[j], w, factor, (7 - 6000 * w / two_pi) / 5.75L);
        }
      }
    }
  }
  EXPECT_LE(errors.relative, 1e-13);
  EXPECT_LE(errors.absolute, 1.2e-16);
  EXPECT_GT(errors.pairs_on_the_ramp, 500);
}

// Policies that change pairs one by one keep the step of their theta: ggml's recurrence runs before the changes.
TEST_F(Accuracy, StepRatioOfPoliciesOfOneTheta) {
  const std::size_t d = 20;
  const double theta = 500000.0;
  const long double step = power(theta, -2.0L / 20);
  const std::vector<double> list(d / 2, 3.0);
  EXPECT_LE(ulps(make_spectrum(d, theta, rotary::none{}).step_ratio(), step), 1.1);
  EXPECT_LE(ulps(make_spectrum(d, theta, rotary::linear{8.0}).step_ratio(), step), 1.1);
  EXPECT_LE(ulps(make_spectrum(d, theta, rotary::dynamic_linear{8.0, 64}, 4096).step_ratio(), step), 1.1);
  EXPECT_LE(ulps(make_spectrum(d, theta, rotary::ntk_mixed{8.0, 0.5}).step_ratio(), step), 1.1);
  EXPECT_LE(ulps(make_spectrum(d, theta, rotary::yarn{4.0, 32768}).step_ratio(), step), 1.1);
  EXPECT_LE(ulps(make_spectrum(d, theta, rotary::llama3{8.0, 1.0, 4.0, 8192}).step_ratio(), step), 1.1);
  EXPECT_LE(ulps(make_spectrum(d, theta, rotary::longrope{4.0, 4096, {}, list}, 5000).step_ratio(), step), 1.1);
  EXPECT_LE(ulps(make_spectrum(d, theta, rotary::proportional{0.5, 2.0}).step_ratio(), step), 1.1);
  EXPECT_LE(ulps(make_spectrum(d, theta, rotary::frequency_factors{list}).step_ratio(), step), 1.1);
  EXPECT_LE(ulps(make_spectrum(d, theta, rotary::xpos{rotary::xpos_role::key}).step_ratio(), step), 1.1);
  EXPECT_EQ(make_spectrum(0, theta).step_ratio(), 0.0);
  EXPECT_EQ(spectrum(list).step_ratio(), 0.0);
}

// ---- public faults, named by their kind; the numbers are independent of the library

void expect_close(double got, double expected, double permitted = 4.0) {
  EXPECT_LE(ulps(got, expected), permitted) << got << " instead of " << expected;
}

TEST(SpectrumFaults, ExponentByIntegerDivision) {
  const spectrum s = make_spectrum(4, 10000.0);
  EXPECT_EQ(s.inv_freq()[0], 1.0);
  EXPECT_EQ(s.inv_freq()[1], 0.01);
}

TEST(SpectrumFaults, FrequenciesFromHeadDimInsteadOfRotaryDim) {
  const spectrum of_head_256 = make_spectrum(rotary::rotary_dim(256, 0.25), 1e7);
  ASSERT_EQ(of_head_256.rotary_dim(), 64u);
  expect_close(of_head_256.inv_freq()[1], 0.60429639023813282);
  expect_close(of_head_256.inv_freq()[31], 1.6548170999431814e-7);
  const spectrum of_head_80 = make_spectrum(rotary::rotary_dim(80, 0.4), 10000.0);
  ASSERT_EQ(of_head_80.rotary_dim(), 32u);
  expect_close(of_head_80.inv_freq()[1], 0.56234132519034908);
}

TEST(SpectrumFaults, ProportionalRunAsContiguous) {
  const spectrum proportional = make_spectrum(8, 10000.0, rotary::proportional{0.5, 1.0});
  const double second = 0.1;  // 10000^(-2/8); a contiguous block of 4 channels would have 0.01
  ASSERT_EQ(proportional.pairs(), 4u);
  EXPECT_EQ(proportional.inv_freq()[0], 1.0);
  expect_close(proportional.inv_freq()[1], second, 1.0);
  EXPECT_EQ(proportional.inv_freq()[2], 0.0);
  EXPECT_EQ(proportional.inv_freq()[3], 0.0);
  // Split-half over the whole head, pairs (1, 5) and (2, 6) of x = 1 .. 8 at position 1.
  EXPECT_NEAR(1 * std::cos(proportional.inv_freq()[0]) - 5 * std::sin(proportional.inv_freq()[0]), -3.66705261817,
              1e-11);
  EXPECT_NEAR(6 * std::cos(proportional.inv_freq()[1]) + 2 * std::sin(proportional.inv_freq()[1]), 6.16969182496,
              1e-11);
  const spectrum contiguous = make_spectrum(4, 10000.0);
  EXPECT_NEAR(2 * std::cos(contiguous.inv_freq()[1]) - 4 * std::sin(contiguous.inv_freq()[1]), 1.9599006675, 1e-10);
}

TEST(SpectrumFaults, DynamicNtkRememberingOrForgettingTheLength) {
  const rotary::dynamic_ntk policy{2.0, 2048};
  expect_close(policy.effective_theta(128, 10000.0, 2049), 10009.920711785856);
  expect_close(policy.effective_theta(128, 10000.0, 4096), 30527.736748806698);
  expect_close(policy.effective_theta(128, 10000.0, 4097), 30537.831925925995);
  for (const std::int64_t within : {0, 1, 2047, 2048}) EXPECT_EQ(policy.effective_theta(128, 10000.0, within), 10000.0);
  // A key at 2000 cached at length 2048 and read at 4096 is out of phase by these angles: nothing in between remembers.
  const spectrum before = make_spectrum(128, 10000.0, policy, 2048);
  const spectrum after = make_spectrum(128, 10000.0, policy, 4096);
  EXPECT_EQ(make_spectrum(128, 10000.0, policy, 2048).inv_freq(), before.inv_freq());
  EXPECT_EQ(before.inv_freq(), make_spectrum(128, 10000.0).inv_freq());
  EXPECT_NEAR(2000 * (before.inv_freq()[1] - after.inv_freq()[1]), 29.94, 0.005);
  EXPECT_NEAR(2000 * (before.inv_freq()[32] - after.inv_freq()[32]), 8.55, 0.005);
  EXPECT_NEAR(2000 * (before.inv_freq()[48] - after.inv_freq()[48]), 1.13, 0.005);
}

TEST(SpectrumFaults, DynamicComputedOnceForTheLongestLength) {
  const rotary::dynamic_ntk policy{4.0, 2048};
  expect_close(policy.effective_theta(128, 10000.0, 4 * 2048), 135401.97304176549);
  EXPECT_EQ(policy.effective_theta(128, 10000.0, 100), 10000.0);
}

TEST(SpectrumFaults, ConfiguredFactorUnusedOrInverted) {
  EXPECT_NEAR(std::cos(100 * make_spectrum(64, 10000.0).inv_freq()[0]), 0.8623188722876839, 1e-15);
  EXPECT_NEAR(std::cos(100 * make_spectrum(64, 10000.0, rotary::linear{8.0}).inv_freq()[0]), 0.99779827917858066,
              1e-15);
  const double angle = 8191 * make_spectrum(64, 10000.0, rotary::linear{4.0}).inv_freq()[0];
  EXPECT_EQ(angle, 2047.75);
}

TEST(SpectrumFaults, YarnTruncatedAgainstTheModel) {
  rotary::yarn gpt_oss{32.0, 4096, 32.0, 1.0, false};
  const rotary::yarn::range range = gpt_oss.correction_range(64, 150000.0);
  EXPECT_NEAR(range.low, 8.092779115512401, 1e-14);
  EXPECT_NEAR(range.high, 17.398024501588556, 2e-14);
  const spectrum exact_ends = make_spectrum(64, 150000.0, gpt_oss);
  expect_close(exact_ends.inv_freq()[9], 0.031705696184663766, 8.0);
  expect_close(exact_ends.inv_freq()[12], 0.0067949594897322178, 8.0);
  expect_close(exact_ends.inv_freq()[17], 0.00012931870124506272, 8.0);
  gpt_oss.truncate = true;
  const spectrum truncated = make_spectrum(64, 150000.0, gpt_oss);
  expect_close(truncated.inv_freq()[9], 0.031620752275346488);
  expect_close(truncated.inv_freq()[12], 0.0070157139105043882);
  expect_close(truncated.inv_freq()[17], 0.00022794779579512526);
  EXPECT_EQ(truncated.inv_freq()[8], exact_ends.inv_freq()[8]);
  EXPECT_EQ(truncated.inv_freq()[18], exact_ends.inv_freq()[18]);
}

TEST(SpectrumFaults, YarnFactorInsideThePower) {
  const spectrum s = make_spectrum(64, 150000.0, rotary::yarn{32.0, 4096});
  expect_close(s.inv_freq()[18], 3.8308812373753383e-5);
  expect_close(s.inv_freq()[31], 3.0235114281192144e-7);
}

TEST(SpectrumFaults, FinalMultiplierTakenForACoefficient) {
  using rotary::yarn_magnitude;
  rotary::yarn policy{64.0, 4096};
  expect_close(make_spectrum(64, 10000.0, policy).magnitude(), 1.4158883083359672, 1.0);
  policy.magnitude = yarn_magnitude::exactly(1.0);
  EXPECT_EQ(make_spectrum(64, 10000.0, policy).magnitude(), 1.0);
  policy.magnitude = yarn_magnitude::exactly(1.4158883083359672);
  EXPECT_EQ(make_spectrum(64, 10000.0, policy).magnitude(), 1.4158883083359672);
  expect_close(yarn_magnitude::paper().value(128.0), 1.4852030263919617, 1.0);
  expect_close(yarn_magnitude::paper().value(32.0), 1.3465735902799727, 1.0);
}

TEST(SpectrumFaults, MultiplierMeantToCancelIsIgnored) {
  const double attn_factor = 0.8782488562869419;
  const double paper = rotary::yarn_magnitude::paper().value(4.0);
  expect_close(paper, 1.1386294361119891, 1.0);
  rotary::yarn policy{4.0, 32768};
  policy.magnitude = rotary::yarn_magnitude::exactly(attn_factor * paper);
  EXPECT_NEAR(make_spectrum(128, 1e6, policy).magnitude(), 1.0, 4e-16);
}

TEST(SpectrumFaults, MscaleRatioPaperAndSoftmaxScaleConfused) {
  using rotary::yarn_magnitude;
  EXPECT_EQ(yarn_magnitude::mscale_ratio(1.0, 1.0).value(16.0), 1.0);
  expect_close(yarn_magnitude::paper().value(16.0), 1.2772588722239781, 1.0);
  expect_close(yarn_magnitude::mscale_ratio(0.707, 1.0).value(40.0), 0.9210423553163399, 1.0);
  EXPECT_EQ(yarn_magnitude::one().value(40.0), 1.0);
  expect_close(rotary::softmax_scale_multiplier(40.0, 0.707), 1.5896261651208735, 2.0);
  expect_close(rotary::softmax_scale_multiplier(40.0, 1.0), 1.8738542070926266, 2.0);
  EXPECT_EQ(rotary::softmax_scale_multiplier(40.0, 0.0), 1.0);
  // The frequencies do not depend on the multiplier (NTK-by-parts is YaRN with multiplier 1).
  rotary::yarn policy{16.0, 16384};
  const spectrum paper = make_spectrum(128, 1e6, policy);
  policy.magnitude = yarn_magnitude::one();
  EXPECT_EQ(make_spectrum(128, 1e6, policy).inv_freq(), paper.inv_freq());
}

TEST(SpectrumFaults, ShiftAppliesTheMultiplierAgain) {
  const spectrum s = make_spectrum(64, 10000.0, rotary::yarn{64.0, 4096});
  const spectrum for_shifts(s.inv_freq());
  EXPECT_GT(s.magnitude(), 1.4);
  EXPECT_EQ(for_shifts.magnitude(), 1.0);
  EXPECT_EQ(for_shifts.inv_freq(), s.inv_freq());
}

TEST(SpectrumFaults, ExplicitFactorOverriddenByTheRatioOfLengths) {
  const spectrum s = make_spectrum(128, 1e6, rotary::yarn{4.0, 32768});
  const spectrum unscaled = make_spectrum(128, 1e6);
  expect_close(s.inv_freq()[63], unscaled.inv_freq()[63] / 4.0, 0.0);
}

TEST(SpectrumFaults, Llama3ScalingMissing) {
  const spectrum of_64 = make_spectrum(64, 5e5, rotary::llama3{32.0, 1.0, 4.0, 8192});
  const spectrum plain_64 = make_spectrum(64, 5e5);
  for (std::size_t j = 0; j <= 14; ++j) EXPECT_EQ(of_64.inv_freq()[j], plain_64.inv_freq()[j]);
  expect_close(of_64.inv_freq()[15], 0.0012905479282092638, 8.0);
  expect_close(of_64.inv_freq()[16], 0.0004295567965593682, 8.0);
  expect_close(of_64.inv_freq()[17], 9.7082878026276723e-5, 8.0);
  expect_close(of_64.inv_freq()[18], 1.9461638184831124e-5);
  expect_close(of_64.inv_freq()[31], 9.4183067254349098e-8);
  const spectrum of_128 = make_spectrum(128, 5e5, rotary::llama3{8.0, 1.0, 4.0, 8192});
  const spectrum plain_128 = make_spectrum(128, 5e5);
  for (std::size_t j = 0; j <= 28; ++j) EXPECT_EQ(of_128.inv_freq()[j], plain_128.inv_freq()[j]);
  expect_close(of_128.inv_freq()[29], 0.0021665707635033586, 8.0);
  expect_close(of_128.inv_freq()[34], 0.00017850781276799642, 8.0);
  expect_close(of_128.inv_freq()[35], 9.556212353964683e-5);
  expect_close(of_128.inv_freq()[63], 3.0689259889145111e-7);
}

TEST(SpectrumFaults, OneScalingForAllLayerTypes) {
  const spectrum global = make_spectrum(256, 1e6, rotary::linear{8.0});
  const spectrum local = make_spectrum(256, 1e4);
  EXPECT_EQ(100 * global.inv_freq()[0], 12.5);
  EXPECT_EQ(100 * local.inv_freq()[0], 100.0);
}

TEST(SpectrumFaults, RotaryDimDerivedWrongly) {
  EXPECT_EQ(rotary::rotary_dim(128, 0.5), 64u);
  EXPECT_EQ(rotary::rotary_dim(100, 0.29), 28u);  // 28.999999999999996, as transformers truncates it
  EXPECT_EQ(rotary::rotary_dim(80, 0.4), 32u);
  EXPECT_EQ(rotary::rotary_dim(192, 0.334), 64u);
}

// ---- policies of one's own, outside the library's namespace

}  // namespace

namespace research {

constexpr double pi = 3.14159265358979323846;

// As in docs/add-a-scaling-policy.md.
struct pixel {
  double max_freq = 10.0;

  rotary::spectrum operator()(std::size_t rotary_dim, double /*rope_theta*/) const {
    std::vector<double> inv_freq(rotary_dim / 2);
    const double step = inv_freq.size() < 2 ? 0.0 : (max_freq / 2 - 1) / static_cast<double>(inv_freq.size() - 1);
    for (std::size_t j = 0; j < inv_freq.size(); ++j) inv_freq[j] = pi * (1 + step * static_cast<double>(j));
    return rotary::spectrum(inv_freq);
  }
};

// Halves the frequencies of sequences above a length, and raises the magnitude.
struct halving {
  std::int64_t length;

  rotary::spectrum operator()(std::size_t rotary_dim, double rope_theta, std::int64_t seq_len) const {
    std::vector<double> inv_freq = rotary::inverse_frequencies(rotary_dim, rope_theta);
    if (seq_len > length) {
      for (double& w : inv_freq) w /= 2.0;
    }
    return rotary::spectrum(std::move(inv_freq), 1.25, rotary::step_ratio(rotary_dim, rope_theta));
  }
};

rotary::spectrum reversed(std::size_t rotary_dim, double rope_theta) {
  std::vector<double> inv_freq = rotary::inverse_frequencies(rotary_dim, rope_theta);
  for (double& w : inv_freq) w = -w;
  return rotary::spectrum(std::move(inv_freq));
}

}  // namespace research

namespace {

TEST(UserPolicy, Struct) {
  const spectrum s = make_spectrum(10, 10000.0, research::pixel{});
  const std::vector<double> expected{3.141592653589793, 6.283185307179586, 9.42477796076938, 12.566370614359172,
                                     15.707963267948966};
  EXPECT_LE(largest(errors_in_ulps(s, expected)), 2.0);
}

TEST(UserPolicy, DependsOnSequenceLength) {
  const spectrum within = make_spectrum(6, 1000.0, research::halving{512}, 512);
  const spectrum above = make_spectrum(6, 1000.0, research::halving{512}, 513);
  EXPECT_LE(largest(errors_in_ulps(within, {1.0, 0.1, 0.01})), 1.0);
  EXPECT_LE(largest(errors_in_ulps(above, {0.5, 0.05, 0.005})), 1.0);
  EXPECT_EQ(above.magnitude(), 1.25);
  expect_close(above.step_ratio(), 0.1, 1.0);
}

TEST(UserPolicy, FunctionAndLambda) {
  EXPECT_LE(largest(errors_in_ulps(make_spectrum(4, 10000.0, research::reversed), {-1.0, -0.01})), 1.0);
  const spectrum still = make_spectrum(
      6, 10000.0, [](std::size_t rotary_dim, double) { return spectrum(std::vector<double>(rotary_dim / 2, 0.0)); });
  EXPECT_EQ(still.inv_freq(), (std::vector<double>{0.0, 0.0, 0.0}));
}

// ---- the value itself

TEST(Spectrum, UserGivenFrequencies) {
  const spectrum s({1.0, -0.25, 0.0}, 1.5, 0.125);
  EXPECT_EQ(s.pairs(), 3u);
  EXPECT_EQ(s.rotary_dim(), 6u);
  EXPECT_EQ(s.inv_freq(), (std::vector<double>{1.0, -0.25, 0.0}));
  EXPECT_EQ(s.magnitude(), 1.5);
  EXPECT_EQ(s.step_ratio(), 0.125);
  EXPECT_TRUE(s.growth().empty());
  EXPECT_EQ(spectrum({1.0}).magnitude(), 1.0);
}

TEST(Spectrum, GrowthMakesACopy) {
  const spectrum s({1.0, 0.5}, 1.5, 0.5);
  const spectrum grown = s.with_growth({-0.5, 0.25}, 7.5);
  EXPECT_TRUE(s.growth().empty());
  EXPECT_EQ(grown.growth(), (std::vector<double>{-0.5, 0.25}));
  EXPECT_EQ(grown.growth_center(), 7.5);
  EXPECT_EQ(grown.inv_freq(), s.inv_freq());
  EXPECT_EQ(grown.magnitude(), 1.5);
  EXPECT_EQ(grown.step_ratio(), 0.5);
}

TEST(Spectrum, NoRotaryChannelsIsValid) {
  const spectrum s = make_spectrum(0, 10000.0);
  EXPECT_EQ(s.pairs(), 0u);
  EXPECT_EQ(s.rotary_dim(), 0u);
  EXPECT_EQ(make_spectrum(0, 10000.0, rotary::yarn{4.0, 4096}).pairs(), 0u);
  EXPECT_EQ(make_spectrum(0, 10000.0, rotary::ntk{8.0}).pairs(), 0u);
  EXPECT_EQ(make_spectrum(0, 10000.0, rotary::ntk_fixed{8.0}).pairs(), 0u);
  EXPECT_EQ(make_spectrum(0, 10000.0, rotary::ntk_mixed{8.0, 0.5}).pairs(), 0u);
  EXPECT_EQ(make_spectrum(0, 10000.0, rotary::xpos{rotary::xpos_role::query}).pairs(), 0u);
  EXPECT_EQ(make_spectrum(0, 10000.0, rotary::axial{}).pairs(), 0u);
  EXPECT_EQ(make_spectrum(0, 10000.0, rotary::longrope{2.0, 4096, {}, {}}, 5000).pairs(), 0u);
  EXPECT_EQ(rotary::rotary_dim(64, 0.0), 0u);
}

TEST(Spectrum, PartialFactorRoundsDownExceptJustBelowAnEvenNumber) {
  EXPECT_EQ(rotary::rotary_dim(100, 0.58), 58u);  // 57.99999999999999
  EXPECT_EQ(rotary::rotary_dim(64, 0.2499999999), 16u);
  EXPECT_EQ(rotary::rotary_dim(100, 0.2899), 28u);
  EXPECT_EQ(rotary::rotary_dim(100, 0.28 + 1e-12), 28u);
  EXPECT_EQ(rotary::rotary_dim(10, 0.28), 2u);
  EXPECT_EQ(rotary::rotary_dim(576, 1.0), 576u);
}

}  // namespace
