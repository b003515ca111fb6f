// Sequences the stages for one bundle, in memory that is reused from bundle to bundle.
#ifndef SPEXD_CORE_EXTRACT_CPU_BUNDLE_SOLVER_H_
#define SPEXD_CORE_EXTRACT_CPU_BUNDLE_SOLVER_H_

#include <cstdint>
#include <vector>

#include "core/extract/cpu/bundle_image.h"
#include "core/extract/cpu/covariance.h"
#include "core/extract/cpu/normal.h"
#include "core/extract/cpu/precision.h"
#include "core/extract/cpu/resolution.h"
#include "core/extract/cpu/spots.h"
#include "core/extract/engine.h"
#include "core/plan/bundle_plan.h"

namespace spexd::cpu {

struct BundleTask {
  const Psf* psf = nullptr;
  const Image* image = nullptr;
  const BundlePlan* plan = nullptr;
  WavelengthGrid padded;  // the grid solved on
  double psferr = 0;
  double regularize = 0;
  bool fine_grid = false;
  bool want_model = false;
};

class BundleSolver {
 public:
  // All fibres of the bundle, on the grid without its pads. Adds to `times`.
  BundleResult Solve(const BundleTask& task, StageTimes* times);

  // Upper estimate of the memory that Solve holds.
  static int64_t Bytes(const Psf& psf, const BundlePlan& plan);

 private:
  void SolveGroup(const BundleTask& task, const FibreGroup& group, StageTimes* times, BundleResult* result);
  // Covariance and precision of the group's kept fibres, as wide as the data ask for.
  void Refine(const BundlePlan& plan, const FibreGroup& group, StageTimes* times);
  void Report(const BundleTask& task, int fibre, const SquareRoot& root, BundleResult* result);

  BundleImage image_;
  Spots spots_;
  NormalEquations normal_;
  GroupSystem system_;
  CovarianceSolver covariance_solver_;
  FibreCovariance covariance_;
  std::vector<int> widths_;
  PrecisionSolver precision_solver_;
  std::vector<BandedPrecision> precision_;  // of the group's kept fibres
  SquareRootSolver root_solver_;
  Array<double, 2> flux_;   // deconvolved, [fibre, padded bin]
  Array<uint8_t, 2> weak_;  // [fibre, padded bin]
};

}  // namespace spexd::cpu

#endif  // SPEXD_CORE_EXTRACT_CPU_BUNDLE_SOLVER_H_
