// Compares the CPU engine's stages with plain algebra, on every vector target that this machine supports.
#include <cmath>
#include <random>
#include <vector>

#include "core/extract/band_rule.h"
#include "core/extract/cpu/spots/spots.h"
#include "core/extract/cpu/stages/eliminate.h"
#include "core/extract/cpu/stages/factor.h"
#include "core/extract/cpu/stages/normal.h"
#include "core/extract/cpu/stages/resolution.h"
#include "core/extract/cpu/stages/schur.h"
#include "core/extract/cpu/stages/solve.h"
#include "core/extract/pole_plan.h"
#include "core/plan/grid_plan.h"
#include "gtest/gtest.h"
#include "tests/extract/every_target.h"
#include "tests/support/scenes/scene.h"

namespace spexd::cpu {
namespace {

using spexd::testing::MakeSceneImage;
using spexd::testing::MakeScenePsf;
using spexd::testing::OnEveryTarget;
using spexd::testing::SceneOptions;

// A symmetric or general matrix, stored in plain rows.
using Dense = std::vector<std::vector<double>>;

Dense Zeros(int rows, int columns) { return Dense(rows, std::vector<double>(columns, 0.0)); }

// Returns a random symmetric positive definite band; `strength` is the sum of each row off the diagonal.
Dense RandomBand(int n, int half_band, double strength, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::uniform_real_distribution<double> uniform(-1, 1);
  Dense a = Zeros(n, n);
  for (int i = 0; i < n; ++i) {
    for (int j = std::max(0, i - half_band); j < i; ++j) a[i][j] = a[j][i] = uniform(random);
  }
  for (int i = 0; i < n; ++i) a[i][i] = (2.0 * half_band + 1 + uniform(random)) / strength;
  return a;
}

Dense DenseInverse(Dense a) {
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

// Returns the marginal precision of some unknowns: the inverse of their block of the inverse.
Dense DensePrecision(const Dense& a, const std::vector<int>& unknowns) {
  const Dense inverse = DenseInverse(a);
  Dense block = Zeros(static_cast<int>(unknowns.size()), static_cast<int>(unknowns.size()));
  for (size_t i = 0; i < unknowns.size(); ++i) {
    for (size_t j = 0; j < unknowns.size(); ++j) block[i][j] = inverse[unknowns[i]][unknowns[j]];
  }
  return DenseInverse(block);
}

// Returns a band that is `wide` in the middle and `half_band` wide elsewhere.
SymmetricBand MakeBand(const Dense& dense, int half_band, int wide) {
  const int n = static_cast<int>(dense.size());
  SymmetricBand band;
  band.width.resize(n);
  for (int j = 0, before = 0; j < n; ++j) {
    before = band.width[j] = ClosedBandWidth(j == n / 2 ? wide : half_band, before, n - 1 - j);
  }
  band.Shape();
  for (int k = 0; k <= band.most(); ++k) {
    for (int j = 0; j < n; ++j) band.Diagonal(k)[j] = k <= band.width[j] ? dense[j + k][j] : 0.0;
  }
  return band;
}

class BandAlgebra : public OnEveryTarget {};

TEST_P(BandAlgebra, SolvesLikeDenseAlgebra) {
  for (const auto& [n, half_band, wide] : {std::array{1, 0, 0}, std::array{7, 2, 2}, std::array{20, 4, 9},
                                           std::array{65, 8, 30}, std::array{90, 17, 40}}) {
    SCOPED_TRACE(::testing::Message() << n << " unknowns, half band " << half_band);
    const Dense dense = RandomBand(n, half_band, 1, 7 * n + half_band);
    const Dense inverse = DenseInverse(dense);
    AlignedBuffer<double> scratch;
    BandFactor factor;
    ASSERT_TRUE(factor.Compute(MakeBand(dense, half_band, wide), 0, {}, &scratch));
    std::vector<double> x(n);
    for (int i = 0; i < n; ++i) x[i] = std::sin(i);
    factor.Solve(x.data());
    for (int i = 0; i < n; ++i) {
      double expected = 0;
      for (int k = 0; k < n; ++k) expected += inverse[i][k] * std::sin(k);
      EXPECT_NEAR(x[i], expected, 1e-14);
    }
  }
}

TEST_P(BandAlgebra, EliminatesLikeDenseAlgebra) {
  for (const auto& [n, reach] : {std::array{1, 0}, std::array{6, 2}, std::array{31, 3}, std::array{33, 3},
                                 std::array{150, 5}, std::array{200, 9}}) {
    SCOPED_TRACE(::testing::Message() << n << " unknowns, reach " << reach);
    const Dense first = RandomBand(n, reach, 0.7, n), second = RandomBand(n, reach, 0.7, n + 1);
    std::mt19937_64 random(5);
    std::uniform_real_distribution<double> uniform(-1, 1);
    const int64_t stride = n + kTileColumns;
    std::vector<double> rows((2 * reach + 1) * stride, 0.0), own((reach + 1) * stride, 0.0), diagonal(n);
    Dense both = Zeros(2 * n, 2 * n);
    for (int i = 0; i < n; ++i) {
      for (int j = 0; j < n; ++j) {
        both[i][j] = first[i][j];
        both[n + i][n + j] = second[i][j];
        if (std::abs(i - j) > reach) continue;
        both[i][n + j] = both[n + j][i] = rows[(i - j + reach) * stride + j] = 0.1 * uniform(random);
        if (i >= j) own[(i - j) * stride + j] = second[i][j];
      }
      diagonal[i] = second[i][i];
    }
    std::vector<int> kept(n);
    for (int i = 0; i < n; ++i) kept[i] = n + i;
    const Dense expected = DensePrecision(both, kept);
    AlignedBuffer<double> scratch;
    BandFactor factor;
    ASSERT_TRUE(factor.Compute(MakeBand(first, reach, reach), reach, {}, &scratch));
    std::vector<double> threshold(n);
    for (int j = 0; j < n; ++j) threshold[j] = 1e-13 * diagonal[j];
    const BandLimits limits = {UsualBandWidth(reach), MostBandWidth(reach), 1e-12, diagonal.data(),
                               threshold.data()};
    SchurUpdate update;
    ASSERT_TRUE(update.Compute(factor, {rows.data(), stride, reach}, limits, {}));
    SymmetricBand result;
    update.Subtract({own.data(), stride, n, reach}, limits, &result);
    for (int j = 0; j < n; ++j) {
      for (int k = 0; j + k < n; ++k) {
        const double value = k <= result.width[j] ? result.Diagonal(k)[j] : 0.0;
        ASSERT_NEAR(value, expected[j + k][j], 1e-12 * diagonal[j]) << j << " " << k;
      }
    }
  }
}

// Each unknown is coupled to two of the eliminated ones, on either side of a gap without coupling, so that
// products of columns are small for a while and then large again.
TEST_P(BandAlgebra, KeepsWhatIsCoupledAcrossAGap) {
  const int n = 120, reach = 12;
  const int64_t stride = n + kTileColumns;
  std::vector<double> rows((2 * reach + 1) * stride, 0.0), own(stride, 1.0), diagonal(n, 1.0);
  for (int j = 0; j < n; ++j) {
    if (j - reach >= 0) rows[j] = 0.1;
    if (j + reach < n) rows[2 * reach * stride + j] = 0.1;
  }
  AlignedBuffer<double> scratch;
  BandFactor factor;
  Dense identity = Zeros(n, n);
  for (int j = 0; j < n; ++j) identity[j][j] = 1;
  ASSERT_TRUE(factor.Compute(MakeBand(identity, 0, 0), reach, {}, &scratch));
  const std::vector<double> threshold(n, 1e-10);
  const BandLimits limits = {3, 60, 1e-9, diagonal.data(), threshold.data()};
  SchurUpdate update;
  ASSERT_TRUE(update.Compute(factor, {rows.data(), stride, reach}, limits, {}));
  SymmetricBand result;
  update.Subtract({own.data(), stride, n, 0}, limits, &result);
  for (int j = reach; j + 3 * reach < n; ++j) {
    ASSERT_GE(result.width[j], 2 * reach) << j;
    EXPECT_NEAR(result.Diagonal(2 * reach)[j], -0.01, 1e-15) << j;
    EXPECT_EQ(result.Diagonal(2 * reach - 1)[j], 0) << j;
  }
}

// Compares Q from the solver with dense Q from Newton's iteration.
TEST_P(BandAlgebra, TakesTheSquareRootOfAPrecision) {
  const int n = 70, half_band = 7;
  const Dense dense = RandomBand(n, half_band, 1, 5);
  Dense root = dense;
  for (int iteration = 0; iteration < 60; ++iteration) {
    const Dense inverse = DenseInverse(root);
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
  ASSERT_TRUE(solver.Solve(MakeBand(dense, half_band, 20), false, flux.data(), {}, &result));
  for (int j = 0; j < n; ++j) {
    double sum = 0, applied = 0;
    for (int k = 0; k < n; ++k) {
      sum += root[j][k];
      applied += root[j][k] * flux[k];
    }
    EXPECT_NEAR(result.row_sum[j], sum, 1e-11);
    EXPECT_NEAR(result.applied[j], applied, 1e-11);
    for (int k = 0; k <= kResolutionHalfWidth && j + k < n; ++k) {
      EXPECT_NEAR(result.diagonal[k][j], root[j + k][j], 1e-11);
    }
  }
}

SPEXD_ON_EVERY_TARGET(BandAlgebra);

// A bundle, with its normal equations as a dense matrix.
struct BundleEquations {
  std::shared_ptr<Psf> psf;
  BundlePlan plan;
  Spots spots;
  BundleImage image;
  NormalEquations normal;
  Dense dense;  // unknown fibre * bins + bin

  BundleEquations(const SceneOptions& options, const WavelengthGrid& grid, int block)
      : psf(MakeScenePsf(options)) {
    const auto pixels = MakeSceneImage(*psf, options);
    plan = MakeBundlePlan(*psf, grid, 0, {0, options.fibres}).value();
    plan.block = block;
    EXPECT_TRUE(spots.Evaluate(*psf, grid, plan.fibres));
    image.Load(PlanesOf(*pixels), *psf, plan);
    EXPECT_TRUE(normal.Begin(plan, {}));
    normal.Multiply(plan, spots, image, plan.bins);
    const int bins = plan.bins, n = options.fibres * bins;
    dense = Zeros(n, n);
    std::vector<double> weighted(image.size());
    for (int a = 0; a < n; ++a) {
      std::fill(weighted.begin(), weighted.end(), 0.0);
      ForEachPixel(a / bins, a % bins,
                   [&](int64_t at, double value) { weighted[at] = value * image.ivar()[at]; });
      for (int b = 0; b < n; ++b) {
        ForEachPixel(b / bins, b % bins,
                     [&](int64_t at, double value) { dense[a][b] += weighted[at] * value; });
      }
    }
  }

  // Returns the position of an unknown of `dense` in its block.
  int PositionOf(int unknown) const {
    const int m = plan.block;
    return unknown % plan.bins * m + unknown / plan.bins % m;
  }
  void AddPrior() {
    normal.AddPrior(0, false);
    for (size_t a = 0; a < dense.size(); ++a)
      dense[a][a] =
          normal.Own(static_cast<int>(a) / plan.bins / plan.block, 0)[PositionOf(static_cast<int>(a))];
  }

  template <typename Use>
  void ForEachPixel(int fibre, int bin, const Use& use) const {
    const int row = spots.first_row(fibre, bin), column = spots.first_column(fibre, bin);
    if (!image.Touches(row, column)) return;
    for (int y = 0; y < spots.rows(); ++y) {
      for (int x = 0; x < spots.columns(); ++x) {
        use(image.Offset(row, column) + y * image.stride() + x,
            spots.Spot(fibre, bin)[y * spots.columns() + x]);
      }
    }
  }
};

class BundleStages : public OnEveryTarget {};

// Tests blocks of one, two and three fibres.
TEST_P(BundleStages, MultiplySpotsLikeADenseMatrix) {
  for (const auto& [block, widen] : {std::pair{1, 1.0}, std::pair{2, 2.0}, std::pair{3, 2.5}}) {
    SCOPED_TRACE(block);
    const BundleEquations equations({.fibres = 4, .rows = 60, .widen = widen}, {6004, 0.8, 33}, block);
    const NormalEquations& normal = equations.normal;
    const int bins = equations.plan.bins, reach = normal.reach();
    for (int a = 0; a < 4 * bins; ++a) {
      for (int b = 0; b < 4 * bins; ++b) {
        const int low = a / bins / block, apart = b / bins / block - low, j = equations.PositionOf(a),
                  k = equations.PositionOf(b) - j;
        if (apart < 0 || (apart == 0 && k < 0)) continue;
        const bool kept = std::abs(k) <= reach && apart <= normal.block_reach();
        const double value = !kept ? 0.0 : apart == 0 ? normal.Own(low, k)[j] : normal.Pair(low, apart, k)[j];
        ASSERT_NEAR(value, equations.dense[a][b], 1e-15) << a << " " << b;
      }
    }
  }
}

// Tests the same blocks; the last one is not full.
TEST_P(BundleStages, EliminateFibresLikeDenseAlgebra) {
  for (const auto& [block, widen] : {std::pair{1, 1.0}, std::pair{2, 2.0}, std::pair{3, 2.5}}) {
    SCOPED_TRACE(block);
    BundleEquations equations({.fibres = 5, .rows = 60, .widen = widen}, {6004, 0.8, 37}, block);
    const int bins = equations.plan.bins;
    equations.AddPrior();
    Elimination elimination;
    ASSERT_TRUE(elimination.Compute(equations.plan, equations.normal, {}));
    for (int i = 0; i < 5; ++i) {
      std::vector<int> kept(bins);
      for (int j = 0; j < bins; ++j) kept[j] = i * bins + j;
      const Dense expected = DensePrecision(equations.dense, kept);
      const SymmetricBand& precision = elimination.precision(i);
      for (int j = 0; j < bins; ++j) {
        for (int k = 0; j + k < bins; ++k) {
          const double scale = std::sqrt(expected[j][j] * expected[j + k][j + k]);
          const double value = k <= precision.width[j] ? precision.Diagonal(k)[j] : 0.0;
          ASSERT_NEAR(value, expected[j + k][j], 3e-11 * scale) << i << " " << j << " " << k;
        }
      }
    }
  }
}

TEST_P(BundleStages, SolveForTheFluxAndTellTheResidual) {
  for (int block : {1, 2}) {
    SCOPED_TRACE(block);
    BundleEquations equations({.fibres = 5, .rows = 60, .widen = 1.0 * block}, {6004, 0.8, 37}, block);
    const int bins = equations.plan.bins, n = 5 * bins;
    equations.AddPrior();
    Elimination elimination;
    ASSERT_TRUE(elimination.Compute(equations.plan, equations.normal, {}));
    FluxSolver solver;
    Array<double, 2> flux;
    double residual = 1;
    ASSERT_TRUE(solver.Solve(equations.plan, equations.normal, elimination, {}, &flux, &residual));
    double square = 0, whole = 0;
    for (int a = 0; a < n; ++a) {
      const double b = equations.normal.data(a / bins / block)[equations.PositionOf(a)];
      double left = b;
      for (int c = 0; c < n; ++c) left -= equations.dense[a][c] * flux.flat()[c];
      square += left * left / equations.dense[a][a];
      whole += b * b / equations.dense[a][a];
    }
    EXPECT_LT(residual, kFluxResidual);
    EXPECT_NEAR(std::sqrt(square / whole), residual, 1e-15);
  }
}

SPEXD_ON_EVERY_TARGET(BundleStages);

// The entries of this band decay so slowly that some are cut; the cut entries are added to the diagonal.
TEST(BandRule, KeepsABandPositiveDefiniteByWhatItCuts) {
  const int n = 60;
  std::vector<double> own(n * n, 0.0);
  for (int k = 0; k < n; ++k) {
    for (int j = 0; j + k < n; ++j) own[k * n + j] = std::pow(0.98, k);
  }
  const std::vector<double> threshold(n, 1e-11);
  const BandLimits limits = {6, 20, 1e-9, own.data(), threshold.data()};
  SchurUpdate update;
  SymmetricBand band;
  update.Copy({own.data(), n, n, n - 1}, limits, &band);
  EXPECT_EQ(band.most(), 20);
  for (int j = 0; j < n; ++j) {
    double lumped = 0;
    for (int k = 0; k < n; ++k)
      lumped += std::abs(k - j) > band.width[std::min(j, k)] ? std::pow(0.98, std::abs(k - j)) : 0;
    EXPECT_NEAR(band.Diagonal(0)[j], 1 + lumped, 1e-12);
  }
}

TEST(BandRule, WidthsFallByAtMostOneABin) {
  std::vector<int> widths;
  for (int j = 0, before = 0; j < 10; ++j) {
    before = ClosedBandWidth(j == 2 ? 6 : 2, before, 9 - j);
    widths.push_back(before);
  }
  EXPECT_EQ(widths, (std::vector<int>{2, 2, 6, 5, 4, 3, 2, 2, 1, 0}));
}

TEST(BandRule, PolesWithLargeShiftsNeedLess) {
  const double limit = kBandError * kMinEigenvalue;  // of P, where P^-1 s is 1
  EXPECT_GT(ShiftWithout(1.01 * limit, 1), 0);
  EXPECT_LT(ShiftWithout(0.99 * limit, 1), 0);
  EXPECT_NEAR(ShiftWithout(10 * limit, 1), 99 * kMinEigenvalue, 1e-12 * kMinEigenvalue);
  EXPECT_GT(ShiftWithout(0.11 * limit, 10), 0) << "where the least eigenvalue is less";
}

TEST(PolePlan, ApproximatesTheSquareRootOverItsWholeRange) {
  for (double most : {1.0, 10.0, 1e3, 1e6, 1e9, 1e12}) {
    const PolePlan plan = MakePolePlan(1, most);
    for (double x = 1; x <= most; x *= 1.7) {
      double root = 0;
      for (size_t k = 0; k < plan.shift.size(); ++k) {
        ASSERT_GT(plan.shift[k], 0);
        ASSERT_GT(plan.weight[k], 0);
        root += plan.weight[k] * x / (x + plan.shift[k]);
      }
      EXPECT_NEAR(root / std::sqrt(x), 1, 10 * kSquareRootError) << "x = " << x << " of 1.." << most;
    }
  }
}

TEST(PolePlan, AsksForMorePolesTheWiderTheSpectrum) {
  EXPECT_LE(PolesNeeded(1, 1e3), 16);
  EXPECT_GT(PolesNeeded(1, 1e9), PolesNeeded(1, 1e3));
  EXPECT_EQ(PolesNeeded(1e-300, 1e300), kMaxPoles);
}

}  // namespace
}  // namespace spexd::cpu
