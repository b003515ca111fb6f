// Coadds and principal components whose sums stay on a device, against those of processors.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <random>

#include "core/analysis/coadd.h"
#include "core/analysis/residual_pca.h"
#include "tests/analysis/made_up_frame.h"
#include "tests/cuda_products/analyser_under_test.h"

namespace spexd::testing {
namespace {

using CudaSums = CudaProductsTest;

Frame MakeExposure(uint32_t seed) {
  Frame frame = DarkFrame(3, 4);
  std::mt19937 random(seed);
  for (int fibre = 0; fibre < 3; ++fibre) AddLight(SkyLight(), fibre, &frame);
  AddNoise(&random, &frame);
  for (int j = 0; j < kFrameBins; ++j) frame.spectra.ivar(1, j) *= 1 + 0.5f * std::sin(0.1f * j + seed);
  frame.spectra.mask(0, 100 + seed % 7) = 4;
  frame.spectra.mask(0, 120) = 1 + seed % 7;  // in all
  frame.spectra.flux(2, 200) = std::nanf("");
  return frame;
}

TEST_F(CudaSums, CoaddsAreThoseOfProcessors) {
  std::vector<Frame> frames;
  for (const uint32_t seed : {1, 2, 3}) frames.push_back(MakeExposure(seed));
  const auto sums = analyser_->BeginExposures(2, kFrameBins).value();
  std::vector<std::vector<Exposure>> exposures(2);
  for (const Frame& frame : frames) {
    const UsableSpectra spectra = MakeUsable(frame).value();
    const auto analysis = analyser_->Begin(spectra, nullptr).value();
    ASSERT_TRUE(sums->Add(analysis.get(), {2, 0}, {0, 1}).ok());
    exposures[0].push_back({&frame.spectra, 2});
    exposures[1].push_back({&frame.spectra, 0});
  }
  const Spectra found = sums->Read().value();
  Spectra expected = DarkFrame(2, 1).spectra;
  for (int t = 0; t < 2; ++t) CoaddExposures(exposures[t], t, &expected);
  for (int t = 0; t < 2; ++t) {
    for (int j = 0; j < kFrameBins; ++j) {
      SCOPED_TRACE(j);
      const bool none = expected.mask(t, j) != 0;  // the processors' sum has what is masked
      EXPECT_EQ(found.mask(t, j), none ? expected.mask(t, j) | kMaskNoData : 0);
      EXPECT_NEAR(found.flux(t, j), none ? 0 : expected.flux(t, j), 2e-7 * std::abs(expected.flux(t, j)));
      EXPECT_NEAR(found.ivar(t, j), none ? 0 : expected.ivar(t, j), 1e-7);
      for (int k = 0; k < kResolutionDiagonals; ++k) {
        const int row = j + k - kResolutionHalfWidth;
        if (row < 0 || row >= kFrameBins || expected.mask(t, row) != 0) {
          EXPECT_EQ(found.resolution(t, k, j), 0);
        } else {
          EXPECT_NEAR(found.resolution(t, k, j), expected.resolution(t, k, j), 1e-6);
        }
      }
    }
  }
}

TEST_F(CudaSums, RefuseRowsThatAreNotThereAndAddNothing) {
  const Frame frame = MakeExposure(1);
  const auto analysis = Begin(MakeUsable(frame).value());
  const auto sums = analyser_->BeginExposures(2, kFrameBins).value();
  for (const auto& [rows, targets] : {std::pair<std::vector<int>, std::vector<int>>{{0, 1}, {1, 1}},
                                      {{0, 3}, {0, 1}},
                                      {{-1}, {0}},
                                      {{0}, {2}},
                                      {{0, 1}, {0}}}) {
    EXPECT_EQ(sums->Add(analysis.get(), rows, targets).code(), absl::StatusCode::kInvalidArgument);
  }
  const Spectra coadds = sums->Read().value();
  for (const float value : coadds.ivar.flat()) EXPECT_EQ(value, 0);
  const auto shorter = analyser_->BeginExposures(2, kFrameBins - 1).value();
  EXPECT_EQ(shorter->Add(analysis.get(), {0}, {0}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(analyser_->BeginExposures(0, kFrameBins).ok());
  EXPECT_FALSE(analyser_->BeginResiduals(0, {}).ok());
}

// Three patterns above noise, whose sizes vary.
struct Snapshots {
  Array<double, 2> residuals, ivar;
};
Snapshots MakeSnapshots(int bins, int fibres, std::mt19937* random) {
  std::normal_distribution<double> normal;
  Snapshots snapshots = {Array<double, 2>({fibres, bins}), Array<double, 2>({fibres, bins}, 4)};
  for (int i = 0; i < fibres; ++i) {
    const double size[3] = {3 * normal(*random), 2 * normal(*random), 1.2 * normal(*random)};
    for (int j = 0; j < bins; ++j) {
      double value = normal(*random) + 0.2;
      for (int k = 0; k < 3; ++k) value += size[k] * std::sin((0.11 + 0.07 * k) * j);
      snapshots.residuals(i, j) = 0.5 * value;
    }
  }
  for (int j = 0; j < bins; ++j) snapshots.ivar(0, j) = j % 4 == 0 ? 0 : 4;  // too few data
  snapshots.ivar(1, 7) = 0;
  return snapshots;
}

// The leading values stand out, the others are of noise.
void ExpectSameComponents(const PrincipalComponents& found, const PrincipalComponents& expected,
                          int leading) {
  ASSERT_EQ(found.values.size(), expected.values.size());
  EXPECT_EQ(found.snapshots, expected.snapshots);
  for (size_t k = 0; k < found.values.size(); ++k) {
    const bool noise = static_cast<int>(k) >= leading;
    EXPECT_NEAR(found.values[k], expected.values[k], (noise ? 0.02 : 1e-8) * expected.values[k]) << k;
    if (noise) continue;
    double dot = 0;
    for (int64_t j = 0; j < found.vectors.shape(1); ++j) dot += found.vectors(k, j) * expected.vectors(k, j);
    EXPECT_NEAR(dot, 1, 1e-9) << k << ", with the same sign";
  }
  for (size_t j = 0; j < found.mean.size(); ++j) EXPECT_NEAR(found.mean[j], expected.mean[j], 1e-12) << j;
}

TEST_F(CudaSums, ComponentsAreThoseOfProcessors) {
  constexpr int kBins = 230;
  std::mt19937 random(20261123);
  const PcaOptions options = {.forget = 0.95, .clip = 8};
  const auto there = analyser_->BeginResiduals(kBins, options).value();
  ResidualPca here(kBins, options);
  EXPECT_EQ(there->Leading(1).status().code(), absl::StatusCode::kFailedPrecondition);
  for (int frame = 0; frame < 20; ++frame) {
    const Snapshots snapshots = MakeSnapshots(kBins, 12, &random);
    EXPECT_EQ(there->Add(snapshots.residuals, snapshots.ivar).value(), 11);
    ASSERT_TRUE(here.Add(snapshots.residuals, snapshots.ivar).ok());
    if (frame % 6 == 0) {
      const PrincipalComponents found = there->Leading(10).value(), expected = here.Solve(10).value();
      ExpectSameComponents(found, expected, 3);
    }
  }
  ExpectSameComponents(there->Leading(10).value(), here.Solve(10).value(), 3);
  ExpectSameComponents(there->Leading(3).value(), here.Solve(3).value(), 3);
  ExpectSameComponents(there->Solve(10).value(), here.Solve(10).value(), 3);
  EXPECT_FALSE(there->Leading(0).ok());
  EXPECT_FALSE(there->Leading(kBins + 1).ok());
  EXPECT_FALSE(there->Add(Array<double, 2>({2, 3}), Array<double, 2>({2, 3})).ok());
}

TEST_F(CudaSums, ComponentsOfFewSpectraAndOfNothingAreFinite) {
  constexpr int kBins = 50;
  const auto sums = analyser_->BeginResiduals(kBins, {}).value();
  Array<double, 2> residuals({3, kBins}), ivar({3, kBins}, 1);
  EXPECT_EQ(sums->Add(residuals, Array<double, 2>({3, kBins}, 0)).value(), 0) << "no data";
  ASSERT_EQ(sums->Add(residuals, ivar).value(), 3);
  const PrincipalComponents none = sums->Leading(5).value();
  for (const double value : none.values) EXPECT_NEAR(value, 0, 1e-12);
  for (int j = 0; j < kBins; ++j) residuals(1, j) = std::sin(0.3 * j);
  ASSERT_EQ(sums->Add(residuals, ivar).value(), 3);
  ResidualPca here(kBins, {});
  ASSERT_TRUE(here.Add(Array<double, 2>({3, kBins}), ivar).ok());
  ASSERT_TRUE(here.Add(residuals, ivar).ok());
  const PrincipalComponents found = sums->Leading(5).value();
  EXPECT_NEAR(found.values[0], here.Solve(1).value().values[0], 1e-9);
  for (int k = 1; k < 5; ++k) EXPECT_NEAR(found.values[k], 0, 1e-9);
  EXPECT_EQ(sums->Leading(kBins).value().values.size(), static_cast<size_t>(kBins));
}

}  // namespace
}  // namespace spexd::testing
