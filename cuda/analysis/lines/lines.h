// Redshifts of emission lines on a device: core/analysis/lines for all targets at once, float32 with sums of
// the continuum in float64. Every sum has a fixed order.
#ifndef SPEXD_CUDA_ANALYSIS_LINES_LINES_H_
#define SPEXD_CUDA_ANALYSIS_LINES_LINES_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "core/analysis/lines/line_constants.h"

namespace spexd::cuda {

// core/analysis/lines/line_stack.h as kernels take it.
struct LinePosition {
  int32_t bin;
  float part;  // of the way to the next bin
};
struct StackedLine {
  int first = 0, end = 0;         // redshifts at which the line is seen
  const LinePosition* at = nullptr;  // [redshift - first]
  float ratio = 0;
};
struct StackedGroup {
  int filter = 0;  // 0: that of a single line, 1: that of the doublet
  int lines = 0;
  StackedLine line[2];
  float max_ratio2 = 0;  // the largest ratio's square
};
inline constexpr int kLineFilters = 2, kMaxLineGroups = 8, kMaxKnownLines = 40, kMaxLineArms = 8;
// The redshifts that are tried, and the lines that explain a peak: of all arms.
struct LineStack {
  int redshifts = 0, near = 0, groups = 0;
  int wide = 1;  // as RedshiftGrid's, like the next
  double step = 0;
  int known = 0;
  KnownLine known_line[kMaxKnownLines];
};

// N and D of a line at a bin.
struct LineTrace {
  float signal, information;
};
// An arm: where it sees the lines, and what its spectra tell of them.
struct LineArm {
  int bins = 0;
  double first_wave = 0, bin = 0;  // as StackPlan's
  StackedGroup group[kMaxLineGroups];
  const float* profiles = nullptr;  // [filter, offset + kProfileHalf, bin]
  LineTrace* traces = nullptr;      // [row, filter, bin]: FilterLines makes them
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
  const int32_t* fibre = nullptr;  // [row]: of the spectra
  // [fibre, bin], flat-fielded, without the sky, finite; ivar is 0 where there are no data.
  const float *flux = nullptr, *ivar = nullptr;
  const float* resolution = nullptr;  // [fibre, diagonal, bin]
  float* weighted = nullptr;          // [row, bin]: ivar (flux - continuum); workspace
  LineArm arm;
};

// The stacks of targets, each from its rows in all arms.
struct StackArgs {
  int targets = 0, rows = 0, arms = 0;
  bool frame = false;                  // whether each target is a row of the only arm, in order
  const int32_t* first_row = nullptr;  // [target + 1]: its rows follow each other
  LineStack stack;
  LineArm arm[kMaxLineArms];
  float* typical = nullptr;      // [arm, row, filter]: medians of the information; workspace, like the next
  float* dchi2 = nullptr;        // [target, redshift]
  LineMaxima* maxima = nullptr;  // [target]: the result
};

// Bytes of shared memory that FindLineResiduals takes.
int64_t LineResidualBytes(int bins);

// Allows the kernels the shared memory that `bins` and fewer need, on the current device.
cudaError_t ConfigureLines(int bins);

// The steps, in this order: of each arm residuals above the continuum and traces of both filters; then maxima
// of the stacks.
cudaError_t FindLineResiduals(const LineSpectra& args, cudaStream_t stream);
cudaError_t FilterLines(const LineSpectra& args, cudaStream_t stream);
cudaError_t StackLines(const StackArgs& args, cudaStream_t stream);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_ANALYSIS_LINES_LINES_H_
