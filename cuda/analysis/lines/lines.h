// Redshifts of emission lines on a device: core/analysis/lines for all rows at once, float32 with sums of the
// continuum in float64. Every sum has a fixed order.
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
inline constexpr int kLineFilters = 2, kMaxLineGroups = 8, kMaxKnownLines = 40;
struct LineStackArrays {
  int redshifts = 0, near = 0, groups = 0;
  StackedGroup group[kMaxLineGroups];
  int wide = 1;  // as StackPlan's, like the next three
  double step = 0, first_wave = 0, bin = 0;
  int known = 0;
  KnownLine known_line[kMaxKnownLines];
  const float* profiles = nullptr;  // [filter, offset + kProfileHalf, bin]
};

// N and D of a line at a bin.
struct LineTrace {
  float signal, information;
};
// The maxima of a row's stack; see StackMaxima.
struct LineMaxima {
  int32_t best, second;  // second: -1 if there is none
  uint32_t seen, significant;
  float before, dchi2, after, second_dchi2;
  float wide_before, wide_after, unexplained;
};

struct LinesArgs {
  int rows = 0, bins = 0;
  const int32_t* fibre = nullptr;  // [row]: of the spectra
  // [fibre, bin], flat-fielded, without the sky, finite; ivar is 0 where there are no data.
  const float *flux = nullptr, *ivar = nullptr;
  const float* resolution = nullptr;  // [fibre, diagonal, bin]
  LineStackArrays stack;
  // Workspace.
  float* weighted = nullptr;     // [row, bin]: ivar (flux - continuum)
  LineTrace* traces = nullptr;   // [row, filter, bin]
  float* dchi2 = nullptr;        // [row, redshift]
  LineMaxima* maxima = nullptr;  // [row]: the result
};

// Bytes of shared memory that FindLineResiduals takes.
int64_t LineResidualBytes(int bins);

// Allows the kernels the shared memory that `bins` need. Once for each device and number of bins.
cudaError_t ConfigureLines(int bins);

// The steps, in this order: residuals above the continuum, traces of both filters, maxima of the stack.
cudaError_t FindLineResiduals(const LinesArgs& args, cudaStream_t stream);
cudaError_t FilterLines(const LinesArgs& args, cudaStream_t stream);
cudaError_t StackLines(const LinesArgs& args, cudaStream_t stream);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_ANALYSIS_LINES_LINES_H_
