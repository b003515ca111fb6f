#include "core/analysis/sky/sky.h"

#include <gtest/gtest.h>
#include <lapacke.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "core/analysis/resolution_matrix.h"
#include "tests/analysis/made_up_frame.h"

namespace spexd::testing {
namespace {

constexpr int kFibres = 30, kSkyFibres = 12;

class SkyTest : public ::testing::Test {
 protected:
  SkyTest() : frame_(DarkFrame(kFibres, 25)), sky_fibres_(kSkyFibres) {
    for (int i = 0; i < kFibres; ++i) AddLight(SkyLight(), i, &frame_);
    std::iota(sky_fibres_.begin(), sky_fibres_.end(), 0);
  }
  absl::StatusOr<Sky> Fit(const SkyOptions& options = {}) const {
    return FitSky(MakeUsable(frame_).value(), sky_fibres_, options);
  }

  std::mt19937 random_{20261123};
  Frame frame_;
  std::vector<int> sky_fibres_;
};

TEST_F(SkyTest, WithoutNoiseIsTheLightAndLeavesNothing) {
  const Sky sky = Fit({.systematic_variance = false}).value();
  EXPECT_EQ(sky.rejected, 0);
  EXPECT_EQ(sky.sky_fibres, sky_fibres_);
  for (int64_t k = 0; k < sky.flux.size(); ++k)
    EXPECT_NEAR(sky.flux.flat()[k], 0, 2e-3);  // 1e-3 of its sigma
}

TEST_F(SkyTest, SubtractedSpectraHaveTheScatterThatTheirIvarTells) {
  AddNoise(&random_, &frame_);
  const Sky sky = Fit({.systematic_variance = false, .line_throughput = false}).value();
  double squares = 0;
  for (int i = kSkyFibres; i < kFibres; ++i) {
    for (int j = 0; j < kFrameBins; ++j) squares += sky.flux(i, j) * sky.flux(i, j) * sky.ivar(i, j);
  }
  EXPECT_NEAR(squares / ((kFibres - kSkyFibres) * kFrameBins), 1, 0.05);
}

TEST_F(SkyTest, VarianceIsThatOfDenseAlgebra) {
  const Sky sky = Fit({.systematic_variance = false}).value();
  const UsableSpectra spectra = MakeUsable(frame_).value();
  // Computes the columns of each R, then A = sum of R^T W R and the diagonal of R A^-1 R^T.
  const auto column = [&](int fibre, int j) {
    std::vector<double> unit(kFrameBins, 0), result(kFrameBins);
    unit[j] = 1;
    ResolutionMatrix(frame_.spectra.resolution, fibre).Multiply(unit.data(), result.data());
    return result;
  };
  Array<double, 2> normal({kFrameBins, kFrameBins}), target({kFrameBins, kFrameBins});
  for (const int fibre : sky_fibres_) {
    Array<double, 2> r({kFrameBins, kFrameBins});  // [column, row]
    for (int j = 0; j < kFrameBins; ++j) {
      const std::vector<double> values = column(fibre, j);
      for (int i = 0; i < kFrameBins; ++i) r(j, i) = values[i];
    }
    for (int j = 0; j < kFrameBins; ++j) {
      for (int k = std::max(0, j - 10); k <= std::min(kFrameBins - 1, j + 10); ++k) {
        for (int i = std::max(0, j - 5); i <= std::min(kFrameBins - 1, j + 5); ++i) {
          normal(j, k) += spectra.ivar(fibre, i) * r(j, i) * r(k, i);
        }
      }
    }
  }
  ASSERT_EQ(LAPACKE_dpotrf(LAPACK_ROW_MAJOR, 'L', kFrameBins, normal.data(), kFrameBins), 0);
  constexpr int kFibre = 17;
  std::vector<double> row(kFrameBins);
  for (int i = 0; i < kFrameBins; i += 37) {
    for (int j = 0; j < kFrameBins; ++j) row[j] = std::abs(i - j) <= 5 ? column(kFibre, j)[i] : 0;
    std::vector<double> solved = row;
    ASSERT_EQ(
        LAPACKE_dpotrs(LAPACK_ROW_MAJOR, 'L', kFrameBins, 1, normal.data(), kFrameBins, solved.data(), 1), 0);
    const double variance = std::inner_product(row.begin(), row.end(), solved.begin(), 0.0);
    EXPECT_NEAR(sky.statistical_ivar(kFibre, i) * variance, 1, 1e-6) << i;
  }
}

TEST_F(SkyTest, RejectsCosmicRaysAndASourceOnASkyFibre) {
  AddNoise(&random_, &frame_);
  frame_.spectra.flux(3, 200) += 400;
  AddLight(std::vector<double>(kFrameBins, 60), 5, &frame_);
  const Sky sky = Fit().value();
  EXPECT_GE(sky.rejected, 1);
  EXPECT_EQ(std::count(sky.sky_fibres.begin(), sky.sky_fibres.end(), 5), 0);
  EXPECT_NEAR(sky.model(20, 200), 20, 6);
}

TEST_F(SkyTest, ASkyFibreWithoutDataAtALineDoesNotRaiseItsVariance) {
  AddNoise(&random_, &frame_);
  const Sky whole = Fit().value();
  for (int j = 135; j < 146; ++j) frame_.spectra.mask(2, j) = kMaskNoData;
  const Sky sky = Fit().value();
  EXPECT_LT(sky.model_variance(20, 140), 2 * whole.model_variance(20, 140));
}

TEST_F(SkyTest, BinsThatFewSkyFibresSeeHaveNoSky) {
  for (const int fibre : sky_fibres_) frame_.spectra.mask(fibre, 100) = kMaskNoData;
  const Sky sky = Fit().value();
  for (int j = 99; j <= 101; ++j) {
    EXPECT_EQ(sky.model(20, j), 0);
    EXPECT_EQ(sky.ivar(20, j), 0);
    EXPECT_EQ(sky.mask(20, j), kMaskBadSky);
  }
  EXPECT_EQ(sky.mask(20, 98), 0u);
}

TEST_F(SkyTest, ValuesThatAreNotFiniteAreNoData) {
  frame_.spectra.flux(1, 50) = std::numeric_limits<float>::quiet_NaN();
  frame_.spectra.ivar(2, 50) = std::numeric_limits<float>::infinity();
  frame_.spectra.flux(20, 50) = std::numeric_limits<float>::infinity();
  const Sky sky = Fit().value();
  for (int64_t k = 0; k < sky.flux.size(); ++k) EXPECT_TRUE(std::isfinite(sky.flux.flat()[k]));
  EXPECT_EQ(sky.ivar(20, 50), 0);
}

TEST_F(SkyTest, IsTheSameWhateverTheThreads) {
  AddNoise(&random_, &frame_);
  const Sky one = Fit({.threads = 1}).value(), five = Fit({.threads = 5}).value();
  EXPECT_EQ(one.flux, five.flux);
  EXPECT_EQ(one.ivar, five.ivar);
}

TEST_F(SkyTest, WithoutSkyFibresIsANamedError) {
  sky_fibres_.clear();
  EXPECT_EQ(Fit().status(), absl::FailedPreconditionError("sky: no sky fibre has data"));
  sky_fibres_ = {4};
  for (uint32_t& mask : frame_.spectra.mask.Row(4)) mask = kMaskNoData;
  EXPECT_EQ(Fit().status().code(), absl::StatusCode::kFailedPrecondition);
}

}  // namespace
}  // namespace spexd::testing
