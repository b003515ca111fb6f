#include "client/bench/floor.h"

#include <algorithm>
#include <cstdlib>

#include "core/model/tolerances.h"
#include "core/plan/grid_plan.h"

namespace spexd::bench {
namespace {

// Multiply-adds of all products of overlapping spots.
double PairProducts(const Psf& psf, const BundlePlan& plan) {
  double products = 0;
  for (int j = 0; j < plan.bins(); ++j) {
    for (int i = 0; i < plan.fibres.count; ++i) {
      for (int m = j; m <= std::min(plan.bins() - 1, j + plan.reach); ++m) {
        const int first = std::max(m == j ? i : i - plan.fibre_reach, 0);
        for (int k = first; k <= std::min(plan.fibres.count - 1, i + plan.fibre_reach); ++k) {
          const int columns =
              psf.spot_columns() - std::abs(plan.first_column(k, m) - plan.first_column(i, j));
          const int rows = psf.spot_rows() - std::abs(plan.first_row(k, m) - plan.first_row(i, j));
          if (columns > 0 && rows > 0) products += double{1} * columns * rows;
        }
      }
    }
  }
  return products;
}

}  // namespace

StageFloors FloorOfBundle(const Psf& psf, const BundlePlan& plan, Handover handover) {
  StageFloors floor;
  const auto at = [&](Stage stage) -> Floor& { return floor[static_cast<size_t>(stage)]; };
  const double bins = plan.bins(), spots = bins * plan.fibres.count;
  const double pixels = psf.spot_rows() * psf.spot_columns(), spot_bytes = spots * pixels * sizeof(double);

  // Legendre series, pixel integrals (an erf and an exp of about 20 operations an edge), the separable sum,
  // the scaling.
  const double series = static_cast<double>(psf.terms.size() + 2) * psf.sigma_x.coeff.shape(1) * 4;
  const double edges = (psf.spot_rows() + psf.spot_columns() + 2) * 40.0;
  const double sums = 2.0 * psf.terms.size() * psf.spot_rows() + 2.0 * (psf.max_degree_x + 1) * pixels;
  at(Stage::kSpots) = {spots * (series + edges + sums + 2 * pixels), spot_bytes};

  at(Stage::kNormal) = {2 * PairProducts(psf, plan) + spots * pixels * 5, spot_bytes};
  const double width = plan.reach + kCovarianceMargin;
  const double between = handover == Handover::kInMemory ? sizeof(double) : 0;
  for (const FibreGroup& group : plan.groups) {
    const double n = bins * group.solved.count;
    const double band =
        double{1} * plan.reach * group.solved.count + std::min(plan.fibre_reach, group.solved.count - 1);
    const double wide = std::max(band, width * group.solved.count);
    at(Stage::kNormal).bytes += between * n * band;
    at(Stage::kSolve).flops += n * band * band + 4 * n * band;
    at(Stage::kSolve).bytes += 2 * n * band * sizeof(double);
    at(Stage::kCovariance).flops += 2 * n * band * wide;
    at(Stage::kCovariance).bytes += n * band * sizeof(double);
  }
  // Bands of covariance and precision, of the fibres kept alone.
  const double kept_band = between * spots * (width + 1);
  at(Stage::kCovariance).bytes += kept_band;
  at(Stage::kPrecision) = {spots * (width * width * width / 3 + 3 * width * width), 2 * kept_band};
  at(Stage::kResolution) = {spots * 16 * (3 * width * width + 12 * width), kept_band};
  at(Stage::kModel) = {spots * pixels * 6, 2 * spot_bytes};
  return floor;
}

StageFloors FloorOfFrame(const Psf& psf, const WavelengthGrid& grid, int bundle_size, Handover handover) {
  StageFloors sum;
  const int pad = PadBins(psf, grid);
  for (int bundle = 0; bundle * bundle_size < psf.fibres; ++bundle) {
    const FibreRange fibres = FibresOfBundle(bundle, bundle_size, psf.fibres);
    const StageFloors floor =
        FloorOfBundle(psf, MakeBundlePlan(psf, Padded(grid, pad), pad, fibres), handover);
    for (size_t k = 0; k < sum.size(); ++k) {
      sum[k].flops += floor[k].flops;
      sum[k].bytes += floor[k].bytes;
    }
  }
  return sum;
}

bool IsMatrixWork(Stage stage) { return stage == Stage::kSolve || stage == Stage::kCovariance; }

}  // namespace spexd::bench
