// Square roots by tiles of 8 x 8, what their kernels share. As in solve.cu and covariance.cu, with L^-1 of a
// diagonal tile at hand a step is
//   X_k = S_k L^-T,   S_kl -= X_k X_l^T,   Z_k = (X_k L^-1)^T,   D^-1 = L^-T L^-1,
// and backwards, with C the inverse,
//   C_k0 = -sum_l C_kl Z_l^T,   C_00 = D^-1 - sum_k Z_k C_k0.
// Both right-hand sides are rows below the band: U of the first step, and F = U D^-1 - sum_l F_l Z_l^T.
#ifndef SPEXD_CUDA_KERNELS_ROOT_TILES_CUH_
#define SPEXD_CUDA_KERNELS_ROOT_TILES_CUH_

#include "cuda/kernels/factor_tile.cuh"
#include "cuda/kernels/roots.cuh"

namespace spexd::cuda {

inline constexpr int kRootThreads = kPoleBlock * kWarp;  // a warp to a pole

__host__ __device__ inline int TileColumns(int bins) { return (bins + kTile - 1) / kTile; }

// What the backward pass wants of a tile column, in doubles: D^-1, Z of the tiles below, by pairs of lanes,
// and two rows of X L^-1, X being U L^-T.
__host__ __device__ constexpr int KeptOf(int tiles) { return (tiles + 1) * kTileSize + 2 * kTile; }

// A tile on its way to its transpose: rows are so far apart that columns are read without bank conflicts.
inline constexpr int kTurnStride = kTile + 2;
inline constexpr int kTurnSize = kTile * kTurnStride;

__device__ __forceinline__ void Put(double* turn, const LanePlaces& at, const double (&tile)[2]) {
  *reinterpret_cast<double2*>(turn + at.row * kTurnStride + at.column) = {tile[0], tile[1]};
}
__device__ __forceinline__ void TakeTurned(const double* turn, const LanePlaces& at, double (&tile)[2]) {
  tile[0] = turn[at.column * kTurnStride + at.row];
  tile[1] = turn[(at.column + 1) * kTurnStride + at.row];
}

// Of shared memory, in doubles, for the block.
inline constexpr int kRootShares = 2 * kPoleBlock * kTileSize;

// Sums what a tile column has for the result over the block's poles.
struct RootReport {
  const JobView& job;
  const RootTask& task;
  const ChunkBins& bins;
  const LanePlaces& at;
  double weight;   // of this warp's pole
  double* shares;  // kRootShares

  // C_00, C_10 and F_0 of a tile column; by all warps, columns one after the other.
  __device__ __forceinline__ void operator()(int column, const double (&near)[2], const double (&far)[2],
                                             const double (&solution)[2]) const {
    const int first = bins.first + column * kTile;
    if (first >= bins.core_end) return;
    double* const share = shares + column % 2 * kPoleBlock * kTileSize;
    double* const own = share + threadIdx.x / kWarp * kTileSize;
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const int bin = at.column + c, d = at.row - bin;
      if (d >= 0 && d <= kResolutionHalfWidth) own[bin * kPoleSums + d] = weight * near[c];
      if (d + kTile <= kResolutionHalfWidth) own[bin * kPoleSums + d + kTile] = weight * far[c];
      if (at.row < 2) own[bin * kPoleSums + kPoleSums - 2 + at.row] = weight * solution[c];
    }
    // One barrier is enough: a share is written again two columns on.
    __syncthreads();
    const int bin = first + static_cast<int>(threadIdx.x) / kPoleSums;
    if (threadIdx.x >= kTileSize || bin < bins.core || bin >= bins.core_end) return;
    double sum = 0;
    for (int p = 0; p < kPoleBlock; ++p) sum += share[p * kTileSize + threadIdx.x];
    SumsAt(job, task.pole_block, task.fibre, bins.first)[column * kTileSize + threadIdx.x] = sum;
  }
};

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_KERNELS_ROOT_TILES_CUH_
