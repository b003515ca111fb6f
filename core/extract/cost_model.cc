#include "core/extract/cost_model.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numbers>
#include <variant>

#include "core/extract/band_rule.h"
#include "core/plan/grid_plan.h"

namespace spexd {
namespace {

// The width of the precision's band, and the length of a column of L^-1 B, in reaches. Measured with the DESI
// PSF at 0.8 Angstrom (reach 9): 12 and 35 bins. Both grow with the reach, as influence does.
constexpr double kWidthOfReach = 4.0 / 3;
constexpr double kColumnOfReach = 35.0 / 9;
// The growth of the precision's band on fine grids. Bins narrower than a spot's sigma make the normal matrix
// near singular. As sigma goes from kFineFrom bins to kFineTo, the width grows to kFineWidth times the usual
// one. Measured with the DESI PSF at 0.8 to 0.4 Angstrom.
constexpr double kFineWidth = 2.4, kFineFrom = 1.05, kFineTo = 1.3;
// The number of poles grows with the logarithm of the precision's condition number
// (core/extract/pole_formula.h). This logarithm is that of the spots' own spectrum at the bins' frequency,
// plus kUnequalWeights for data of unequal weight.
constexpr double kUnequalWeights = 1.2, kPolesOfLog = 1.28, kMaxLog = 18;
constexpr double kSweeps = 2;
// Number of solutions for the flux: the first one, and one or two corrections, each with a residual.
constexpr double kSolutions = 2.5;
// Operations for a pixel of the image and of the model.
constexpr double kImagePixel = 5, kModelPixel = 6;

double Square(double x) { return x * x; }

// The sum of the rows that a pair shares, over pairs of a spot with itself or a later one of its fibre. Adds
// the number of pairs to `count`.
double SharedRows(const Psf& psf, const SpotSpacing& spacing, double* count) {
  double rows = 0;
  for (double shared = psf.spot_rows(); shared > 0; shared -= spacing.rows) {
    rows += shared;
    ++*count;
  }
  return rows;
}

double FlopsOfSpot(const Psf& psf) {
  return std::visit([](const auto& model) { return model.Flops(); }, psf.spots);
}

}  // namespace

SpotSpacing MeasureSpacing(const Psf& psf, const WavelengthGrid& grid) {
  constexpr int kWaves = 9, kFibres = 5;
  SpotSpacing spacing;
  const double span = grid.step * std::max(grid.count - 1, 1);
  double rows = 0, columns = 0, least = HUGE_VAL;
  for (int f = 0; f < kFibres; ++f) {
    const int fibre = static_cast<int>(int64_t{psf.fibres - 1} * f / (kFibres - 1));
    for (int w = 0; w < kWaves; ++w) {
      const double wave = grid.first + span * w / kWaves;
      const double step = std::abs(Evaluate(psf.traces.y, fibre, wave + span / kWaves) -
                                   Evaluate(psf.traces.y, fibre, wave)) *
                          grid.step * kWaves / span;
      rows += step;
      least = std::min(least, step);
    }
    const double middle = grid.first + 0.5 * span;
    const int next = fibre + 1 < psf.fibres ? fibre + 1 : std::max(fibre - 1, 0);
    columns += std::abs(Evaluate(psf.traces.x, next, middle) - Evaluate(psf.traces.x, fibre, middle));
  }
  // CheckGrid refuses finer grids.
  spacing.rows = std::max(rows / (kWaves * kFibres), kMinRowsPerBin);
  spacing.min_rows = std::max(least, kMinRowsPerBin);
  const double middle = grid.first + 0.5 * span;
  const double sigma =
      std::visit([&](const auto& model) { return model.SigmaY(psf.fibres / 2, middle); }, psf.spots);
  spacing.sigma = std::max(sigma, 0.0) / spacing.rows;
  spacing.columns = psf.fibres > 1 ? std::max(columns / kFibres, 1.0) : psf.spot_columns();
  return spacing;
}

int EstimatedReach(const Psf& psf, const SpotSpacing& spacing) {
  return static_cast<int>(std::ceil(psf.spot_rows() / spacing.min_rows));
}

BundleCost CostOfBundle(const Psf& psf, const WavelengthGrid& grid, int fibres) {
  BundleCost cost;
  const auto flops = [&](Stage stage) -> double& { return cost.flops[static_cast<size_t>(stage)]; };
  const SpotSpacing spacing = MeasureSpacing(psf, grid);
  const double n = grid.count + 2.0 * PadBins(psf, grid);
  const double pixels = double{1} * psf.spot_rows() * psf.spot_columns();
  const double reach = std::min(std::ceil(psf.spot_rows() / spacing.rows) - 1, n - 1);
  const double fine = std::clamp((spacing.sigma - kFineFrom) / (kFineTo - kFineFrom), 0.0, 1.0);
  const double widest = std::min<double>(MostBandWidth(static_cast<int>(reach)), n - 1);
  const double width = std::min(std::ceil(kWidthOfReach * reach * (1 + fine * (kFineWidth - 1))), widest);
  const double poles =
      kPolesOfLog * (std::min(Square(std::numbers::pi * spacing.sigma) + kUnequalWeights, kMaxLog) + 3);
  const double column = std::min(std::ceil(kColumnOfReach * reach), n);
  cost.spots = n * fibres;
  cost.precision = cost.spots * (width + 1);

  // Pairs with later bins of the same fibre, and with bins of the next fibre in both directions.
  double later = 0;
  const double rows = SharedRows(psf, spacing, &later);
  const double beside = std::max(psf.spot_columns() - spacing.columns, 0.0);
  const double couples = beside > 0 ? n * (fibres - 1) * (2 * later - 1) : 0;
  cost.pairs = cost.spots * later + couples;
  const double products =
      cost.spots * rows * psf.spot_columns() + n * (fibres - 1) * (2 * rows - psf.spot_rows()) * beside;

  flops(Stage::kSpots) = cost.spots * FlopsOfSpot(psf);
  flops(Stage::kNormal) = 2 * products + cost.spots * pixels * kImagePixel;
  // For each bin and each side: a factor, the columns of L^-1 B, and their products.
  flops(Stage::kEliminate) = kSweeps * cost.spots * (Square(width) + 2 * column * width + 2 * column * width);
  // Forward and back substitution with the precision's factor, and a residual with the neighbours.
  flops(Stage::kSolve) =
      cost.spots * (Square(width) + kSolutions * (4 * width + 4)) + kSolutions * 4 * cost.pairs;
  // For each pole: a factor, two solutions, and the inverse's diagonals.
  flops(Stage::kResolution) = cost.spots * poles * (3 * Square(width) + 12 * width);
  flops(Stage::kModel) = cost.spots * pixels * kModelPixel;
  return cost;
}

}  // namespace spexd
