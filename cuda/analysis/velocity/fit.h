// Fits of stars from minima of the scan: Levenberg-Marquardt with the continuum projected out, as in
// FitVelocity of core/analysis. Each block does one fit.
#ifndef SPEXD_CUDA_ANALYSIS_VELOCITY_FIT_H_
#define SPEXD_CUDA_ANALYSIS_VELOCITY_FIT_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "core/analysis/velocity/shared/fit_steps.h"
#include "core/analysis/velocity/shared/template_cell.h"
#include "core/base/host_device.h"
#include "cuda/analysis/spectra_arrays.h"

namespace spexd::cuda {

// One arm of one exposure of a target. Each segment has its own continuum.
struct FitSegment {
  int arm;  // index into FitArgs::arms
  int row;  // row of the arm's spectra
};

// A fit's starting point. Blocks begin in the order of the starts; `position` says where the result goes.
struct FitStart {
  int first_segment, segments;  // in FitArgs::segments, ordered by arm
  int position;                 // index of the outcome
  int first_outcome;            // index of the first segment's outcome
  int64_t star, model;          // where the fit's part of FitArgs::stars and ::models begins
  double x[kMaxFitParameters];
};

struct FitOutcome {
  double x[kMaxFitParameters], errors[kMaxFitParameters];  // errors: NaN at the end of a range
  double conditional_error, chi2;
  int evaluations;
  int solved;  // whether the data determine the continua; if not, only x, chi2 and evaluations are set
};
struct SegmentOutcome {
  double flat, chi2;                             // chi-square of flux 0, and of the star
  double h, g;                                   // FitCurvature's of the velocity
  double coefficients[kMaxContinuumDegree + 1];  // of the continuum
};

// Returns the length of a template's row in FitArgs::coefficients: a multiple of 4, because four samples are
// read at once.
SPEXD_HOST_DEVICE inline int PaddedSamples(int samples) { return (samples + 3) / 4 * 4; }

struct FitArm {
  SpectraArrays spectra;
  const double* polynomials;  // T_0 .. T_2degree [term, bin]
  const double* log_wave;     // [bin]
  // [template, PaddedSamples(samples)], 0 beyond the samples: coefficients of splines through the spline
  // coefficients of the band-limited templates. With them the filters of rotation are as short as their
  // kernels.
  const float* coefficients;
};
inline constexpr int kMaxFitArms = 8;

struct FitArgs {
  FitArm arms[kMaxFitArms];
  int edge, degree;
  int samples;
  double first, step;  // ln wavelength
  TemplateAxes axes;
  FitRanges ranges;
  bool rotation;
  const FitSegment* segments;
  const FitStart* starts;  // [count]
  int count;
  // Workspace: for each segment of each fit [StarRows(parameters), bin], and the factor of its continuum's
  // matrix [kMaxContinuumTerms^2]. Factors are used only if a fit has several segments.
  float* stars;
  double* factors;
  float* models;                     // for each segment of each fit [bin]: the star without its continuum
  FitOutcome* outcomes;              // [fit]
  SegmentOutcome* segment_outcomes;  // for each segment of each fit
};
inline constexpr int kMaxContinuumTerms = kMaxContinuumDegree + 1;
// The rows of a star: its spectrum, the derivatives by all parameters, and the weights of sums over its bins.
SPEXD_HOST_DEVICE inline int StarRows(int template_parameters) { return template_parameters + 4; }

// The use of a block's shared memory. It depends only on library, grid and device.
struct FitPlan {
  int warps;        // warps of a block
  int samples;      // samples that a warp mixes at a time
  int filter_half;  // half length of the filter of the fastest rotation
  int filter_bytes;
  int warp_bytes;  // of each warp
  int shared_bytes;
};
// `max_spacing`: the most samples between adjacent bins. `shared_bytes`: limit for a block; with little
// shared memory blocks have fewer warps. Libraries with a fraction of a km/s a sample may exceed the limit
// even with one warp: compare the plan's shared_bytes with it.
FitPlan PlanFit(int parameters, double max_spacing, double step, int shared_bytes);

[[nodiscard]] cudaError_t FitStars(const FitArgs& args, const FitPlan& plan, cudaStream_t stream);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_ANALYSIS_VELOCITY_FIT_H_
