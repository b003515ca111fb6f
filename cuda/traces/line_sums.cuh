// A fit of lines by kLineLanes lanes of a warp.
#ifndef SPEXD_CUDA_TRACES_LINE_SUMS_CUH_
#define SPEXD_CUDA_TRACES_LINE_SUMS_CUH_

#include "core/traces/light/line_formula.h"
#include "cuda/kernels/common/machine.cuh"

namespace spexd::cuda {

struct LineRow {
  float flux, weight, model, slope;
};

struct FittedLines {
  traces::LineFit fit;
  traces::LineSolution first;  // the fit that outliers are judged by
  bool clips = false;          // whether there was a first fit

  __device__ bool IsOutlier(const LineRow& row, double z) const {
    return clips && traces::IsLineOutlier(first, row.flux, row.weight, row.model, z, row.slope);
  }
};

__device__ inline double LineStep(int rows) { return 2.0 / max(rows - 1, 1); }

// Lanes that fit together; each takes every kLineLanes-th row. All lanes of a warp must call the functions
// below.
inline constexpr int kLineLanes = 8;

// Returns the sum over these lanes, in each of them.
template <typename T>
__device__ T LineLanesSum(T value) {
#pragma unroll
  for (int mask = kLineLanes / 2; mask > 0; mask /= 2) value += __shfl_xor_sync(kAllLanes, value, mask);
  return value;
}

// Does the fit of core/traces/light/line_fit.h to the rows load(0) .. load(rows - 1).
template <typename Load>
__device__ FittedLines FitLinesOf(int rows, const Load& load) {
  FittedLines lines;
  const double step = LineStep(rows);
#pragma unroll 1
  for (int turn = 0; turn < 2; ++turn) {
    double sum[14] = {};
    int used = 0;
    for (int k = threadIdx.x % kLineLanes; k < rows; k += kLineLanes) {
      const LineRow row = load(k);
      const double z = step * k - 1;
      if (!(row.weight > 0) || lines.IsOutlier(row, z)) continue;
      ++used;
      const double w = row.weight, m = row.model, d = row.slope, f = row.flux;
      const double wm = w * m, wz = w * z, wd = w * d;
      sum[0] += wm * m;
      sum[1] += wm;
      sum[2] += wm * z;
      sum[3] += wm * d;
      sum[4] += w;
      sum[5] += wz;
      sum[6] += wd;
      sum[7] += wz * z;
      sum[8] += wz * d;
      sum[9] += wd * d;
      sum[10] += wm * f;
      sum[11] += w * f;
      sum[12] += wz * f;
      sum[13] += wd * f;
    }
    used = LineLanesSum(used);
#pragma unroll
    for (double& value : sum) value = LineLanesSum(value);
    if (!(sum[4] > 0)) continue;
    traces::LineSums sums;
    int next = 0;
    for (int a = 0; a < 4; ++a) {
      for (int b = a; b < 4; ++b) sums.normal[a][b] = sums.normal[b][a] = sum[next++];
    }
    for (int a = 0; a < 4; ++a) sums.right[a] = sum[next++];
    const traces::LineSolution solution = traces::SolveLines(sums);
    if (turn == 0) {
      lines.first = solution;
      lines.clips = true;
    } else {
      lines.fit = traces::LineFitOf(solution, used);
    }
  }
  return lines;
}

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_TRACES_LINE_SUMS_CUH_
