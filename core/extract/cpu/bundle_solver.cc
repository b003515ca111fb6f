#include "core/extract/cpu/bundle_solver.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>

#include "absl/strings/str_format.h"
#include "core/extract/band_rule.h"
#include "core/extract/bundle_trim.h"
#include "core/extract/cpu/root_error.h"
#include "core/extract/formulas.h"
#include "core/model/tolerances.h"
#include "core/plan/fibre_blocks.h"
#include "core/plan/grid_plan.h"

namespace spexd::cpu {
namespace {

// Adds the time since the last call (or construction) to a stage.
class StageClock {
 public:
  explicit StageClock(StageTimes* times) : times_(times) {}
  void End(Stage stage) {
    const auto now = std::chrono::steady_clock::now();
    (*times_)[stage] += std::chrono::duration<double>(now - last_).count();
    last_ = now;
  }

 private:
  StageTimes* times_;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

void Allocate(const BundleTask& task, BundleResult* result) {
  const int fibres = task.plan->fibres.count, bins = task.padded.count - 2 * task.plan->pad;
  result->fibres = task.plan->fibres;
  for (Array<double, 2>* array : {&result->flux, &result->ivar, &result->chi2pix, &result->pixmask}) {
    array->Assign({fibres, bins});
  }
  result->mask.Assign({fibres, bins});
  result->resolution.Assign({fibres, kResolutionDiagonals, bins});
}

// The expected plan of a bundle, from a few fibres. Its columns begin at 0.
BundlePlan EstimatePlan(const Psf& psf, const WavelengthGrid& padded, int fibres) {
  BundlePlan plan;
  plan.fibres = {0, fibres};
  plan.bins = padded.count;
  plan.reach = ReachEstimate(psf, padded);
  plan.fibre_reach = std::min(fibres - 1, FibreReachEstimate(psf));
  // The block size needs whole spots; without them, this is the most it can be.
  plan.block = IsComplete(psf) ? FibresPerBlock(psf, padded, plan.fibres, plan.fibre_reach)
                               : std::max(1, plan.fibre_reach);
  plan.end_column = ColumnsEstimate(psf, padded, fibres);
  return plan;
}

int64_t BytesOf(const Psf& psf, const WavelengthGrid& padded, const BundlePlan& plan) {
  const int bins = padded.count, reach = plan.reach, fibres = plan.fibres.count;
  const int64_t block = plan.block;
  const int64_t usual = InterleavedWidth(UsualBandWidth(reach), block) + 8;
  const int64_t most = InterleavedWidth(MostBandWidth(reach), block) + 8;
  const int64_t row = bins * int64_t{sizeof(double)};
  const int64_t bands = 3 * fibres * usual;              // two bands and a factor for each fibre
  const int64_t widest = 4 * most;                       // one fibre's bands and factors at their widest
  const int64_t columns = 32 * int64_t{reach} + 64;      // columns of an update
  const int64_t blocks = block > 1 ? 6 * most : 0;       // separation of a block's fibres
  const int64_t poles = 8 * (MostBandWidth(reach) + 8);  // factors of the poles
  // Vectors of the flux, and the result.
  const int64_t vectors = fibres * int64_t{8 + kResolutionDiagonals + 8};
  return Spots::Bytes(psf, fibres, bins) + BundleImageBytes(psf, plan.end_column - plan.first_column) +
         NormalEquations::Bytes(plan) + row * (bands + block * (widest + columns + blocks) + poles + vectors);
}

}  // namespace

int64_t BundleSolver::Bytes(const Psf& psf, const WavelengthGrid& padded, int fibres) {
  return BytesOf(psf, padded, EstimatePlan(psf, padded, fibres));
}

int64_t BundleSolver::Bytes(const Psf& psf, const WavelengthGrid& padded, const BundlePlan& plan) {
  BundlePlan most = EstimatePlan(psf, padded, plan.fibres.count);
  most.reach = std::max(most.reach, plan.reach);
  most.fibre_reach = std::max(most.fibre_reach, plan.fibre_reach);
  most.block = std::max(most.block, plan.block);
  most.end_column = std::max(most.end_column, plan.end_column - plan.first_column);
  return BytesOf(psf, padded, most);
}

bool BundleSolver::SolveFlux(const BundleTask& task, const std::stop_token& stop, StageTimes* times,
                             double* residual) {
  const BundlePlan& plan = *task.plan;
  StageClock clock(times);
  image_.Load(task.image, *task.psf, plan);
  if (!normal_.Begin(plan, stop)) return false;
  clock.End(Stage::kNormal);
  const auto multiply = [&](int bins) {
    clock.End(Stage::kSpots);
    normal_.Multiply(plan, spots_, image_, bins);
    clock.End(Stage::kNormal);
  };
  if (!spots_.Evaluate(*task.psf, task.padded, plan.fibres, stop, multiply)) return false;
  normal_.AddPrior(task.regularize, task.fine_grid);
  clock.End(Stage::kNormal);
  if (!elimination_.Compute(plan, normal_, stop)) return false;
  clock.End(Stage::kEliminate);
  if (!flux_solver_.Solve(plan, normal_, elimination_, stop, &flux_, residual)) return false;
  clock.End(Stage::kSolve);
  return true;
}

bool BundleSolver::TakeRoots(const BundleTask& task, const std::stop_token& stop, BundleResult* result) {
  SquareRoot root;
  const bool conditioned = IsConditioned(task.plan->reach, task.plan->block);
  for (int i = 0; i < task.plan->fibres.count; ++i) {
    const SymmetricBand& precision = elimination_.precision(i);
    if (!root_solver_.Solve(precision, conditioned, flux_.Row(i).data(), stop, &root)) return false;
    result->root_error = LargerError(result->root_error, RootError(precision, flux_.Row(i).data(), root));
    Report(task, i, root, result);
  }
  return true;
}

absl::StatusOr<BundleResult> BundleSolver::Solve(const BundleTask& task, const std::stop_token& stop,
                                                 StageTimes* times) {
  const absl::Status stopped = absl::CancelledError("the bundle was stopped");
  BundleResult result;
  Allocate(task, &result);
  const int bins = static_cast<int>(result.mask.shape(1));
  if (!SolveFlux(task, stop, times, &result.residual)) return stopped;
  FailUnlessProven(bins, &result);
  if (!result.status.ok()) return result;
  StageClock clock(times);
  if (!TakeRoots(task, stop, &result)) return stopped;
  clock.End(Stage::kResolution);
  FailUnlessProven(bins, &result);
  if (!result.status.ok()) return result;
  if (!ComputeModel({task.plan, &spots_, &flux_, task.psferr}, stop, &image_, &sums_)) return stopped;
  Judge(task, &result);
  if (task.want_model) result.model = CutModel(&image_);
  clock.End(Stage::kModel);
  return result;
}

void BundleSolver::Judge(const BundleTask& task, BundleResult* result) {
  const BundlePlan& plan = *task.plan;
  for (int i = 0; i < plan.fibres.count; ++i) {
    for (int j = 0; j < result->mask.shape(1); ++j) {
      const int bin = j + plan.pad;
      const bool reportable = IsReportable(result->flux(i, j), result->ivar(i, j));
      const BinQuality quality = JudgeBin(sums_.coverage(i, bin), sums_.chi2(i, bin), reportable);
      result->mask(i, j) = quality.mask;
      result->chi2pix(i, j) = quality.chi2pix;
      result->pixmask(i, j) = quality.pixmask;
      if (quality.mask & kMaskNoData) result->flux(i, j) = result->ivar(i, j) = 0;
    }
  }
}

void BundleSolver::Report(const BundleTask& task, int fibre, const SquareRoot& root, BundleResult* result) {
  const int pad = task.plan->pad, bins = static_cast<int>(result->mask.shape(1));
  const double width = task.padded.step;
  for (int j = 0; j < bins; ++j) {
    result->flux(fibre, j) = ReportedFlux(root.applied[j + pad], root.row_sum[j + pad], width);
    result->ivar(fibre, j) = ReportedIvar(root.row_sum[j + pad], width);
    for (int d = -kResolutionHalfWidth; d <= kResolutionHalfWidth; ++d) {
      const int row = j + pad + d;  // R[row, j + pad]; pads are wider than d
      const double entry = root.diagonal[std::abs(d)][std::min(row, j + pad)];
      result->resolution(fibre, d + kResolutionHalfWidth, j) =
          ReportedResolution(entry, root.row_sum[row], d);
    }
  }
}

}  // namespace spexd::cpu
