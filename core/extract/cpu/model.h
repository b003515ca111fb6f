// Stage "model": the bundle's model image, chi-square and masks.
#ifndef SPEXD_CORE_EXTRACT_CPU_MODEL_H_
#define SPEXD_CORE_EXTRACT_CPU_MODEL_H_

#include "core/base/array.h"
#include "core/extract/cpu/bundle_image.h"
#include "core/extract/cpu/spots.h"
#include "core/extract/engine.h"
#include "core/extract/formulas.h"
#include "core/plan/bundle_plan.h"

namespace spexd::cpu {

// flux: deconvolved, [fibre, padded bin], electrons per bin. Fills image->model() and image->chi2().
void ComputeModel(const BundlePlan& plan, const Spots& spots, const Array<double, 2>& flux, double psferr,
                  BundleImage* image);

// What spot (fibre, bin) sees of usable pixels and of chi-square. REQUIRES: ComputeModel.
BinQuality JudgeSpot(const BundlePlan& plan, const Spots& spots, const BundleImage& image, const double* chi2,
                     int fibre, int bin, bool weak);

// The part of the model that lies on the CCD.
ModelWindow CutModel(BundleImage* image);

}  // namespace spexd::cpu

#endif  // SPEXD_CORE_EXTRACT_CPU_MODEL_H_
