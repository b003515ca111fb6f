// Lines: matched filters with each fibre's own resolution. Each thread processes a bin. The image P = R G of
// its line passes through a window of registers, from which both filters take D = diag(P^T W P) row by row.
//
// Floor for a frame: R, residuals and ivar are read and traces written, 80 MB: 17 us; 1.6 GFLOP: 27 us. The
// elements of R come from shared memory, one for two multiply-adds: 50 us.
#include "core/analysis/edge_bins.h"
#include "core/analysis/lines/line_constants.h"
#include "core/model/frame.h"
#include "cuda/analysis/lines/lines.h"
#include "cuda/kernels/common/machine.cuh"

namespace spexd::cuda {
namespace {

constexpr int kThreads = 256;  // bins of a block
constexpr int kProfileRows = 2 * kProfileHalf + 1;
constexpr int kCarriedHalf = kProfileHalf + kResolutionHalfWidth;
constexpr int kColumns = kThreads + 2 * kProfileHalf;  // columns of R that the block's lines fall on
constexpr int kRows = kThreads + 2 * kCarriedHalf;

// The values that a block's bins need; 0 beyond the spectrum.
struct Tile {
  float resolution[kResolutionDiagonals][kColumns];  // from column first - kProfileHalf
  float weighted[kRows], ivar[kRows];                // from row first - kCarriedHalf
  float carried[kColumns];                           // R^T of `weighted`
};

// Loads a tile. Elements of R outside the matrix count as 0, whatever files hold there.
__device__ void LoadTile(const LineSpectra& args, int row, int first, Tile* tile) {
  const int64_t fibre = args.fibre[row];
  for (int t = threadIdx.x; t < kRows; t += kThreads) {
    const int j = first - kCarriedHalf + t;
    const bool inside = j >= kEdgeBins && j < args.arm.bins - kEdgeBins;
    tile->ivar[t] = inside ? args.ivar[fibre * args.arm.bins + j] : 0;
    tile->weighted[t] = inside ? args.weighted[static_cast<int64_t>(row) * args.arm.bins + j] : 0;
  }
  for (int k = 0; k < kResolutionDiagonals; ++k) {
    const float* const diagonal = args.resolution + (fibre * kResolutionDiagonals + k) * args.arm.bins;
    for (int t = threadIdx.x; t < kColumns; t += kThreads) {
      const int column = first - kProfileHalf + t, at = column + k - kResolutionHalfWidth;
      const bool inside = column >= 0 && column < args.arm.bins && at >= 0 && at < args.arm.bins;
      tile->resolution[k][t] = inside ? diagonal[column] : 0;
    }
  }
}

__device__ void CarryBack(Tile* tile) {
  for (int t = threadIdx.x; t < kColumns; t += kThreads) {
    float sum = 0;
    for (int k = 0; k < kResolutionDiagonals; ++k) sum += tile->resolution[k][t] * tile->weighted[t + k];
    tile->carried[t] = sum;
  }
}

// A filter's trace at one bin, and the rows of P to which later columns of R still add.
struct Filter {
  float window[kResolutionDiagonals] = {};  // row r at r % kResolutionDiagonals
  float signal = 0, information = 0;

  __device__ __forceinline__ void TakeRow(int slot, float ivar) {
    information += ivar * window[slot] * window[slot];
    window[slot] = 0;
  }
};

__global__ void __launch_bounds__(kThreads) LineFilter(LineSpectra args) {
  __shared__ Tile tile;
  const int first = blockIdx.x * kThreads, row = blockIdx.y, t = threadIdx.x, bins = args.arm.bins;
  LoadTile(args, row, first, &tile);
  __syncthreads();
  CarryBack(&tile);
  __syncthreads();
  if (first + t >= bins) return;
  Filter filter[kLineFilters];
#pragma unroll
  for (int p = 0; p < kProfileRows; ++p) {
    float profile[kLineFilters];
#pragma unroll
    for (int f = 0; f < kLineFilters; ++f) {
      profile[f] = args.arm.profiles[(f * kProfileRows + p) * int64_t{bins} + first + t];
      filter[f].signal += profile[f] * tile.carried[t + p];
    }
#pragma unroll
    for (int k = 0; k < kResolutionDiagonals; ++k) {
      const float r = tile.resolution[k][t + p];
#pragma unroll
      for (int f = 0; f < kLineFilters; ++f)
        filter[f].window[(p + k) % kResolutionDiagonals] += r * profile[f];
    }
#pragma unroll
    for (int f = 0; f < kLineFilters; ++f) filter[f].TakeRow(p % kResolutionDiagonals, tile.ivar[t + p]);
  }
#pragma unroll
  for (int p = kProfileRows; p < kProfileRows + kResolutionDiagonals - 1; ++p) {
#pragma unroll
    for (int f = 0; f < kLineFilters; ++f) filter[f].TakeRow(p % kResolutionDiagonals, tile.ivar[t + p]);
  }
#pragma unroll
  for (int f = 0; f < kLineFilters; ++f) {
    args.arm.traces[(static_cast<int64_t>(row) * kLineFilters + f) * bins + first + t] = {filter[f].signal,
                                                                                      filter[f].information};
  }
}

}  // namespace

cudaError_t FilterLines(const LineSpectra& args, cudaStream_t stream) {
  const dim3 grid((args.arm.bins + kThreads - 1) / kThreads, args.rows);
  return Launch(LineFilter, grid, kThreads, 0, stream, args);
}

}  // namespace spexd::cuda
