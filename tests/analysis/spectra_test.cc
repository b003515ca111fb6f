// Redshifts of lines, components of residuals and coadds of small frames with known truth.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "core/analysis/coadd.h"
#include "core/analysis/lines/emission_lines.h"
#include "core/analysis/lines/line_stack.h"
#include "core/analysis/residual_pca.h"
#include "tests/analysis/made_up_frame.h"

namespace spexd::testing {
namespace {

// Returns lines of sigma 60 km/s at a redshift.
std::vector<double> Emitter(double z, double flux) {
  std::vector<double> light(kFrameBins, 3);
  for (const auto& [wave, part] : {std::pair{4862.68, 1.0}, {4960.295, 0.5}, {5008.240, 1.5}}) {
    const double centre = wave * (1 + z), sigma = centre * 60 / 299792.458;
    for (int j = 0; j < kFrameBins; ++j) {
      const double x = (kFirstWave + j * kWaveStep - centre) / sigma;
      light[j] += flux * part * kWaveStep / (sigma * std::sqrt(2 * M_PI)) * std::exp(-0.5 * x * x);
    }
  }
  return light;
}

TEST(LineRedshifts, AreThoseOfTheLines) {
  Frame frame = DarkFrame(3, 4);
  std::mt19937 random(20261123);
  AddNoise(&random, &frame);
  AddLight(Emitter(0.26, 60), 0, &frame);
  AddLight(Emitter(0.25, 60), 1, &frame);
  const std::vector<LineRedshift> lines =
      FindLineRedshifts(MakeUsable(frame).value(), {0, 1, 2}, {.threads = 2}).value();
  EXPECT_NEAR(lines[0].z, 0.26, 1e-4);
  EXPECT_NEAR(lines[1].z, 0.25, 1e-4);
  EXPECT_GT(lines[0].gap, kSecureGap);
  EXPECT_EQ(lines[0].warning, 0);
  EXPECT_EQ(lines[1].warning, 0);
  EXPECT_LT(lines[2].gap, kAcceptedGap) << "there is nothing but noise";
  EXPECT_EQ(lines[2].warning & ~kLineAtLimit, kLineGapTooSmall);
}

TEST(LineRedshifts, HaveErrorsThatTheirScatterBearsOut) {
  constexpr int kGalaxies = 120;
  std::mt19937 random(20261128);
  std::uniform_real_distribution<double> redshift(0.245, 0.265);
  for (const double flux : {15.0, 60.0, 400.0}) {
    Frame frame = DarkFrame(kGalaxies, 1);
    AddNoise(&random, &frame);
    std::vector<double> truth, pulls;
    std::vector<int> rows;
    for (int i = 0; i < kGalaxies; ++i) {
      truth.push_back(redshift(random));
      rows.push_back(i);
      AddLight(Emitter(truth.back(), flux), i, &frame);
    }
    const auto lines = FindLineRedshifts(MakeUsable(frame).value(), rows, {.threads = 2}).value();
    for (int i = 0; i < kGalaxies; ++i) pulls.push_back(std::abs(lines[i].z - truth[i]) / lines[i].error);
    std::nth_element(pulls.begin(), pulls.begin() + kGalaxies / 2, pulls.end());
    EXPECT_NEAR(1.4826 * pulls[kGalaxies / 2], 1, 0.3) << flux;
  }
}

TEST(LineRedshifts, AreNotAcceptedWhereAnotherLineIsBright) {
  constexpr double kZ = 0.255;
  Frame frame = DarkFrame(4, 1);
  std::mt19937 random(20261128);
  AddNoise(&random, &frame);
  const auto add_line = [](double centre, double flux, std::vector<double>* light) {
    const double sigma = centre * 60 / 299792.458;
    for (int j = 0; j < kFrameBins; ++j) {
      const double x = (kFirstWave + j * kWaveStep - centre) / sigma;
      (*light)[j] += flux * kWaveStep / (sigma * std::sqrt(2 * M_PI)) * std::exp(-0.5 * x * x);
    }
  };
  for (int i = 0; i < 4; ++i) {
    std::vector<double> light = Emitter(kZ, 60);
    if (i == 1) add_line(6030, 40, &light);
    if (i == 2) add_line(6030, 8, &light);
    if (i == 3) add_line(4960.295 * (1 + kZ) + 15, 40, &light);
    AddLight(light, i, &frame);
  }
  const auto lines = FindLineRedshifts(MakeUsable(frame).value(), {0, 1, 2, 3}, {}).value();
  EXPECT_EQ(lines[0].warning, 0);
  EXPECT_EQ(lines[1].warning, kLineUnexplained);
  EXPECT_NEAR(lines[1].z, kZ, 1e-4) << "the redshift itself is right";
  EXPECT_EQ(lines[2].warning, 0) << "noise may look so";
  EXPECT_EQ(lines[3].warning, 0) << "wings of a line";
}

TEST(LineRedshifts, OfNitrogenOrSulphurWithoutHydrogenAreUnlikely) {
  const Frame frame = DarkFrame(1, 1);
  const StackPlan plan = PlanStack(frame.grid.Values(), {}).value();
  StackMaxima maxima;
  maxima.best = 1000;
  maxima.dchi2 = 100;
  constexpr uint32_t kHalpha = 1u << kHalphaGroup, kNitrogen = 1u << kNitrogenGroup,
                     kSulphur = 1u << kSulphurGroup;
  maxima.seen = kHalpha | kNitrogen | kSulphur;
  maxima.significant = kNitrogen | kSulphur;
  EXPECT_EQ(RedshiftOf(plan, maxima).warning, kLineUnlikely);
  EXPECT_EQ(RedshiftOf(plan, maxima).lines, 2);
  maxima.significant = kHalpha | kSulphur;
  EXPECT_EQ(RedshiftOf(plan, maxima).warning, 0);
  maxima.seen = maxima.significant = kNitrogen | kSulphur;
  EXPECT_EQ(RedshiftOf(plan, maxima).warning, 0) << "H alpha is out of range, or masked";
}

TEST(LineRedshifts, OfSpectraWithoutDataAreNoneAndOptionsAreChecked) {
  Frame frame = DarkFrame(1, 4);
  for (uint32_t& mask : frame.spectra.mask.flat()) mask = kMaskNoData;
  const UsableSpectra spectra = MakeUsable(frame).value();
  const LineRedshift line = FindLineRedshifts(spectra, {0}, {}).value()[0];
  EXPECT_EQ(line.dchi2, 0);
  EXPECT_EQ(line.gap, 0);
  EXPECT_EQ(line.warning, kLineNoData);
  EXPECT_TRUE(std::isnan(line.error));
  EXPECT_FALSE(FindLineRedshifts(spectra, {0}, {.step = 0}).ok());
  EXPECT_FALSE(FindLineRedshifts(spectra, {0}, {.step = 1e-9}).ok());
  EXPECT_FALSE(FindLineRedshifts(spectra, {0}, {.max_redshift = std::nan("")}).ok());
}

TEST(UsableSpectra, HaveNoDataWhereTheResolutionIsNotFinite) {
  Frame frame = DarkFrame(3, 4);
  EXPECT_EQ(MakeUsable(frame)->resolution, &frame.spectra.resolution);
  frame.spectra.resolution(1, 0, 0) = std::nanf("");  // outside of the matrix
  frame.spectra.resolution(1, 6, 20) = std::nanf("");
  frame.spectra.resolution(2, 5, 30) = HUGE_VALF;
  frame.spectra.mask(2, 30) = kMaskAllBadPix;
  const UsableSpectra spectra = MakeUsable(frame).value();
  for (int64_t i = 0; i < 3; ++i) {
    for (int64_t j = 0; j < spectra.bins(); ++j) {
      const bool lost = (i == 1 && j == 21) || (i == 2 && j == 30);
      EXPECT_EQ(spectra.ivar(i, j) > 0, !lost) << i << " " << j;
      EXPECT_EQ(spectra.mask(i, j), !lost ? 0 : i == 1 ? kMaskNoData : kMaskAllBadPix) << i << " " << j;
    }
  }
  for (const float value : spectra.resolution->flat()) ASSERT_TRUE(std::isfinite(value));
  EXPECT_EQ((*spectra.resolution)(1, 5, 20), frame.spectra.resolution(1, 5, 20));
}

TEST(ResidualPca, FindsTheComponentThatVaries) {
  constexpr int kBins = 40;
  std::mt19937 random(20261123);
  std::normal_distribution<double> normal;
  ResidualPca pca(kBins, {});
  EXPECT_EQ(pca.Solve(1).status().code(), absl::StatusCode::kFailedPrecondition);
  for (int f = 0; f < 50; ++f) {
    Array<double, 2> residuals({8, kBins}), ivar({8, kBins}, 1);
    for (int i = 0; i < 8; ++i) {
      const double amount = 2 * normal(random);
      for (int j = 0; j < kBins; ++j) residuals(i, j) = amount * std::sin(0.3 * j) + 0.3 * normal(random);
    }
    for (int j = 0; j < kBins; ++j) ivar(7, j) = j < 10 ? 0 : 1;
    EXPECT_EQ(pca.Add(residuals, ivar).value(), 7) << "one has too few data";
  }
  const PrincipalComponents components = pca.Solve(3).value();
  double dot = 0, norm = 0;
  for (int j = 0; j < kBins; ++j) {
    dot += components.vectors(0, j) * std::sin(0.3 * j);
    norm += std::sin(0.3 * j) * std::sin(0.3 * j);
  }
  EXPECT_NEAR(std::abs(dot) / std::sqrt(norm), 1, 1e-3);
  EXPECT_GT(components.values[0], 100 * components.values[1]);
  EXPECT_FALSE(pca.Solve(0).ok());
  EXPECT_FALSE(pca.Solve(kBins + 1).ok());
  EXPECT_FALSE(pca.Add(Array<double, 2>({2, 3}), Array<double, 2>({2, 3})).ok());
}

TEST(LargestNoiseVariance, IsTheEdgeOfTheSpectrumAndItsScatter) {
  // Johnstone (2001) for 57 degrees of freedom: 3 frames of 20 spectra, less one for each frame's sky.
  const double n = 57, bins = 300, roots = std::sqrt(n) + std::sqrt(bins);
  const double centre = roots * roots / n,
               scale = roots / n * std::cbrt(1 / std::sqrt(n) + 1 / std::sqrt(bins));
  EXPECT_NEAR(LargestNoiseVariance(300, {20, 20, 20}, 1), centre + 4.4 * scale, 1e-9 * centre);
  EXPECT_EQ(LargestNoiseVariance(300, {20, 1, 20, 0, 20}, 1), LargestNoiseVariance(300, {20, 20, 1, 20}, 1));
  EXPECT_GT(LargestNoiseVariance(300, {20, 20, 20}, 0.5), LargestNoiseVariance(300, {20, 20, 20}, 1));
  EXPECT_TRUE(std::isinf(LargestNoiseVariance(300, {1, 1}, 1)));
}

TEST(LargestNoiseVariance, IsBeyondThatOfNoiseWithoutItsMean) {
  constexpr int kBins = 60;
  std::mt19937 random(20261128);
  std::normal_distribution<double> normal;
  for (const std::vector<int64_t>& frames :
       std::vector<std::vector<int64_t>>{{5}, {25}, {3, 12, 6}, {8, 8, 8, 8, 8}}) {
    for (const double forget : {1.0, 0.7}) {
      ResidualPca pca(kBins, {.forget = forget});
      for (const int64_t n : frames) {
        Array<double, 2> residuals({n, kBins}), ivar({n, kBins}, 1 - 1 / static_cast<double>(n));
        for (double& value : residuals.flat()) value = normal(random);
        for (int j = 0; j < kBins; ++j) {
          double mean = 0;
          for (int64_t i = 0; i < n; ++i) mean += residuals(i, j) / static_cast<double>(n);
          for (int64_t i = 0; i < n; ++i) residuals(i, j) -= mean;
        }
        for (double& value : ivar.flat()) value = 1 / value;
        ASSERT_TRUE(pca.Add(residuals, ivar).ok());
      }
      const double limit = LargestNoiseVariance(kBins, frames, forget),
                   found = pca.Solve(1).value().values[0];
      EXPECT_LT(found, limit);
      EXPECT_GT(found, 0.4 * limit);
    }
  }
}

TEST(CoaddExposures, WeighsByIvarAndMasksWhatAllMask) {
  Frame frame = DarkFrame(2, 1);
  Spectra& from = frame.spectra;
  for (int j = 0; j < kFrameBins; ++j) {
    from.flux(0, j) = 10;
    from.flux(1, j) = 20;
    from.ivar(1, j) = 3;
  }
  from.mask(0, 50) = 4;                        // one of the two has data
  from.mask(0, 60) = 4, from.mask(1, 60) = 8;  // neither has data
  from.flux(1, 70) = std::nanf("");
  from.flux(0, 80) = from.flux(1, 80) = std::nanf("");
  from.ivar(0, 90) = from.ivar(1, 90) = 0;
  Spectra sum = DarkFrame(1, 1).spectra;
  CoaddExposures({{&from, 0}, {&from, 1}}, 0, &sum);
  EXPECT_FLOAT_EQ(sum.flux(0, 10), 17.5);
  EXPECT_FLOAT_EQ(sum.ivar(0, 10), 4);
  EXPECT_FLOAT_EQ(sum.flux(0, 50), 20);
  EXPECT_EQ(sum.mask(0, 50), 0u);
  EXPECT_FLOAT_EQ(sum.flux(0, 60), 17.5);
  EXPECT_EQ(sum.mask(0, 60), 12u);
  EXPECT_FLOAT_EQ(sum.flux(0, 70), 10);
  for (const int bin : {80, 90}) {
    EXPECT_EQ(sum.flux(0, bin), 0);
    EXPECT_EQ(sum.ivar(0, bin), 0);
    EXPECT_EQ(sum.mask(0, bin), kMaskNoData);
  }
  const float expected = (from.resolution(0, 6, 20) + 3 * from.resolution(1, 6, 20)) / 4;
  EXPECT_FLOAT_EQ(sum.resolution(0, 6, 20), expected);
  EXPECT_FLOAT_EQ(sum.resolution(0, 6, 69), from.resolution(0, 6, 69)) << "row 70 is the first's alone";
}

}  // namespace
}  // namespace spexd::testing
