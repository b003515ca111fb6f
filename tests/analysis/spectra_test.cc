// Redshifts of lines, components of residuals and coadds of small frames whose truth is known.
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "core/analysis/coadd.h"
#include "core/analysis/lines/emission_lines.h"
#include "core/analysis/residual_pca.h"
#include "tests/analysis/made_up_frame.h"

namespace spexd::testing {
namespace {

// Lines of sigma 60 km/s at a redshift.
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
  EXPECT_LT(lines[2].gap, kAcceptedGap) << "there is nothing but noise";
}

TEST(LineRedshifts, OfSpectraWithoutDataAreNoneAndOptionsAreChecked) {
  Frame frame = DarkFrame(1, 4);
  for (uint32_t& mask : frame.spectra.mask.flat()) mask = kMaskNoData;
  const UsableSpectra spectra = MakeUsable(frame).value();
  const LineRedshift line = FindLineRedshifts(spectra, {0}, {}).value()[0];
  EXPECT_EQ(line.dchi2, 0);
  EXPECT_EQ(line.gap, 0);
  EXPECT_FALSE(FindLineRedshifts(spectra, {0}, {.step = 0}).ok());
  EXPECT_FALSE(FindLineRedshifts(spectra, {0}, {.step = 1e-9}).ok());
  EXPECT_FALSE(FindLineRedshifts(spectra, {0}, {.most_redshift = std::nan("")}).ok());
}

TEST(UsableSpectra, HaveNoDataWhereTheResolutionIsNotFinite) {
  Frame frame = DarkFrame(3, 4);
  frame.spectra.resolution(1, 0, 0) = std::nanf("");  // outside of the matrix
  EXPECT_TRUE(MakeUsable(frame).ok());
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

TEST(CoaddExposures, WeighsByIvarAndMasksWhatAllMask) {
  Frame frame = DarkFrame(2, 1);
  Spectra& from = frame.spectra;
  for (int j = 0; j < kFrameBins; ++j) {
    from.flux(0, j) = 10;
    from.flux(1, j) = 20;
    from.ivar(1, j) = 3;
  }
  from.mask(0, 50) = 4;                        // one has data
  from.mask(0, 60) = 4, from.mask(1, 60) = 8;  // none has
  from.flux(1, 70) = std::nanf("");
  Spectra sum = DarkFrame(1, 1).spectra;
  CoaddExposures({{&from, 0}, {&from, 1}}, 0, &sum);
  EXPECT_FLOAT_EQ(sum.flux(0, 10), 17.5);
  EXPECT_FLOAT_EQ(sum.ivar(0, 10), 4);
  EXPECT_FLOAT_EQ(sum.flux(0, 50), 20);
  EXPECT_EQ(sum.mask(0, 50), 0u);
  EXPECT_FLOAT_EQ(sum.flux(0, 60), 17.5);
  EXPECT_EQ(sum.mask(0, 60), 12u);
  EXPECT_EQ(MakeUsable(frame)->resolution, &frame.spectra.resolution);
  EXPECT_FLOAT_EQ(sum.flux(0, 70), 10);
  const float expected = (from.resolution(0, 6, 20) + 3 * from.resolution(1, 6, 20)) / 4;
  EXPECT_FLOAT_EQ(sum.resolution(0, 6, 20), expected);
  EXPECT_FLOAT_EQ(sum.resolution(0, 6, 69), from.resolution(0, 6, 69)) << "row 70 is the first's alone";
}

}  // namespace
}  // namespace spexd::testing
