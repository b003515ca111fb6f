#include "cuda/runtime/cuda_estimate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>
#include <vector>

#include "core/extract/cost_model.h"
#include "cuda/memory/block_allocator.h"
#include "cuda/plan/psf_shape.h"
#include "cuda/runtime/device_worker.h"
#include "cuda/runtime/pipeline.h"

namespace spexd::cuda {
namespace {

// Operations per second in each stage, on an H200 and for whole frames. The factor for another device is
// learnt (see Correction).
constexpr std::array<double, kStageCount> kRates = {
    2e12,    // spots
    7e11,    // normal
    9e11,    // eliminate
    1.1e11,  // solve
    9e11,    // resolution, with the model beside it
    9e11,    // model
};
constexpr double kLinkRate = 40e9;  // bytes a second, either way
constexpr double kFixed = 1e-3;     // seconds: launches, waits
constexpr double kTraceRowSeconds = 4e-9;  // per fibre and CCD row, to measure trace shifts

// Guesses the facts of a bundle in the middle of the CCD.
BundleFacts GuessFacts(const Psf& psf, const WavelengthGrid& grid, int fibres) {
  const SpotSpacing spacing = MeasureSpacing(psf, grid);
  BundleFacts facts;
  facts.reach = std::min(EstimatedReach(psf, spacing), grid.count);
  facts.fibre_reach =
      std::clamp(static_cast<int>(std::ceil(psf.spot_columns() / spacing.columns)), 0, fibres - 1);
  // Twice the fibres' width, as traces are bent.
  const double columns = 2 * (fibres * spacing.columns + psf.spot_columns());
  facts.first_column = 0;
  facts.end_column = static_cast<int32_t>(std::min<double>(columns, psf.columns));
  return facts;
}

}  // namespace

JobEstimate EstimateForCuda(const JobOutline& outline, const PlanOptions& options) {
  const Psf& psf = *outline.psf;
  const PsfShape shape = ShapeOf(psf, outline.grid, outline.bundle_size);
  const int size = std::min(outline.bundle_size, psf.fibres);
  const ExtractPlan plan = MakeExtractPlan(
      shape,
      std::vector<BundleFacts>(static_cast<size_t>(shape.bundles()), GuessFacts(psf, outline.grid, size)), 1,
      options);
  JobShape job;
  job.first_bundle = outline.fibres.first / outline.bundle_size;
  job.bundles = (outline.fibres.end() - 1) / outline.bundle_size - job.first_bundle + 1;
  job.want_model = outline.want_model;
  job.float32 = outline.float32;
  JobShape least = job;
  least.bundles = 1;
  const int64_t psf_bytes = Aligned(ResidentBytes(shape));

  JobEstimate estimate;
  estimate.device_bytes = psf_bytes + Aligned(WorkspaceBytes(plan, job));
  estimate.min_bytes = psf_bytes + Aligned(WorkspaceBytes(plan, least));
  if (outline.trace_shifts.has_value()) {
    const int64_t bytes = Aligned(StagedMeasurement::PsfBytes(psf)) +
                          Aligned(StagedMeasurement::WorkBytes(psf, *outline.trace_shifts));
    estimate.device_bytes = std::max(estimate.device_bytes, bytes);
    estimate.min_bytes = std::max(estimate.min_bytes, bytes);
    estimate.seconds += kTraceRowSeconds * psf.fibres * psf.rows;
  }
  const int64_t moved = ImageBytes(psf.rows, psf.columns) + OutputBytes(plan, job);
  estimate.host_bytes = moved + PackedPsfBytes(shape);
  // Spots are computed for all fibres of the PSF.
  const BundleCost cost = CostOfBundle(psf, outline.grid, size);
  estimate.seconds += kFixed + static_cast<double>(moved) / kLinkRate;
  for (Stage stage : kAllStages) {
    const size_t k = static_cast<size_t>(stage);
    const int bundles = stage == Stage::kSpots ? shape.bundles() : job.bundles;
    estimate.seconds += cost.flops[k] / kRates[k] * bundles;
  }
  return estimate;
}

}  // namespace spexd::cuda
