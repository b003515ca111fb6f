#include "client/bench/floor.h"

#include <algorithm>
#include <cstdlib>

#include "core/model/frame.h"
#include "core/model/tolerances.h"
#include "core/plan/bundle_plan.h"
#include "core/plan/grid_plan.h"

namespace spexd::bench {
namespace {

constexpr double kDouble = sizeof(double), kFloat = sizeof(float);
constexpr int kPoles = 16;

// Pairs of spots that share pixels, each with itself too, and the multiply-adds of their products.
struct Pairs {
  double count = 0, products = 0;
};

Pairs CountPairs(const Psf& psf, const BundlePlan& plan) {
  Pairs pairs;
  for (int j = 0; j < plan.bins(); ++j) {
    for (int i = 0; i < plan.fibres.count; ++i) {
      for (int m = j; m <= std::min(plan.bins() - 1, j + plan.reach); ++m) {
        const int first = std::max(m == j ? i : i - plan.fibre_reach, 0);
        for (int k = first; k <= std::min(plan.fibres.count - 1, i + plan.fibre_reach); ++k) {
          const int columns =
              psf.spot_columns() - std::abs(plan.first_column(k, m) - plan.first_column(i, j));
          const int rows = psf.spot_rows() - std::abs(plan.first_row(k, m) - plan.first_row(i, j));
          if (columns <= 0 || rows <= 0) continue;
          ++pairs.count;
          pairs.products += double{1} * columns * rows;
        }
      }
    }
  }
  return pairs;
}

// `between`: bytes of what groups hand over, as a share of what it would be in memory.
StageFloors FloorOfBundle(const Psf& psf, const BundlePlan& plan, double between) {
  StageFloors floor;
  const auto at = [&](Stage stage) -> Floor& { return floor[static_cast<size_t>(stage)]; };
  const Pairs pairs = CountPairs(psf, plan);
  const double bins = plan.bins(), spots = bins * plan.fibres.count;
  const double pixels = psf.spot_rows() * psf.spot_columns();
  const double width = plan.reach + kCovarianceMargin;

  // What passes from stage to stage.
  const double of_spots = spots * pixels * kDouble;
  const double of_normal = between * (pairs.count + 2 * spots) * kDouble;  // A^T W A, A^T W p, A^T W 1
  const double of_flux = between * spots * kDouble;
  const double of_band = between * spots * (width + 1) * kDouble;  // covariance, or precision, of kept fibres
  const double of_bin = (plan.bins() - 2 * plan.pad) * double{1} * plan.fibres.count;

  // Legendre series, pixel integrals (an erf and an exp of about 20 operations an edge), the separable sum,
  // the scaling.
  const double series = static_cast<double>(psf.terms.size() + 2) * psf.sigma_x.coeff.shape(1) * 4;
  const double edges = (psf.spot_rows() + psf.spot_columns() + 2) * 40.0;
  const double sums = 2.0 * psf.terms.size() * psf.spot_rows() + 2.0 * (psf.max_degree_x + 1) * pixels;
  at(Stage::kSpots) = {spots * (series + edges + sums + 2 * pixels), of_spots};

  // Entries of A are written once, though two groups have those of their guard fibres. The image: see below.
  at(Stage::kNormal) = {2 * pairs.products + spots * pixels * 5, of_spots + of_normal};

  // The factor fills the band. Whoever goes back through it for the covariance can have the flux with it, so
  // it is read once.
  at(Stage::kSolve).bytes = of_normal + of_flux;
  at(Stage::kCovariance).bytes = of_band;
  for (const FibreGroup& group : plan.groups) {
    const double n = bins * group.solved.count;
    const double band =
        double{1} * plan.reach * group.solved.count + std::min(plan.fibre_reach, group.solved.count - 1);
    const double wide = std::max(band, width * group.solved.count);
    at(Stage::kSolve).flops += n * band * band + 4 * n * band;
    at(Stage::kSolve).bytes += n * band * kDouble;
    at(Stage::kCovariance).flops += 2 * n * band * wide;
    at(Stage::kCovariance).bytes += n * band * kDouble;
  }
  at(Stage::kPrecision) = {spots * (width * width * width / 3 + 3 * width * width), 2 * of_band};

  // The poles' factors stay on the chip: chunks can be as short as that takes. Out: flux, ivar, resolution.
  at(Stage::kResolution) = {spots * kPoles * (3 * width * width + 12 * width),
                            of_band + of_flux + of_bin * (2 + kResolutionDiagonals) * kFloat};

  // A bin's chi-square needs the model of its own rows alone, whose spots a cache does hold: they are read
  // once. Out: chi2pix, mask.
  at(Stage::kModel) = {spots * pixels * 6, of_spots + of_flux + of_bin * 2 * kFloat};
  return floor;
}

}  // namespace

StageFloors FloorOfFrame(const Psf& psf, const WavelengthGrid& grid, int bundle_size, Handover handover) {
  StageFloors sum;
  const int pad = PadBins(psf, grid);
  const double between = handover == Handover::kInMemory ? 1 : 0;
  for (int bundle = 0; bundle * bundle_size < psf.fibres; ++bundle) {
    const FibreRange fibres = FibresOfBundle(bundle, bundle_size, psf.fibres);
    const StageFloors floor =
        FloorOfBundle(psf, MakeBundlePlan(psf, Padded(grid, pad), pad, fibres), between);
    for (size_t k = 0; k < sum.size(); ++k) {
      sum[k].flops += floor[k].flops;
      sum[k].bytes += floor[k].bytes;
    }
  }
  // Pixels and ivar.
  const double image = 2.0 * psf.rows * psf.columns * kFloat;
  for (Stage stage : {Stage::kNormal, Stage::kModel}) sum[static_cast<size_t>(stage)].bytes += image;
  return sum;
}

bool IsMatrixWork(Stage stage) { return stage == Stage::kSolve || stage == Stage::kCovariance; }

}  // namespace spexd::bench
