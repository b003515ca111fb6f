// Runs the stages for one bundle, in memory that is reused from bundle to bundle.
#ifndef SPEXD_CORE_EXTRACT_CPU_BUNDLE_SOLVER_H_
#define SPEXD_CORE_EXTRACT_CPU_BUNDLE_SOLVER_H_

#include <cstdint>
#include <stop_token>

#include "absl/status/statusor.h"
#include "core/extract/cpu/spots/spots.h"
#include "core/extract/cpu/stages/bundle_image.h"
#include "core/extract/cpu/stages/eliminate.h"
#include "core/extract/cpu/stages/model.h"
#include "core/extract/cpu/stages/normal.h"
#include "core/extract/cpu/stages/resolution.h"
#include "core/extract/cpu/stages/solve.h"
#include "core/extract/engine.h"
#include "core/plan/bundle_plan.h"

namespace spexd::cpu {

struct BundleTask {
  const Psf* psf = nullptr;
  ImagePlanes image;
  const BundlePlan* plan = nullptr;
  WavelengthGrid padded;  // the grid that is solved on
  double psferr = 0;
  double regularize = 0;
  bool fine_grid = false;
  bool want_model = false;
};

class BundleSolver {
 public:
  // Solves all fibres of the bundle, on the grid without its pads. Adds to `times`. A bundle whose flux does
  // not converge has a status of its own (BundleResult). Cancelled within 100 ms of a stop request.
  absl::StatusOr<BundleResult> Solve(const BundleTask& task, const std::stop_token& stop, StageTimes* times);

  // An upper estimate of the memory that Solve holds for a bundle of `fibres` fibres, from the PSF and the
  // grid only. It takes no time. `padded`: the grid with its pads.
  static int64_t Bytes(const Psf& psf, const WavelengthGrid& padded, int fibres);
  // The same estimate once the bundle is planned. It is not less, and more where traces differ from those of
  // the few fibres that the estimate looks at.
  static int64_t Bytes(const Psf& psf, const WavelengthGrid& padded, const BundlePlan& plan);

 private:
  bool SolveFlux(const BundleTask& task, const std::stop_token& stop, StageTimes* times, double* residual);
  bool TakeRoots(const BundleTask& task, const std::stop_token& stop, BundleResult* result);
  void Report(const BundleTask& task, int fibre, const SquareRoot& root, BundleResult* result);
  void Judge(const BundleTask& task, BundleResult* result);

  BundleImage image_;
  Spots spots_;
  NormalEquations normal_;
  Elimination elimination_;
  FluxSolver flux_solver_;
  SquareRootSolver root_solver_;
  SpotSums sums_;
  Array<double, 2> flux_;  // deconvolved, [fibre, padded bin]
};

}  // namespace spexd::cpu

#endif  // SPEXD_CORE_EXTRACT_CPU_BUNDLE_SOLVER_H_
