// Code shared by the kernels that compute square roots by tiles of 8 x 8. The factor is that of
// tiled_factor.cuh. The backward pass, with Z_k = (X_k L^-1)^T and C the inverse, is
//   C_k0 = -sum_l C_kl Z_l^T,   C_00 = D^-1 - sum_k Z_k C_k0,   D^-1 = L^-T L^-1.
// Both right-hand sides are rows below the band: U of the first step, and F = U D^-1 - sum_l F_l Z_l^T.
#ifndef SPEXD_CUDA_KERNELS_ROOT_ROOT_TILES_CUH_
#define SPEXD_CUDA_KERNELS_ROOT_ROOT_TILES_CUH_

#include "cuda/kernels/factor/tiled_factor.cuh"
#include "cuda/kernels/root/roots.cuh"

namespace spexd::cuda {

inline constexpr int kRootThreads = kPoleGroup * kWarp;  // one warp per pole

// Doubles that the backward pass needs of a tile column: D^-1, Z of the tiles below (by pairs of lanes), and
// two rows of X L^-1, where X = U L^-T.
__host__ __device__ constexpr int KeptOf(int tiles) { return (tiles + 1) * kTileSize + 2 * kTile; }

// Writes the values that KeptOf counts, from tile column `first` on. Those of a halo before the core are not
// read again.
struct KeptRoot {
  double* kept;
  int tiles, first;

  __device__ double* At(int column) const { return kept + int64_t{column - first} * KeptOf(tiles); }
  template <int kTiles>
  __device__ __forceinline__ void Column(int column, const double (&)[2], const double (&transposed)[2],
                                         const double (&x)[kTiles][2], const double (&x_right)[2]) const {
    if (column < first) return;
    double* const to = At(column);
    double ends[2][2] = {{transposed[0], transposed[1]}, {x_right[0], x_right[1]}}, made[2][2] = {};
    AddProducts<2>(ends, transposed, made);
    StorePair(to, made[0][0], made[0][1]);
    if (threadIdx.x % kWarp < kTile) StorePair(to + (kTiles + 1) * kTileSize, made[1][0], made[1][1]);
#pragma unroll
    for (int k = 0; k < kTiles; ++k) {
      double z[2] = {0, 0};
      MultiplyAdd8(transposed, x[k], z);
      StorePair(to + (k + 1) * kTileSize, z[0], z[1]);
    }
  }
  __device__ void Diagonal(int column, const double (&)[2], const double (&transposed)[2]) const {
    if (column < first) return;
    double inverse[2] = {0, 0};
    MultiplyAdd8(transposed, transposed, inverse);
    StorePair(At(column), inverse[0], inverse[1]);
  }
  __device__ void Right(int column, const double (&transposed)[2], const double (&x_right)[2]) const {
    if (column < first) return;
    double w[2] = {0, 0};
    MultiplyAdd8(x_right, transposed, w);
    if (threadIdx.x % kWarp < kTile) StorePair(At(column) + (tiles + 1) * kTileSize, w[0], w[1]);
  }
  __device__ void Below(int column, int k, const double (&transposed)[2], const double (&x)[2]) const {
    if (column < first) return;
    double z[2] = {0, 0};
    MultiplyAdd8(transposed, x, z);
    StorePair(At(column) + k * kTileSize, z[0], z[1]);
  }
  __device__ void Beyond(int, int, int) const {}
};

// Shared memory of a block, in doubles.
inline constexpr int kRootShares = 2 * kPoleGroup * kTileSize;

// Sums a tile column's contributions to the result over the block's poles.
struct RootReport {
  const RootArgs& args;
  const RootTask& task;
  const ChunkRange& bins;
  const LanePositions& at;
  double weight;   // weight of this warp's pole
  bool begins;     // whether this group of poles begins the sums
  double* shares;  // kRootShares

  // Adds C_00, C_10 and F_0 of a tile column. All warps call it, one column after the other.
  __device__ __forceinline__ void operator()(int column, const double (&near)[2], const double (&far)[2],
                                             const double (&solution)[2]) const {
    const int first = bins.first + column * kTile;
    if (first >= bins.core_end) return;
    double* const share = shares + column % 2 * kPoleGroup * kTileSize;
    double* const own = share + threadIdx.x / kWarp * kTileSize;
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const int bin = at.column + c, d = at.row - bin;
      if (d >= 0 && d <= kResolutionHalfWidth) own[bin * kPoleSums + d] = weight * near[c];
      if (d + kTile <= kResolutionHalfWidth) own[bin * kPoleSums + d + kTile] = weight * far[c];
      if (at.row < 2) own[bin * kPoleSums + kPoleSums - 2 + at.row] = weight * solution[c];
    }
    // One barrier is enough: a share is written again only two columns later.
    __syncthreads();
    const int bin = first + static_cast<int>(threadIdx.x) / kPoleSums;
    if (threadIdx.x >= kTileSize || bin < bins.core || bin >= bins.core_end) return;
    double sum = 0;
    for (int p = 0; p < kPoleGroup; ++p) sum += share[p * kTileSize + threadIdx.x];
    double& to = SumsAt(args, task.slot, task.fibre, bins.first)[column * kTileSize + threadIdx.x];
    to = begins ? sum : to + sum;
  }
};

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_KERNELS_ROOT_ROOT_TILES_CUH_
