// The CPU engine's stages, each against plain algebra, on every vector target that this machine has.
#include <cmath>
#include <random>
#include <vector>

#include "core/extract/cpu/covariance.h"
#include "core/extract/cpu/precision.h"
#include "core/extract/cpu/resolution.h"
#include "core/extract/cpu/solve.h"
#include "core/extract/cpu/spots.h"
#include "core/extract/pole_plan.h"
#include "core/model/reference_spot.h"
#include "core/plan/grid_plan.h"
#include "gtest/gtest.h"
#include "hwy/targets.h"
#include "tests/support/scene.h"

namespace spexd::cpu {
namespace {

using spexd::testing::MakeScenePsf;
using spexd::testing::SceneOptions;

// Runs the test body once for each instruction set.
class OnEveryTarget : public ::testing::TestWithParam<int64_t> {
 protected:
  void SetUp() override { hwy::SetSupportedTargetsForTest(GetParam()); }
  void TearDown() override { hwy::SetSupportedTargetsForTest(0); }
};

std::string TargetLabel(const ::testing::TestParamInfo<int64_t>& info) {
  std::string name = hwy::TargetName(static_cast<uint32_t>(info.param));
  std::erase_if(name, [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); });
  return name;
}

#define SPEXD_ON_EVERY_TARGET(suite) \
  INSTANTIATE_TEST_SUITE_P(Simd, suite, ::testing::ValuesIn(hwy::SupportedAndGeneratedTargets()), TargetLabel)

class SpotStage : public OnEveryTarget {};

void ExpectSpotsEqualReference(const Psf& psf) {
  const WavelengthGrid grid = {psf.wave_min + 3, 0.7, 40};
  const BundlePlan plan = MakeBundlePlan(psf, grid, 0, {0, psf.fibres});
  Spots spots;
  spots.Evaluate(psf, grid, plan);
  Spot expected;
  for (int i = 0; i < psf.fibres; ++i) {
    for (int j = 0; j < grid.count; ++j) {
      EvaluateSpot(psf, i, grid.Wave(j), &expected);
      ASSERT_EQ(plan.first_column(i, j), expected.first_column);
      ASSERT_EQ(plan.first_row(i, j), expected.first_row);
      double sum = 0;
      for (size_t k = 0; k < expected.values.size(); ++k) {
        ASSERT_NEAR(spots.Spot(j, i)[k], expected.values[k], 2e-15)
            << "fibre " << i << " bin " << j << " pixel " << k;
        ASSERT_GE(spots.Spot(j, i)[k], 0);
        sum += spots.Spot(j, i)[k];
      }
      EXPECT_NEAR(sum, 1, 1e-13);
    }
  }
}

TEST_P(SpotStage, EqualsTheFormula) { ExpectSpotsEqualReference(*MakeScenePsf({.fibres = 3, .rows = 80})); }

TEST_P(SpotStage, EqualsTheFormulaWithATail) {
  ExpectSpotsEqualReference(*MakeScenePsf({.fibres = 2, .rows = 80, .tail = true}));
}

TEST_P(SpotStage, IsEmptyWhereAWidthIsNotPositive) {
  auto psf = MakeScenePsf({.fibres = 2, .rows = 80});
  for (double& c : psf->sigma_y.coeff.Row(1)) c = -1;
  const WavelengthGrid grid = {psf->wave_min + 3, 0.7, 10};
  const BundlePlan plan = MakeBundlePlan(*psf, grid, 0, {0, 2});
  Spots spots;
  spots.Evaluate(*psf, grid, plan);
  for (int k = 0; k < psf->spot_rows() * psf->spot_columns(); ++k) EXPECT_EQ(spots.Spot(4, 1)[k], 0);
}

SPEXD_ON_EVERY_TARGET(SpotStage);

// A random symmetric positive definite band, dense.
std::vector<std::vector<double>> RandomBand(int n, int half_band, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  std::vector<std::vector<double>> a(n, std::vector<double>(n, 0.0));
  for (int i = 0; i < n; ++i) {
    for (int j = std::max(0, i - half_band); j < i; ++j) a[i][j] = a[j][i] = uniform(random);
  }
  for (int i = 0; i < n; ++i) a[i][i] = 1.2 * half_band + 1 + uniform(random);
  return a;
}

std::vector<std::vector<double>> DenseInverse(std::vector<std::vector<double>> a) {
  const int n = static_cast<int>(a.size());
  for (int k = 0; k < n; ++k) {
    const double pivot = 1 / a[k][k];
    a[k][k] = 1;
    for (double& value : a[k]) value *= pivot;
    for (int i = 0; i < n; ++i) {
      if (i == k) continue;
      const double factor = a[i][k];
      a[i][k] = 0;
      for (int j = 0; j < n; ++j) a[i][j] -= factor * a[k][j];
    }
  }
  return a;
}

class BandAlgebra : public OnEveryTarget {};

TEST_P(BandAlgebra, SolvesAndInvertsLikeDenseAlgebra) {
  for (const auto& [fibres, bins, reach] :
       {std::array{1, 1, 0}, std::array{1, 7, 2}, std::array{3, 20, 4}, std::array{9, 30, 8},
        std::array{7, 25, 3}, std::array{2, 64, 9}}) {
    const int n = fibres * bins, half_band = std::min(fibres * reach + fibres - 1, n - 1);
    SCOPED_TRACE(::testing::Message() << fibres << " fibres, " << bins << " bins, half band " << half_band);
    const auto dense = RandomBand(n, half_band, 7 * n + half_band);
    const auto inverse = DenseInverse(dense);
    TiledBand matrix;
    matrix.Reset(n, half_band);
    for (int j = 0; j < n; ++j) {
      for (int i = j; i <= std::min(n - 1, j + half_band); ++i) matrix.At(i, j) = dense[i][j];
    }
    AlignedBuffer<double> b;
    std::fill_n(b.Reserve(matrix.tiles() * kTile), matrix.tiles() * kTile, 0.0);
    for (int i = 0; i < n; ++i) b.data()[i] = std::sin(i);
    CholeskySolve(&matrix, b.data());
    for (int i = 0; i < n; ++i) {
      double expected = 0;
      for (int k = 0; k < n; ++k) expected += inverse[i][k] * std::sin(k);
      EXPECT_NEAR(b.data()[i], expected, 1e-13);
    }
    // Wide in the middle, narrow elsewhere.
    std::vector<int> wanted(bins, std::min(reach + 1, bins - 1));
    if (bins > 16) wanted[bins / 2] = bins / 3;
    const std::vector<int> widths = CovarianceWidths(wanted);
    CovarianceSolver solver;
    FibreCovariance covariance;
    const FibreRange kept = {fibres > 2 ? 1 : 0, fibres > 2 ? fibres - 2 : fibres};
    solver.Solve(matrix, fibres, kept, widths, &covariance);
    for (int i = 0; i < kept.count; ++i) {
      for (int j = 0; j < bins; ++j) {
        ASSERT_GE(widths[j], std::min(wanted[j], bins - 1 - j));
        for (int k = 0; k <= widths[j]; ++k) {
          const int column = j * fibres + kept.first + i, row = (j + k) * fibres + kept.first + i;
          ASSERT_NEAR(covariance.Diagonal(i, k)[j], inverse[row][column], 1e-13) << i << " " << j << " " << k;
        }
      }
    }
  }
}

// One fibre, so that its marginal precision is the band matrix itself.
TEST_P(BandAlgebra, FindsThePrecisionOfAChain) {
  const int n = 90, half_band = 6;
  const auto dense = RandomBand(n, half_band, 3);
  TiledBand matrix;
  matrix.Reset(n, half_band);
  for (int j = 0; j < n; ++j) {
    for (int i = j; i <= std::min(n - 1, j + half_band); ++i) matrix.At(i, j) = dense[i][j];
  }
  AlignedBuffer<double> b;
  std::fill_n(b.Reserve(matrix.tiles() * kTile), matrix.tiles() * kTile, 0.0);
  CholeskySolve(&matrix, b.data());
  std::vector<int> wanted(n, half_band);
  wanted[40] = 25;
  const std::vector<int> widths = CovarianceWidths(wanted);
  CovarianceSolver covariance_solver;
  FibreCovariance covariance;
  covariance_solver.Solve(matrix, 1, {0, 1}, widths, &covariance);
  PrecisionSolver solver;
  BandedPrecision precision;
  solver.Solve(covariance, 0, widths, &precision);
  for (int j = 0; j < n; ++j) {
    for (int k = 0; k <= widths[j]; ++k) EXPECT_NEAR(precision.Diagonal(k)[j], dense[j + k][j], 1e-11);
  }
  // At the widened bin nothing was left to regress on.
  EXPECT_LT(precision.last_correlation[40], 1e-12);
}

// Q from the solver, applied twice, is P: Q (Q f) against P f, and the diagonals against those of dense Q by
// Newton's iteration.
TEST_P(BandAlgebra, TakesTheSquareRootOfAPrecision) {
  const int n = 70, half_band = 7;
  const auto dense = RandomBand(n, half_band, 5);
  BandedPrecision precision;
  precision.bins = n;
  precision.most = half_band;
  std::fill_n(precision.values.Reserve(precision.stride() * (half_band + 1)),
              precision.stride() * (half_band + 1), 0.0);
  std::vector<int> widths(n);
  for (int j = 0; j < n; ++j) {
    widths[j] = std::min(half_band, n - 1 - j);
    for (int k = 0; k <= widths[j]; ++k)
      precision.values.data()[k * precision.stride() + j] = dense[j + k][j];
  }
  // Newton's iteration for the square root, dense.
  std::vector<std::vector<double>> root = dense;
  for (int iteration = 0; iteration < 60; ++iteration) {
    const auto inverse = DenseInverse(root);
    for (int i = 0; i < n; ++i) {
      for (int j = i; j < n; ++j) {
        double product = 0;
        for (int k = 0; k < n; ++k)
          product += 0.5 * (dense[i][k] * inverse[k][j] + inverse[i][k] * dense[k][j]);
        root[i][j] = 0.5 * (root[i][j] + product);
      }
      for (int j = 0; j < i; ++j) root[i][j] = root[j][i];
    }
  }
  std::vector<double> flux(n);
  for (int j = 0; j < n; ++j) flux[j] = std::cos(0.7 * j);
  SquareRootSolver solver;
  SquareRoot result;
  solver.Solve(precision, widths, {0.5, 40}, flux.data(), &result);
  for (int j = 0; j < n; ++j) {
    double sum = 0, applied = 0;
    for (int k = 0; k < n; ++k) {
      sum += root[j][k];
      applied += root[j][k] * flux[k];
    }
    EXPECT_NEAR(result.row_sum[j], sum, 1e-9);
    EXPECT_NEAR(result.applied[j], applied, 1e-9);
    for (int k = 0; k <= kResolutionHalfWidth && j + k < n; ++k) {
      EXPECT_NEAR(result.diagonal[k][j], root[j + k][j], 1e-9);
    }
  }
}

SPEXD_ON_EVERY_TARGET(BandAlgebra);

TEST(PolePlan, ApproximatesTheSquareRootOverItsWholeRange) {
  for (double most : {1.0, 10.0, 1e3, 1e6, 1e9, 1e12}) {
    const PolePlan plan = MakePolePlan(1, most);
    ASSERT_EQ(plan.shift.size() % kPoleBlock, 0u);
    for (double x = 1; x <= most; x *= 1.7) {
      double root = 0;
      for (size_t k = 0; k < plan.shift.size(); ++k) {
        ASSERT_GT(plan.shift[k], 0);
        ASSERT_GT(plan.weight[k], 0);
        root += plan.weight[k] * x / (x + plan.shift[k]);
      }
      EXPECT_NEAR(root / std::sqrt(x), 1, 1e-9) << "x = " << x << " of 1.." << most;
    }
  }
}

TEST(PolePlan, AsksForMorePolesTheWiderTheSpectrum) {
  EXPECT_LE(PolesNeeded(1, 1e3), 16);
  EXPECT_GT(PolesNeeded(1, 1e9), PolesNeeded(1, 1e3));
  EXPECT_LE(PolesNeeded(1e-300, 1e300), kMaxPoles);
}

TEST(CovarianceWidths, FallByAtMostOneABin) {
  const std::vector<int> widths = CovarianceWidths({2, 2, 6, 2, 2, 2, 2, 2, 2, 2});
  EXPECT_EQ(widths, (std::vector<int>{2, 2, 6, 5, 4, 3, 2, 2, 1, 0}));
}

}  // namespace
}  // namespace spexd::cpu
