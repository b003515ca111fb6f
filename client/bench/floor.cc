#include "client/bench/floor.h"

#include <algorithm>

#include "core/extract/cost_model.h"
#include "core/model/frame.h"
#include "core/plan/bundle_plan.h"

namespace spexd::bench {
namespace {

constexpr double kDouble = sizeof(double), kFloat = sizeof(float);

// Returns the floor of a bundle. `between`: the fraction of the data between stages that passes through
// memory.
StageFloors FloorOfBundle(const Psf& psf, const WavelengthGrid& grid, int fibres, double between) {
  const BundleCost cost = CostOfBundle(psf, grid, fibres);
  StageFloors floor;
  for (size_t k = 0; k < kStageCount; ++k) floor[k].flops = cost.flops[k];
  const auto bytes = [&](Stage stage) -> double& { return floor[static_cast<size_t>(stage)].bytes; };

  // Bytes that pass from stage to stage.
  const double pixels = psf.spot_rows() * psf.spot_columns();
  const double of_spots = cost.spots * pixels * kDouble;
  const double of_normal = between * (cost.pairs + 2 * cost.spots) * kDouble;  // A^T W A, A^T W p, A^T W 1
  const double of_band = between * cost.precision * kDouble;
  const double of_flux = between * cost.spots * kDouble;
  const double of_bin = double{1} * grid.count * fibres;

  bytes(Stage::kSpots) = of_spots;
  bytes(Stage::kNormal) = of_spots + of_normal;  // FloorOfFrame adds the image
  // Only the precision P is written. The S of each sweep passes from fibre to fibre without memory traffic.
  bytes(Stage::kEliminate) = of_normal + of_band;
  // Reads P, and the exact matrix once, for the residual.
  bytes(Stage::kSolve) = of_band + of_normal + of_flux;
  // Writes flux, ivar and resolution. The poles' factors stay on the chip, because chunks can be short
  // enough.
  bytes(Stage::kResolution) = of_band + of_flux + of_bin * (2 + kResolutionDiagonals) * kFloat;
  // Writes chi2pix and mask. A bin's chi-square needs only the model of its own rows, whose spots fit into a
  // cache, so spots are read once.
  bytes(Stage::kModel) = of_spots + of_flux + of_bin * 2 * kFloat;
  return floor;
}

}  // namespace

StageFloors FloorOfFrame(const Psf& psf, const WavelengthGrid& grid, int bundle_size, Handover handover) {
  StageFloors sum;
  const double between = handover == Handover::kInMemory ? 1 : 0;
  for (int bundle = 0; bundle * bundle_size < psf.fibres; ++bundle) {
    const FibreRange fibres = FibresOfBundle(bundle, bundle_size, psf.fibres);
    const StageFloors floor = FloorOfBundle(psf, grid, fibres.count, between);
    for (size_t k = 0; k < sum.size(); ++k) {
      sum[k].flops += floor[k].flops;
      sum[k].bytes += floor[k].bytes;
    }
  }
  // Adds the image: pixels and ivar.
  const double image = 2.0 * psf.rows * psf.columns * kFloat;
  for (Stage stage : {Stage::kNormal, Stage::kModel}) sum[static_cast<size_t>(stage)].bytes += image;
  return sum;
}

bool IsMatrixWork(Stage stage) { return stage == Stage::kEliminate; }

}  // namespace spexd::bench
