// Fits of stars from minima of the scan: Levenberg-Marquardt with the continuum projected out, as FitVelocity
// of core/analysis, a block to a fit.
#ifndef SPEXD_CUDA_ANALYSIS_VELOCITY_FIT_H_
#define SPEXD_CUDA_ANALYSIS_VELOCITY_FIT_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "core/analysis/velocity/shared/fit_steps.h"
#include "core/analysis/velocity/shared/template_cell.h"
#include "cuda/analysis/spectra_arrays.h"

namespace spexd::cuda {

struct FitStart {
  int row;  // of the spectra
  double x[kMostFitParameters];
};

struct FitOutcome {
  double x[kMostFitParameters], errors[kMostFitParameters];  // errors: NaN at the end of a range
  double conditional_error, chi2;
  double coefficients[kMostContinuumDegree + 1];  // of the continuum
  int evaluations;
  int solved;  // whether the data determine the continuum: else only x, chi2 and evaluations are there
};

struct FitArgs {
  SpectraArrays spectra;
  int edge, degree;
  const double* polynomials;  // T_0 .. T_2degree [term, bin]
  const double* log_wave;     // [bin]
  // [template, sample]: of splines through the coefficients of splines through the band-limited templates, so
  // that filters of rotation are as short as their kernels.
  const float* coefficients;
  int samples;
  double first, step;  // ln wavelength
  TemplateAxes axes;
  FitRanges ranges;
  bool rotation;
  const FitStart* starts;  // [count]
  int count;
  float* stars;          // [fit, 2 + parameters + 1, bin], work space
  float* models;         // [fit, bin]: the star, without continuum
  FitOutcome* outcomes;  // [fit]
};

// How a block's shared memory is used; depends on grid and library alone.
struct FitPlan {
  int chunk_bins;     // bins whose templates are mixed at a time
  int chunk_samples;  // samples that they take
  int filter_half;    // of the widest rotation
  int shared_bytes;
};
// `most_spacing`: the most samples between neighbouring bins. REQUIRES: shared memory for at least 32 bins at
// a time, which libraries of 1 km/s a sample leave; shared_bytes tells.
FitPlan PlanFit(int bins, int parameters, double most_spacing, double step);

[[nodiscard]] cudaError_t FitStars(const FitArgs& args, const FitPlan& plan, cudaStream_t stream);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_ANALYSIS_VELOCITY_FIT_H_
