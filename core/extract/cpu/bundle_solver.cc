#include "core/extract/cpu/bundle_solver.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>

#include "core/extract/cpu/covariance_plan.h"
#include "core/extract/cpu/model.h"
#include "core/extract/cpu/solve.h"
#include "core/extract/pole_plan.h"
#include "core/model/tolerances.h"

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

}  // namespace

int64_t BundleSolver::Bytes(const Psf& psf, const BundlePlan& plan) {
  constexpr int64_t kDouble = sizeof(double);
  const int64_t bins = plan.bins(), fibres = plan.fibres.count;
  int64_t group = 0;
  for (const FibreGroup& g : plan.groups) group = std::max<int64_t>(group, g.solved.count);
  const int64_t usual = plan.reach + kCovarianceMargin + kResolutionHalfWidth,
                most = MostCovarianceWidth(plan) + usual;
  const int64_t ring = group * most / kTile + 4;
  return Spots::Bytes(psf, plan) + BundleImageBytes(psf, plan) + NormalEquations::Bytes(plan) +
         TiledBand::Bytes(bins * group, (plan.reach + 1) * group) + ring * ring * kTileSize * kDouble +
         // Covariance and precision of the kept fibres, the poles' factor, at the widest.
         bins * (most + 1) * kDouble * (2 * kGroupFibres + kPoleBlock) +
         most * most * (kTile + kPoleBlock) * kDouble +
         // The result.
         bins * fibres * kDouble * (kResolutionDiagonals + 8);
}

BundleResult BundleSolver::Solve(const BundleTask& task, StageTimes* times) {
  const BundlePlan& plan = *task.plan;
  BundleResult result;
  Allocate(task, &result);
  flux_.Assign({plan.fibres.count, plan.bins()});
  weak_.Assign({plan.fibres.count, plan.bins()});

  StageClock clock(times);
  spots_.Evaluate(*task.psf, task.padded, plan);
  clock.End(Stage::kSpots);
  image_.Load(*task.image, *task.psf, plan);
  normal_.Compute(plan, spots_, image_);
  clock.End(Stage::kNormal);
  for (const FibreGroup& group : plan.groups) SolveGroup(task, group, times, &result);

  StageClock model_clock(times);
  ComputeModel(plan, spots_, flux_, task.psferr, &image_);
  for (int i = 0; i < plan.fibres.count; ++i) {
    for (int j = 0; j < result.mask.shape(1); ++j) {
      const int bin = j + plan.pad;
      const bool usable = !weak_(i, bin) && IsReportable(result.flux(i, j), result.ivar(i, j));
      const BinQuality quality = JudgeSpot(plan, spots_, image_, image_.chi2(), i, bin, !usable);
      result.mask(i, j) = quality.mask;
      result.chi2pix(i, j) = quality.chi2pix;
      result.pixmask(i, j) = quality.pixmask;
      if (quality.mask & kMaskNoData) result.flux(i, j) = result.ivar(i, j) = 0;
    }
  }
  if (task.want_model) result.model = CutModel(&image_);
  model_clock.End(Stage::kModel);
  return result;
}

void BundleSolver::SolveGroup(const BundleTask& task, const FibreGroup& group, StageTimes* times,
                              BundleResult* result) {
  StageClock clock(times);
  AssembleGroup(*task.plan, normal_, group, task.regularize, task.fine_grid, &system_);
  clock.End(Stage::kNormal);
  CholeskySolve(&system_.matrix, system_.flux.data());
  const int bins = system_.bins, fibres = system_.fibres;
  for (int i = group.kept.first; i < group.kept.end(); ++i) {
    for (int j = 0; j < bins; ++j) {
      const int64_t a = static_cast<int64_t>(j) * fibres + (i - group.solved.first);
      flux_(i, j) = system_.flux.data()[a];
      weak_(i, j) = system_.weak.data()[a];
    }
  }
  clock.End(Stage::kSolve);
  Refine(*task.plan, group, times);
  StageClock root_clock(times);
  SquareRoot root;
  for (int k = 0; k < group.kept.count; ++k) {
    const int fibre = group.kept.first + k;
    const SpectrumBounds bounds = BoundSpectrum(covariance_, k, precision_[k], widths_);
    root_solver_.Solve(precision_[k], widths_, bounds, flux_.Row(fibre).data(), &root);
    Report(task, fibre, root, result);
  }
  root_clock.End(Stage::kResolution);
}

void BundleSolver::Refine(const BundlePlan& plan, const FibreGroup& group, StageTimes* times) {
  std::vector<int> wanted = FirstCovarianceWidths(plan, normal_, group);
  const FibreRange kept = {group.kept.first - group.solved.first, group.kept.count};
  precision_.resize(std::max<size_t>(precision_.size(), kept.count));
  const int reach = std::max(plan.reach, 1);
  const int most = std::max(MostCovarianceWidth(plan), *std::max_element(wanted.begin(), wanted.end()));
  StageClock clock(times);
  double tolerance = kPartialCorrelation;
  for (bool again = true; again; tolerance = kPartialCorrelationAfter) {
    widths_ = CovarianceWidths(wanted);
    covariance_solver_.Solve(system_.matrix, system_.fibres, kept, widths_, &covariance_);
    clock.End(Stage::kCovariance);
    again = false;
    for (int k = 0; k < kept.count; ++k) {
      precision_solver_.Solve(covariance_, k, widths_, &precision_[k]);
      again |= WidenCovariance(precision_[k].last_correlation, widths_, tolerance, reach, most, &wanted);
    }
    clock.End(Stage::kPrecision);
  }
}

void BundleSolver::Report(const BundleTask& task, int fibre, const SquareRoot& root, BundleResult* result) {
  const int pad = task.plan->pad, bins = static_cast<int>(result->mask.shape(1));
  const double width = task.padded.step;
  for (int j = 0; j < bins; ++j) {
    const double s = root.row_sum[j + pad];
    result->flux(fibre, j) = root.applied[j + pad] / s / width;
    result->ivar(fibre, j) = s * s * width * width;
    for (int d = -kResolutionHalfWidth; d <= kResolutionHalfWidth; ++d) {
      const int row = j + pad + d;  // R[row, j + pad]; pads reach further than d
      const double value = root.diagonal[std::abs(d)][std::min(row, j + pad)] / root.row_sum[row];
      result->resolution(fibre, d + kResolutionHalfWidth, j) =
          std::isfinite(value) ? value : (d == 0 ? 1.0 : 0.0);
    }
  }
}

}  // namespace spexd::cpu
