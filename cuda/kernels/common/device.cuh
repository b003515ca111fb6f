// Small tools for device code.
#ifndef SPEXD_CUDA_KERNELS_COMMON_DEVICE_CUH_
#define SPEXD_CUDA_KERNELS_COMMON_DEVICE_CUH_

#include "cuda/kernels/common/machine.cuh"
#include "cuda/plan/tile.h"

namespace spexd::cuda {

__device__ inline double Shuffle(double value, int lane) { return __shfl_sync(kAllLanes, value, lane); }
__device__ inline double ShuffleXor(double value, int mask) {
  return __shfl_xor_sync(kAllLanes, value, mask);
}

__device__ inline double WarpSum(double value) {
#pragma unroll
  for (int mask = kWarp / 2; mask > 0; mask /= 2) value += ShuffleXor(value, mask);
  return value;
}

__device__ inline double WarpMost(double value) {
#pragma unroll
  for (int mask = kWarp / 2; mask > 0; mask /= 2) value = fmax(value, ShuffleXor(value, mask));
  return value;
}

// Sums 8 values over 8 neighbouring lanes. Lane l returns the sum of value l % 8. `value` is overwritten.
__device__ __forceinline__ double SumEach(double (&value)[8]) {
  const int lane = threadIdx.x % kWarp;
#pragma unroll
  for (int width = 4; width > 0; width /= 2) {
#pragma unroll
    for (int k = 0; k < width; ++k) {
      const bool high = (lane & width) != 0;
      const double keep = high ? value[k + width] : value[k], give = high ? value[k] : value[k + width];
      value[k] = keep + ShuffleXor(give, width);
    }
  }
  return value[0];
}

// 1 / x for a positive normal number: the hardware's estimate, then a step that triples its bits.
__device__ inline double Reciprocal(double x) {
  const double y = ReciprocalEstimate(x), e = fma(-x, y, 1.0);
  return fma(y, fma(e, e, e), y);
}

// 1 / sqrt(x) for a positive normal number, by the same method.
__device__ inline double ReciprocalRoot(double x) {
  const double y = ReciprocalRootEstimate(x), e = fma(-x * y, y, 1.0);
  return fma(y, e * fma(e, 0.375, 0.5), y);
}

// ---- Tiles of 8 x 8 in memory: row by row, with the halves of rows 2, 3, 6 and 7 exchanged, so that a warp
// reads pairs of a tile without bank conflicts, and pairs of its transpose with few conflicts.

__device__ inline int TileIndex(int row, int column) { return row * kTile + (column ^ ((row & 2) << 1)); }

// A lane's pair of a tile: row lane / 4, columns 2 (lane % 4) and the next. This is the layout of the matrix
// instructions' results. The same pairs serve as operands of A B^T: they change the order of summation, but
// equally for both operands.
struct LanePositions {
  int row, column;
  int pair;           // offset of the pair in memory
  int transposed[2];  // offsets of the transpose's pair

  __device__ LanePositions() {
    const int lane = threadIdx.x % kWarp;
    row = lane / 4;
    column = 2 * (lane % 4);
    pair = TileIndex(row, column);
    transposed[0] = TileIndex(column, row);
    transposed[1] = TileIndex(column + 1, row);
  }

  __device__ void Load(const double* tile, double (&own)[2]) const {
    const double2 two = *reinterpret_cast<const double2*>(tile + pair);
    own[0] = two.x;
    own[1] = two.y;
  }
  __device__ void LoadTransposed(const double* tile, double (&own)[2]) const {
    own[0] = tile[transposed[0]];
    own[1] = tile[transposed[1]];
  }
  __device__ void Store(double own0, double own1, double* tile) const {
    *reinterpret_cast<double2*>(tile + pair) = {own0, own1};
  }
};

// D (8 x 8) += A B^T (8 x 8 each), on pairs.
__device__ __forceinline__ void MultiplyAdd8(const double (&a)[2], const double (&b)[2], double (&d)[2]) {
  const double nothing[2] = {0, 0};
  double both[4] = {d[0], d[1], 0, 0};
  MultiplyAdd16(a, nothing, b, both);
  d[0] = both[0];
  d[1] = both[1];
}

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_KERNELS_COMMON_DEVICE_CUH_
