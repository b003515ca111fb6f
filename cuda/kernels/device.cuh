// Small tools for device code.
#ifndef SPEXD_CUDA_KERNELS_DEVICE_CUH_
#define SPEXD_CUDA_KERNELS_DEVICE_CUH_

#include "cuda/kernels/machine.cuh"
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

// 1 / x for a positive normal number: the hardware's estimate and Newton's steps.
__device__ inline double Reciprocal(double x) {
  double y = ReciprocalEstimate(x);
  double e = fma(-x, y, 1.0);
  e = fma(e, e, e);
  y = fma(y, e, y);
  e = fma(-x, y, 1.0);
  return fma(y, e, y);
}

// 1 / sqrt(x) for a positive normal number, likewise.
__device__ inline double ReciprocalRoot(double x) {
  double y = ReciprocalRootEstimate(x);
  double e = fma(-x * y, y, 1.0);
  y = fma(y, e * fma(e, 0.375, 0.5), y);
  e = fma(-x * y, y, 1.0);
  return fma(0.5 * y, e, y);
}

// Division by the same number over and over: exact for 0 <= n < 2^31 / divisor.
struct Divider {
  int divisor;
  unsigned magic;
  __device__ explicit Divider(int d) : divisor(d), magic(d == 1 ? 0 : 0xffffffffu / d + 1) {}
  __device__ int Quotient(int n) const { return divisor == 1 ? n : static_cast<int>(__umulhi(n, magic)); }
};

// ---- Tiles of 8 x 8 in memory: row by row, with the halves of rows 2, 3, 6 and 7 exchanged, so that a warp
// reads fragments of a tile and of its transpose without bank conflicts.

__device__ inline int TileIndex(int row, int column) { return row * kTile + (column ^ ((row & 2) << 1)); }

// A lane's places in fragments of the matrix instructions: of A (row, k) and of B (k, column) alike [lane /
// 4] [lane % 4 + 4 half]; of the result row lane / 4, columns 2 (lane % 4) and the next.
struct LanePlaces {
  int straight[2];    // of the operand's tile as stored, by half
  int transposed[2];  // of its transpose
  int pair;           // of the D pair
  int row, column;    // of the D pair

  __device__ void Load(const double* tile, double (&operand)[2]) const {
    operand[0] = tile[straight[0]];
    operand[1] = tile[straight[1]];
  }
  __device__ void LoadTransposed(const double* tile, double (&operand)[2]) const {
    operand[0] = tile[transposed[0]];
    operand[1] = tile[transposed[1]];
  }

  __device__ LanePlaces() {
    const int lane = threadIdx.x % kWarp, r = lane / 4, c = lane % 4;
    for (int half = 0; half < 2; ++half) {
      straight[half] = TileIndex(r, c + 4 * half);
      transposed[half] = TileIndex(c + 4 * half, r);
    }
    row = r;
    column = 2 * c;
    pair = TileIndex(r, 2 * c);
  }
};

// D (8 x 8) += A (8 x 8) B (8 x 8).
__device__ __forceinline__ void MultiplyAdd8(const double (&a)[2], const double (&b)[2], double (&d)[2]) {
  const double nothing[2] = {0, 0};
  double both[4] = {d[0], d[1], 0, 0};
  MultiplyAdd16(a, nothing, b, both);
  d[0] = both[0];
  d[1] = both[1];
}

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_KERNELS_DEVICE_CUH_
