// Stage "model": the bundle's model image, chi-square, and their sums over each spot.
#ifndef SPEXD_CORE_EXTRACT_CPU_STAGES_MODEL_H_
#define SPEXD_CORE_EXTRACT_CPU_STAGES_MODEL_H_

#include <stop_token>

#include "core/base/array.h"
#include "core/extract/cpu/spots/spots.h"
#include "core/extract/cpu/stages/bundle_image.h"
#include "core/extract/engine.h"
#include "core/plan/bundle_plan.h"

namespace spexd::cpu {

// Sums over the pixels of spots, [fibre, padded bin], for JudgeBin.
struct SpotSums {
  Array<double, 2> coverage, chi2;
};

struct ModelTask {
  const BundlePlan* plan;
  const Spots* spots;
  const Array<double, 2>* flux;  // deconvolved, [fibre, padded bin], electrons per bin
  double psferr;
};

// Fills image->model() and the sums. Returns false if stopped.
bool ComputeModel(const ModelTask& task, const std::stop_token& stop, BundleImage* image, SpotSums* sums);

// The part of the model that lies on the CCD.
ModelWindow CutModel(BundleImage* image);

}  // namespace spexd::cpu

#endif  // SPEXD_CORE_EXTRACT_CPU_STAGES_MODEL_H_
