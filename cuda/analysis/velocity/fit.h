// Fits of stars from minima of the scan: Levenberg-Marquardt with the continuum projected out, as FitVelocity
// of core/analysis, a block to a fit.
#ifndef SPEXD_CUDA_ANALYSIS_VELOCITY_FIT_H_
#define SPEXD_CUDA_ANALYSIS_VELOCITY_FIT_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "core/analysis/velocity/shared/fit_steps.h"
#include "core/analysis/velocity/shared/template_cell.h"
#include "core/base/host_device.h"
#include "cuda/analysis/spectra_arrays.h"

namespace spexd::cuda {

// One arm of one exposure of a target, which has a continuum of its own.
struct FitSegment {
  int arm;  // in FitArgs::arms
  int row;  // of its spectra
};

// Blocks begin in the order of the starts; results are where a start says.
struct FitStart {
  int first_segment, segments;  // in FitArgs::segments: by arm
  int position;                 // of the outcome
  int first_outcome;            // of those of the segments
  int64_t star, model;          // where the fit's part of FitArgs::stars and ::models begins
  double x[kMaxFitParameters];
};

struct FitOutcome {
  double x[kMaxFitParameters], errors[kMaxFitParameters];  // errors: NaN at the end of a range
  double conditional_error, chi2;
  int evaluations;
  int solved;  // whether the data determine the continua: else only x, chi2 and evaluations are there
};
struct SegmentOutcome {
  double flat, chi2;                             // chi-square of flux 0, and of the star
  double h, g;                                   // FitCurvature's of the velocity
  double coefficients[kMaxContinuumDegree + 1];  // of the continuum
};

// The length of a template's row in FitArgs::coefficients: four samples are read at once.
SPEXD_HOST_DEVICE inline int PaddedSamples(int samples) { return (samples + 3) / 4 * 4; }

struct FitArm {
  SpectraArrays spectra;
  const double* polynomials;  // T_0 .. T_2degree [term, bin]
  const double* log_wave;     // [bin]
  // [template, PaddedSamples(samples)], 0 beyond the samples: of splines through the coefficients of splines
  // through the band-limited templates, so that filters of rotation are as short as their kernels.
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
  // Work space: for each segment of each fit [StarRows(parameters), bin], and the factor of its continuum's
  // matrix [kMaxContinuumTerms^2]; factors are used where a fit has several segments.
  float* stars;
  double* factors;
  float* models;                     // for each segment of each fit [bin]: the star, without continuum
  FitOutcome* outcomes;              // [fit]
  SegmentOutcome* segment_outcomes;  // for each segment of each fit
};
inline constexpr int kMaxContinuumTerms = kMaxContinuumDegree + 1;
// The star, its derivatives by all parameters, and what sums over its bins are weighed with.
SPEXD_HOST_DEVICE inline int StarRows(int template_parameters) { return template_parameters + 4; }

// How a block's shared memory is used; depends on library, grid and device alone.
struct FitPlan {
  int warps;        // of a block
  int samples;      // that a warp mixes at a time
  int filter_half;  // of the widest rotation
  int filter_bytes;
  int warp_bytes;  // of each warp
  int shared_bytes;
};
// `max_spacing`: the most samples between neighbouring bins. `shared_bytes`: what a block may have; where
// that is little, blocks have fewer warps. Libraries of a fraction of a km/s a sample may need more than it
// for one warp: the plan's shared_bytes tells.
FitPlan PlanFit(int parameters, double max_spacing, double step, int shared_bytes);

[[nodiscard]] cudaError_t FitStars(const FitArgs& args, const FitPlan& plan, cudaStream_t stream);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_ANALYSIS_VELOCITY_FIT_H_
