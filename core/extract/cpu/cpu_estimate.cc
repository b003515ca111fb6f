#include "core/extract/cpu/cpu_estimate.h"

#include <algorithm>
#include <array>

#include "core/extract/cost_model.h"
#include "core/extract/cpu/bundle_solver.h"
#include "core/plan/grid_plan.h"

namespace spexd {
namespace {

// Operations per second of one core in each stage, with AVX2 or more. The factor for a CPU and its load is
// learnt (see Correction).
constexpr std::array<double, kStageCount> kRates = {
    4e9,  // spots
    6e9,  // normal
    8e9,  // eliminate
    4e9,  // solve
    8e9,  // resolution
    2e9,  // model
};

constexpr double kTraceRowSeconds = 1.1e-6;  // time of one core to measure trace shifts in a row of a fibre

double SecondsOf(const BundleCost& cost) {
  double seconds = 0;
  for (size_t k = 0; k < kStageCount; ++k) seconds += cost.flops[k] / kRates[k];
  return seconds;
}

}  // namespace

int64_t LeastBytesForCpu(const Psf& psf, const WavelengthGrid& grid, int fibres) {
  return cpu::BundleSolver::Bytes(psf, Padded(grid, PadBins(psf, grid)), fibres);
}

JobEstimate EstimateForCpu(const JobOutline& outline, int threads, int64_t max_workspace_bytes) {
  const Psf& psf = *outline.psf;
  const int size = std::min(outline.bundle_size, psf.fibres);
  const int bundles =
      (outline.fibres.end() - 1) / outline.bundle_size - outline.fibres.first / outline.bundle_size + 1;
  JobEstimate estimate;
  estimate.min_bytes = LeastBytesForCpu(psf, outline.grid, size);
  const int64_t share = std::max<int64_t>(max_workspace_bytes / threads, 1);
  const int64_t shares = std::clamp<int64_t>((estimate.min_bytes + share - 1) / share, 1, threads);
  const int at_once = std::min(bundles, std::max(static_cast<int>(threads / shares), 1));
  estimate.host_bytes = estimate.min_bytes * at_once;
  const int rounds = (bundles + at_once - 1) / at_once;
  estimate.seconds = SecondsOf(CostOfBundle(psf, outline.grid, size)) * rounds;
  if (outline.trace_shifts.has_value())
    estimate.seconds += kTraceRowSeconds * psf.fibres * psf.rows / threads;
  return estimate;
}

}  // namespace spexd
