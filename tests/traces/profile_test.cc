// Compares profiles across and along traces with the spot formula in double precision.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/model/spots/gauss_hermite_formula.h"
#include "core/simulate/simulator.h"
#include "core/traces/light/dispersion.h"
#include "core/traces/light/row_dispersion.h"
#include "core/traces/rows/profile_formula.h"
#include "core/traces/rows/shape_table.h"
#include "core/traces/rows/trace_rows.h"

namespace spexd::traces {
namespace {

TEST(Profile, IsTheIntegralOfTheSpotFormula) {
  constexpr int kHalf = 8, kPixels = 2 * kHalf + 1, kDegree = 6;
  const float coeff[kDegree + 1] = {1, 0.02f, 0.05f, -0.01f, 0.02f, 0.003f, -0.002f};
  for (const double sigma : {0.8, 1.1, 2.5}) {
    for (const double centre : {-0.5, -0.13, 0.0, 0.4}) {
      std::vector<double> integrals((kDegree + 1) * kPixels);
      PixelIntegrals(kDegree, CentredAxis(kHalf), centre, sigma, integrals.data(), kPixels);
      for (int k = 0; k < kPixels; ++k) {
        double expected = 0;
        for (int a = 0; a <= kDegree; ++a) expected += coeff[a] * integrals[a * kPixels + k];
        const double low = (k - kHalf - 0.5 - centre) / sigma, high = low + 1 / sigma;
        const float integral = ProfileAt<kDegree>(static_cast<float>(high), coeff, 1).integral -
                               ProfileAt<kDegree>(static_cast<float>(low), coeff, 1).integral;
        EXPECT_NEAR(integral, expected, 1e-6);
      }
    }
  }
}

TEST(Profile, IsTheDerivativeOfItsIntegral) {
  const float coeff[4] = {1, 0.1f, -0.05f, 0.03f};
  for (float u = -4; u < 4; u += 0.37f) {
    const float step = 0.02f;
    const float rise = ProfileAt<3>(u + step, coeff, 1).integral - ProfileAt<3>(u - step, coeff, 1).integral;
    EXPECT_NEAR(ProfileAt<3>(u, coeff, 1).density, rise / (2 * step), 2e-4);
  }
}

TEST(ExpOfNegative, IsExp) {
  for (float x = 0; x > -80; x -= 0.173f) {
    const double ratio = ExpOfNegative(x) / std::exp(static_cast<double>(x));
    EXPECT_NEAR(ratio, 1, 5e-7 - 8e-8 * x) << x;
  }
  EXPECT_LT(ExpOfNegative(-1e30f), 1e-37f);
}

TEST(TraceRows, InvertTheTrace) {
  const Psf psf = SimulatePsf({.fibres = 30, .rows = 1000, .seed = 8}).value();
  const TraceRows rows = TraceRows::Make(psf, {.threads = 2}).value();
  for (int fibre = 0; fibre < psf.fibres; ++fibre) {
    EXPECT_NEAR(rows.first_row(fibre), Evaluate(psf.traces.y, fibre, psf.traces.y.wave_min), 1);
    EXPECT_NEAR(rows.end_row(fibre), Evaluate(psf.traces.y, fibre, psf.traces.y.wave_max), 1);
    for (int row = rows.first_row(fibre); row < rows.end_row(fibre); row += 7) {
      const TracePosition position = rows.At(fibre, row);
      const double wave =
          psf.traces.y.wave_min + 0.5 * (position.t + 1) * (psf.traces.y.wave_max - psf.traces.y.wave_min);
      EXPECT_NEAR(Evaluate(psf.traces.y, fibre, wave), row, 1e-5);
      EXPECT_NEAR(Evaluate(psf.traces.x, fibre, wave), position.x, 1e-5);
    }
  }
}

TEST(Dispersion, KeepsTheLightAndIsTheSameByRow) {
  const Psf psf = SimulatePsf({.fibres = 3, .rows = 300, .seed = 9}).value();
  const ShapeTable shapes = ShapeTable::Make(psf, {}).value();
  std::vector<double> wave;
  for (double at = psf.traces.x.wave_min; at < psf.traces.x.wave_max; at += 0.8) wave.push_back(at);
  Dispersion dispersion;
  Disperse(psf, shapes, 1, wave, &dispersion);
  std::vector<float> spectrum(wave.size() + kMaxRowBins);
  std::vector<double> expected(300), expected_slope(300);
  for (size_t j = 0; j < wave.size(); ++j) {
    spectrum[j] = static_cast<float>(1 + j % 7);
    double sum = 0;
    for (int k = 0; k < dispersion.width(); ++k) {
      sum += dispersion.value(j, k);
      const int row = dispersion.first_row[j] + k;
      if (row < 0 || row >= 300) continue;
      expected[row] += spectrum[j] * dispersion.value(j, k);
      expected_slope[row] += spectrum[j] * dispersion.slope(j, k);
    }
    EXPECT_NEAR(sum, 1, 0.002);
  }
  std::vector<float> light(300), slope(300);
  DisperseSpectrum(ByRow(dispersion, 300), spectrum, light.data(), slope.data());
  for (int row = 0; row < 300; ++row) {
    EXPECT_NEAR(light[row], expected[row], 1e-4);
    EXPECT_NEAR(slope[row], expected_slope[row], 1e-4);
  }
}

}  // namespace
}  // namespace spexd::traces
