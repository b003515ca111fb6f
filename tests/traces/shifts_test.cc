// Series of shifts, their fits, moved PSFs and references.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "core/model/psf_traces/move_psf.h"
#include "core/simulate/simulator.h"
#include "core/traces/shifts/reference.h"
#include "core/traces/shifts/series.h"
#include "core/traces/shifts/small_cholesky.h"
#include "tests/traces/shifted_frame.h"

namespace spexd::testing {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

const ShiftSeries& Gradient() {
  static const ShiftSeries series = MakeSeries({{0.3, 0.05, -0.01}, {-0.1, 0.02, 0.01}, {0.02, 0, 0}});
  return series;
}

TEST(MovedPsf, HasTheTracesOfTheStaleOnePlusTheSeries) {
  const Psf psf = SimulatePsf({.fibres = 30, .rows = 300, .seed = 3}).value();
  const ShiftSeries y = MakeSeries({{-1, 0.2}, {0.5, 0.1}});
  const Psf moved = MovePsf(psf, Gradient(), y);
  const std::vector<double> positions = FibrePositions(psf);
  for (int i = 0; i < psf.fibres; ++i) {
    for (const double t : {-1.0, -0.4, 0.0, 0.7, 1.0}) {
      const double wave =
          psf.traces.x.wave_min + 0.5 * (t + 1) * (psf.traces.x.wave_max - psf.traces.x.wave_min);
      EXPECT_NEAR(Evaluate(moved.traces.x, i, wave),
                  Evaluate(psf.traces.x, i, wave) + EvaluateShift(Gradient(), positions[i], t), 1e-10);
      EXPECT_NEAR(Evaluate(moved.traces.y, i, wave),
                  Evaluate(psf.traces.y, i, wave) + EvaluateShift(y, positions[i], t), 1e-10);
    }
  }
  EXPECT_EQ(moved.content_hash, "");
  EXPECT_EQ(GaussHermite(moved).core().sigma_x.coeff, GaussHermite(psf).core().sigma_x.coeff);
}

TEST(MovedPsf, GetsCoefficientsWhereItsTracesHadFewer) {
  Psf psf = SimulatePsf({.fibres = 2, .rows = 300, .seed = 3}).value();
  psf.traces.x.coeff = Array<double, 2>({2, 1}, 40);
  const Psf moved = MovePsf(psf, Gradient(), ShiftSeries());
  EXPECT_EQ(moved.traces.x.coeff.shape(1), 3);
  EXPECT_EQ(moved.traces.y.coeff, psf.traces.y.coeff);
}

// Returns measurements of a series with noise of this size.
ShiftMeasurements MeasureNoisy(const ShiftSeries& series, double noise, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal(0, noise);
  std::uniform_real_distribution<double> uniform(-1, 1);
  ShiftMeasurements measured;
  measured.Resize(2000);
  for (size_t k = 0; k < measured.size(); ++k) {
    measured.u[k] = uniform(random);
    measured.t[k] = uniform(random);
    measured.value[k] = EvaluateShift(series, measured.u[k], measured.t[k]) + normal(random);
    measured.info[k] = 1 / (0.05 * 0.05);
  }
  return measured;
}

TEST(SeriesFit, RecoversASeriesWithinItsErrors) {
  const SeriesFit fit = FitSeries(MeasureNoisy(Gradient(), 0.05, 1), {2, 2}, ShiftSeries(), SeriesTerms::kAll,
                                  TraceShiftOptions());
  for (int a = 0; a <= 2; ++a) {
    for (int b = 0; b <= 2; ++b) {
      const double error = std::sqrt(fit.covariance(3 * a + b, 3 * a + b));
      EXPECT_LT(error, 0.006);
      EXPECT_NEAR(fit.step(a, b), Gradient()(a, b), 4 * error) << a << " " << b;
    }
  }
  EXPECT_LT(fit.floor, 0.02);
  EXPECT_NEAR(fit.chi2, 1, 0.15);
  EXPECT_GT(fit.corner_error, fit.best_error);
}

TEST(SeriesFit, LeavesOutliersOut) {
  ShiftMeasurements measured = MeasureNoisy(Gradient(), 0.05, 2);
  for (size_t k = 0; k < measured.size(); k += 10) measured.value[k] += 5;
  const SeriesFit fit = FitSeries(measured, {2, 2}, ShiftSeries(), SeriesTerms::kAll, TraceShiftOptions());
  EXPECT_GE(fit.clipped, 200);
  EXPECT_LT(fit.clipped, 210);
  EXPECT_NEAR(fit.step(0, 0), Gradient()(0, 0), 0.01);
}

TEST(SeriesFit, FindsScatterBeyondNoise) {
  const SeriesFit fit = FitSeries(MeasureNoisy(Gradient(), 0.13, 3), {2, 2}, ShiftSeries(), SeriesTerms::kAll,
                                  TraceShiftOptions());
  EXPECT_NEAR(fit.floor, 0.12, 0.01);  // 0.13^2 = 0.05^2 + 0.12^2
}

TEST(SeriesFit, StepsFromTheSeriesSoFarTowardsThePrior) {
  ShiftMeasurements none;
  const ShiftSeries current = MakeSeries({{0.5, 0.1}});
  const SeriesFit fit = FitSeries(none, {0, 1}, current, SeriesTerms::kAll, TraceShiftOptions());
  EXPECT_NEAR(fit.step(0, 0), -0.5, 1e-12);
  EXPECT_NEAR(fit.step(0, 1), -0.1, 1e-12);
  EXPECT_NEAR(fit.covariance(0, 0), 9, 1e-9);
  EXPECT_EQ(fit.used, 0);
}

TEST(SeriesFit, BetweenFibresHasNoTermCommonToThem) {
  const SeriesFit fit = FitSeries(MeasureNoisy(Gradient(), 0.05, 4), {2, 1}, ShiftSeries(),
                                  SeriesTerms::kBetweenFibres, TraceShiftOptions());
  EXPECT_EQ(fit.step(0, 0), 0);
  EXPECT_EQ(fit.step(0, 1), 0);
  EXPECT_NE(fit.step(1, 0), 0);
}

TEST(SmallCholesky, InvertsAPositiveMatrix) {
  const std::vector<double> matrix = {4, 1, 0.5, 1, 3, -1, 0.5, -1, 2};
  const std::vector<double> inverse = InverseOfPositive(matrix, 3);
  for (int a = 0; a < 3; ++a) {
    for (int b = 0; b < 3; ++b) {
      double product = 0;
      for (int k = 0; k < 3; ++k) product += matrix[3 * a + k] * inverse[3 * k + b];
      EXPECT_NEAR(product, a == b ? 1 : 0, 1e-14);
    }
  }
}

TEST(ReferenceSpectrum, IsReadFromTwoColumns) {
  const auto spectrum = ParseReferenceSpectrum("sky.dat", "# wave flux\n5000 0\n\n5000.1\t2.5 7\n 5e3,1\n");
  EXPECT_FALSE(spectrum.ok()) << "the last line goes back";
  const auto good = ParseReferenceSpectrum("sky.dat", "# wave flux\n5000 0\n\n5000.1\t2.5 7  # seen\n");
  ASSERT_TRUE(good.ok()) << good.status();
  EXPECT_THAT(good->wave, ElementsAre(5000, 5000.1));
  EXPECT_THAT(good->flux, ElementsAre(0, 2.5));
}

TEST(ReferenceSpectrum, HasNoLightWhereAMeasuredFluxIsNegative) {
  const auto spectrum = ParseReferenceSpectrum("lamps.dat", "5270.4 0.2\n5270.5 -0.053\n");
  ASSERT_TRUE(spectrum.ok()) << spectrum.status();
  EXPECT_THAT(spectrum->flux, ElementsAre(0.2, 0));
}

TEST(ReferenceSpectrum, NamesTheLineThatIsWrong) {
  const auto message = [](const char* text) {
    return std::string(ParseReferenceSpectrum("sky.dat", text).status().message());
  };
  EXPECT_THAT(message("5000 1\n5001 x\n"),
              HasSubstr("sky.dat, line 2 (\"5001 x\"): must begin with two finite"));
  EXPECT_THAT(message("5000 1\n5001 nan\n"), HasSubstr("line 2"));
  EXPECT_THAT(message("5000\n"), HasSubstr("line 1"));
  EXPECT_THAT(message("5000 1\n5000 1\n"), HasSubstr("must increase"));
  EXPECT_THAT(message("5000 1\n"), HasSubstr("at least 2"));
}

TEST(ReferenceLight, KeepsSumAndCentroidOfALine) {
  ReferenceSpectrum spectrum;
  for (int k = 0; k < 2000; ++k) {
    spectrum.wave.push_back(6000 + 0.05 * k);
    spectrum.flux.push_back(std::exp(-0.5 * std::pow((spectrum.wave.back() - 6033.37) / 0.3, 2)));
  }
  const ReferenceLight light(spectrum, 6010, 6080);
  double sum = 0, moment = 0;
  for (size_t k = 0; k < light.wave().size(); ++k) {
    sum += light.light()[k];
    moment += light.light()[k] * light.wave()[k];
  }
  EXPECT_NEAR(sum, 0.3 * std::sqrt(2 * M_PI), 1e-6);
  EXPECT_NEAR(moment / sum, 6033.37, 1e-6);
  EXPECT_THAT(light.Lines(6010, 6080, TraceShiftOptions()), ElementsAre(DoubleNear(6033.37, 0.11)));
}

TEST(ReferenceLight, HasItsStrongestLinesAWindowApart) {
  ReferenceSpectrum spectrum;
  for (int k = 0; k < 1000; ++k) {
    spectrum.wave.push_back(6000 + 0.1 * k);
    spectrum.flux.push_back(k == 200 ? 5 : k == 240 ? 9 : k == 600 ? 7 : 0);  // 6020, 6024, 6060
  }
  const ReferenceLight light(spectrum, 6000, 6100);
  EXPECT_THAT(light.Lines(6001, 6099, TraceShiftOptions()),
              ElementsAre(DoubleNear(6024, 0.11), DoubleNear(6060, 0.11)));
  TraceShiftOptions one;
  one.max_lines = 1;
  EXPECT_EQ(light.Lines(6001, 6099, one).size(), 1u);
}

TEST(RunningMedian, ContinuesTheEnds) {
  EXPECT_THAT(RunningMedian(std::vector<double>{5, 1, 4, 2, 9, 3}, 3), ElementsAre(5, 4, 2, 4, 3, 3));
  EXPECT_THAT(RunningMedian(std::vector<double>{7}, 41), ElementsAre(7));
  EXPECT_TRUE(RunningMedian({}, 41).empty());
}

}  // namespace
}  // namespace spexd::testing
