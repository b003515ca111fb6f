// Redshifts of emission lines on a device: core/analysis/lines for all targets at once, in float32; sums of
// the continuum are float64. Every sum has a fixed order.
#ifndef SPEXD_CUDA_ANALYSIS_LINES_LINES_H_
#define SPEXD_CUDA_ANALYSIS_LINES_LINES_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "core/analysis/lines/line_constants.h"

namespace spexd::cuda {

// Where a line falls at a redshift (core/analysis/lines/line_stack.h).
struct LinePosition {
  int32_t bin;
  float part;  // fraction of the way to the next bin
};
struct StackedLine {
  int first = 0, end = 0;            // range of redshifts at which the line is seen
  const LinePosition* at = nullptr;  // [redshift - first]
  float ratio = 0;
};
struct StackedGroup {
  int filter = 0;  // 0: filter of a single line, 1: of the doublet
  int lines = 0;
  StackedLine line[2];
  float max_ratio2 = 0;  // square of the largest ratio
};
inline constexpr int kLineFilters = 2, kMaxLineGroups = 8, kMaxKnownLines = 40, kMaxLineArms = 8;
// The redshifts that are tried, and the lines that explain a peak, for all arms.
struct LineStack {
  int redshifts = 0, near = 0, groups = 0;
  int wide = 1;  // as RedshiftGrid's, like `step`
  double step = 0;
  int known = 0;
  KnownLine known_line[kMaxKnownLines];
};

// N and D of a line at a bin.
struct LineTrace {
  float signal, information;
};
// An arm: where it sees the lines, and their traces in its spectra.
struct LineArm {
  int bins = 0;
  double first_wave = 0, bin = 0;  // as StackPlan's
  StackedGroup group[kMaxLineGroups];
  const float* profiles = nullptr;  // [filter, offset + kProfileHalf, bin]
  LineTrace* traces = nullptr;      // [row, filter, bin]: set by FilterLines
};

// The maxima of a target's stack; see StackMaxima.
struct LineMaxima {
  int32_t best, second;  // second: -1 if there is none
  uint32_t seen, significant;
  float before, dchi2, after, second_dchi2;
  float wide_before, wide_after, unexplained;
};

// The spectra of an arm.
struct LineSpectra {
  int rows = 0;
  const int32_t* fibre = nullptr;  // [row]: index into the spectra
  // [fibre, bin], flat-fielded, sky-subtracted, finite; ivar is 0 where there are no data.
  const float *flux = nullptr, *ivar = nullptr;
  const float* resolution = nullptr;  // [fibre, diagonal, bin]
  float* weighted = nullptr;          // [row, bin]: ivar (flux - continuum); workspace
  LineArm arm;
};

// The stacks of targets, each from its rows in all arms.
struct StackArgs {
  int targets = 0, rows = 0, arms = 0;
  bool frame = false;                  // whether target k is row k of the only arm
  const int32_t* first_row = nullptr;  // [target + 1]: the rows of a target are consecutive
  LineStack stack;
  LineArm arm[kMaxLineArms];
  float* typical = nullptr;      // [arm, row, filter]: medians of the information; workspace
  float* dchi2 = nullptr;        // [target, redshift]; workspace
  LineMaxima* maxima = nullptr;  // [target]: the result
};

// Returns the bytes of shared memory that FindLineResiduals takes.
int64_t LineResidualBytes(int bins);

// Allows the kernels the shared memory that up to `bins` bins need, on the current device.
cudaError_t ConfigureLines(int bins);

// The steps, in this order: for each arm the residuals above the continuum and the traces of both filters;
// then the maxima of the stacks.
cudaError_t FindLineResiduals(const LineSpectra& args, cudaStream_t stream);
cudaError_t FilterLines(const LineSpectra& args, cudaStream_t stream);
cudaError_t StackLines(const StackArgs& args, cudaStream_t stream);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_ANALYSIS_LINES_LINES_H_
