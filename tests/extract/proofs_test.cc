// The numbers that prove a bundle: which errors of a square root they detect, and that a bundle without proof
// fails.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "core/extract/bundle_trim.h"
#include "core/extract/cpu/root_error.h"
#include "core/extract/pole_formula.h"
#include "core/model/tolerances.h"
#include "tests/support/matchers.h"

namespace spexd {
namespace {

using cpu::RootError;
using cpu::SquareRoot;
using cpu::SymmetricBand;

constexpr int kBins = 400, kBin = 150, kPoles = 16;
// P has 3 on the diagonal and 1 beside it, so its eigenvalues lie within these bounds.
constexpr double kMin = 1, kMax = 5;

SymmetricBand Precision() {
  SymmetricBand band;
  band.width.assign(kBins, 1);
  band.width.back() = 0;
  band.Shape();
  for (int j = 0; j < kBins; ++j) {
    band.Diagonal(0)[j] = 3;
    band.Diagonal(1)[j] = j + 1 < kBins ? 1 : 0;
  }
  return band;
}

std::vector<double> Flux() {
  std::vector<double> flux;
  for (int j = 0; j < kBins; ++j) flux.push_back(100 * std::sin(0.05 * j) + (j == kBin ? 3000 : 1));
  return flux;
}

std::vector<Pole> Poles(double least, double most) {
  std::vector<Pole> poles;
  const PoleFormula formula(least, most, kPoles);
  for (int k = 0; k < kPoles; ++k) poles.push_back(formula.At(k));
  return poles;
}

// A fault in one pole's factor: a pivot is multiplied by a number.
struct Damage {
  int pole = -1;
  double factor = 1;
};

// Solves (P + shift) y = x by elimination; returns y.
std::vector<double> Solve(const SymmetricBand& p, double shift, double damage, std::vector<double> x) {
  std::vector<double> pivot(kBins);
  for (int j = 0; j < kBins; ++j) {
    pivot[j] = p.Diagonal(0)[j] + shift;
    if (j == 0) continue;
    const double factor = p.Diagonal(1)[j - 1] / pivot[j - 1];
    pivot[j] -= factor * p.Diagonal(1)[j - 1];
    if (j == kBin) pivot[j] *= damage;
    x[j] -= factor * x[j - 1];
  }
  for (int j = kBins - 1; j >= 0; --j) {
    if (j + 1 < kBins) x[j] -= p.Diagonal(1)[j] * x[j + 1];
    x[j] /= pivot[j];
  }
  return x;
}

SquareRoot RootOf(const SymmetricBand& p, const std::vector<Pole>& poles, const Damage& damage) {
  const std::vector<double> ones(kBins, 1), flux = Flux();
  SquareRoot root;
  root.row_sum.assign(kBins, 0);
  root.applied.assign(kBins, 0);
  for (int k = 0; k < kPoles; ++k) {
    const double factor = k == damage.pole ? damage.factor : 1;
    const std::vector<double> of_ones = Solve(p, poles[k].shift, factor, ones),
                              of_flux = Solve(p, poles[k].shift, factor, flux);
    for (int j = 0; j < kBins; ++j) {
      root.row_sum[j] += poles[k].weight * (ones[j] - poles[k].shift * of_ones[j]);
      root.applied[j] += poles[k].weight * (flux[j] - poles[k].shift * of_flux[j]);
    }
  }
  return root;
}

double ErrorOf(const SymmetricBand& rooted, const std::vector<Pole>& poles, const Damage& damage = {}) {
  return RootError(Precision(), Flux().data(), RootOf(rooted, poles, damage));
}

TEST(RootError, OfASoundRootIsRounding) { EXPECT_LT(ErrorOf(Precision(), Poles(kMin, kMax)), 1e-12); }

TEST(RootError, ShowsAWrongBoundOfTheSpectrum) {
  EXPECT_GT(ErrorOf(Precision(), Poles(100 * kMin, 100 * kMax)), kMaxRootError);
}

TEST(RootError, ShowsOneWrongPivotOfOnePole) {
  for (int pole = 4; pole < 12; ++pole)
    EXPECT_GT(ErrorOf(Precision(), Poles(kMin, kMax), {pole, 1.01}), kMaxRootError) << pole;
}

TEST(RootError, ShowsOneWrongEntryOfTheBand) {
  SymmetricBand damaged = Precision();
  damaged.Diagonal(1)[kBin] = 0.99;
  EXPECT_GT(ErrorOf(damaged, Poles(kMin, kMax)), kMaxRootError);
}

TEST(RootError, IsNoProofIfAValueIsNotANumber) {
  SymmetricBand damaged = Precision();
  damaged.Diagonal(0)[kBin] = std::numeric_limits<double>::quiet_NaN();
  EXPECT_TRUE(std::isnan(ErrorOf(damaged, Poles(kMin, kMax))));
}

TEST(RootError, IsThatOfTheWorseIdentity) {
  const SymmetricBand p = Precision();
  SquareRoot root = RootOf(p, Poles(kMin, kMax), {});
  for (double& value : root.applied) value *= 1.001;
  EXPECT_NEAR(RootError(p, Flux().data(), root), 0.002001, 1e-9);
  for (double& value : root.row_sum) value *= 0.99;
  EXPECT_NEAR(RootError(p, Flux().data(), root), 0.0199, 1e-9);
}

TEST(RootError, OfAFibreWithoutFluxIsThatOfItsRowSums) {
  const SymmetricBand p = Precision();
  SquareRoot root = RootOf(p, Poles(kMin, kMax), {});
  root.applied.assign(kBins, 0);
  const std::vector<double> nothing(kBins, 0);
  EXPECT_LT(RootError(p, nothing.data(), root), 1e-12);
}

BundleResult Bundle(double residual, double root_error) {
  BundleResult result;
  result.bundle = 3;
  result.fibres = {75, 2};
  result.residual = residual;
  result.root_error = root_error;
  result.flux.Assign({2, 5}, 1.0);
  FailUnlessProven(5, &result);
  return result;
}

TEST(ABundle, IsKeptIfItsNumbersAreWithinTheirLimits) {
  const BundleResult result = Bundle(kMaxFluxResidual, kMaxRootError);
  EXPECT_TRUE(result.status.ok());
  EXPECT_EQ(result.flux(1, 4), 1);
}

TEST(ABundle, FailsWithItsNumbersIfOneIsNot) {
  for (const auto& [residual, root_error, named] :
       {std::tuple{2e-8, 1e-12, "flux of fibres 75 to 76: the residual stays at 2e-08, the limit is 1e-08"},
        std::tuple{1e-12, 3e-6,
                   "square roots of fibres 75 to 76: |Q v|^2 differs from v^T P v by 3e-06 of it, the limit "
                   "is 1e-06"},
        std::tuple{1e-12, std::nan(""), "by nan of it"}}) {
    const BundleResult result = Bundle(residual, root_error);
    EXPECT_THAT(result.status, StatusIs(absl::StatusCode::kInternal, HasSubstr(named)));
    EXPECT_EQ(result.bundle, 3);
    EXPECT_EQ(result.residual, residual);
    EXPECT_EQ(std::isnan(result.root_error), std::isnan(root_error));
    EXPECT_EQ(result.flux(1, 4), 0);
    EXPECT_NE(result.mask(1, 4) & kMaskNoData, 0u);
  }
}

}  // namespace
}  // namespace spexd
