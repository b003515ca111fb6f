#include "tests/cuda_products/sky_and_lines.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <random>

#include "tests/analysis/made_up_frame.h"

namespace spexd::testing {
namespace {

double LargestRelative(const Array<double, 2>& a, const Array<double, 2>& b) {
  double most = 0;
  for (int64_t k = 0; k < a.size(); ++k) {
    if (a.flat()[k] != b.flat()[k]) most = std::max(most, std::abs(a.flat()[k] / b.flat()[k] - 1));
  }
  return most;
}

}  // namespace

Frame MakeScene(int fibres, uint32_t seed) {
  std::mt19937 random(seed);
  Frame frame = DarkFrame(fibres, 25);
  for (int i = 0; i < fibres; ++i) {
    std::vector<double> light = SkyLight();
    for (size_t j = 0; j < light.size(); ++j) {
      const double wave = kFirstWave + static_cast<double>(j) * kWaveStep;
      light[j] *= 1 + 0.01 * std::sin(1.0 + i);
      for (const double line : {4862.68, 4960.295, 5008.240}) {
        const double x = (wave - line * (1.24 + 0.0003 * (i % 97))) / 1.3;
        if (i % 3 == 1) light[j] += 4 * (10 + i % 20) * std::exp(-0.5 * x * x);
      }
    }
    AddLight(light, i, &frame);
  }
  AddNoise(&random, &frame);
  for (int j = 100; j < 104; ++j) {
    for (int i = 0; i < fibres; ++i) frame.spectra.mask(i, j) = kMaskNoData;
  }
  frame.spectra.flux(2, 30) = NAN;
  for (int j = 0; j < kFrameBins; ++j) frame.spectra.ivar(5, j) = 0;
  return frame;
}

SkyAndLines MakeSkyAndLines(FrameAnalysis* analysis, const std::vector<int>& sky_fibres,
                            const std::vector<int>& targets) {
  SkyAndLines products;
  products.sky = analysis->FitSky(sky_fibres, {}).value();
  products.lines = analysis->FindLineRedshifts(targets, {}).value();
  return products;
}

double Largest(const Array<double, 2>& a, const Array<double, 2>& b, const Array<double, 2>& ivar) {
  double most = 0;
  for (int64_t k = 0; k < a.size(); ++k)
    most = std::max(most, std::abs(a.flat()[k] - b.flat()[k]) * std::sqrt(ivar.flat()[k]));
  return most;
}
void ExpectSameSky(const Sky& found, const Sky& expected) {
  EXPECT_EQ(found.rounds, expected.rounds);
  EXPECT_EQ(found.rejected, expected.rejected);
  EXPECT_EQ(found.sky_fibres, expected.sky_fibres);
  EXPECT_TRUE(found.mask == expected.mask);
  const double model = Largest(found.model, expected.model, expected.statistical_ivar),
               flux = Largest(found.flux, expected.flux, expected.ivar),
               statistical = LargestRelative(found.statistical_ivar, expected.statistical_ivar),
               variance = LargestRelative(found.model_variance, expected.model_variance),
               ivar = LargestRelative(found.ivar, expected.ivar);
  std::printf("  sky: model %.1e, flux %.1e, STATIVAR %.1e, variance %.1e, ivar %.1e\n", model, flux,
              statistical, variance, ivar);
  EXPECT_LT(model, 1e-3);
  EXPECT_LT(flux, 1e-3);
  EXPECT_LT(statistical, 1e-4);
  EXPECT_LT(variance, 1e-4);
  EXPECT_LT(ivar, 1e-4);
  ASSERT_EQ(found.throughput.size(), expected.throughput.size());
  for (size_t i = 0; i < found.throughput.size(); ++i)
    EXPECT_NEAR(found.throughput[i], expected.throughput[i], 1e-5) << i;
}

void ExpectSameLines(const std::vector<LineRedshift>& found, const std::vector<LineRedshift>& expected,
                     double relative, double absolute) {
  ASSERT_EQ(found.size(), expected.size());
  double most = 0, max_z = 0;
  for (size_t k = 0; k < found.size(); ++k) {
    const double limit = relative * expected[k].dchi2 + absolute;
    EXPECT_NEAR(found[k].dchi2, expected[k].dchi2, limit) << k;
    EXPECT_NEAR(found[k].gap, expected[k].gap, limit) << k;
    most = std::max(most, std::abs(found[k].dchi2 - expected[k].dchi2));
    if (std::abs(expected[k].gap - kAcceptedGap) > 1 && std::abs(expected[k].gap - kAcceptedGapAlone) > 1) {
      EXPECT_EQ(found[k].warning & ~kLineUnexplained, expected[k].warning & ~kLineUnexplained) << k;
    }
    if (expected[k].gap <= 1) continue;
    EXPECT_NEAR(found[k].error, expected[k].error, 0.01 * expected[k].error) << k;
    EXPECT_NEAR(found[k].z, expected[k].z, 1e-6) << k;
    max_z = std::max(max_z, std::abs(found[k].z - expected[k].z));
  }
  std::printf("  lines: dchi2 %.1e, z %.1e\n", most, max_z);
}

std::vector<int> Rows(int first, int end) {
  std::vector<int> rows(end - first);
  std::iota(rows.begin(), rows.end(), first);
  return rows;
}

void ExpectThoseOfProcessors(FrameAnalysis* there, const UsableSpectra& spectra, int sky_fibres) {
  FrameAnalysis here(spectra);
  const std::vector<int> sky = Rows(0, sky_fibres),
                         targets = Rows(sky_fibres, static_cast<int>(spectra.fibres()));
  const SkyAndLines expected = MakeSkyAndLines(&here, sky, targets),
                    found = MakeSkyAndLines(there, sky, targets);
  ExpectSameSky(found.sky, expected.sky);
  ExpectSameLines(found.lines, expected.lines, 3e-3, 0.05);
  // The same from the processors' spectra, whose sky is equal to the last bit.
  ASSERT_TRUE(there->TakeSky(expected.sky).ok());
  ExpectSameLines(there->FindLineRedshifts(targets, {}).value(), expected.lines, 1e-4, 0.01);
}

}  // namespace spexd::testing
