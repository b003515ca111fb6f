// Small tools for device code.
#ifndef SPEXD_CUDA_KERNELS_DEVICE_CUH_
#define SPEXD_CUDA_KERNELS_DEVICE_CUH_

#include <cstdint>

#include "cuda/plan/tile.h"

namespace spexd::cuda {

inline constexpr unsigned kAllLanes = 0xffffffffu;
inline constexpr int kWarp = 32;

__device__ inline double Shuffle(double value, int lane) { return __shfl_sync(kAllLanes, value, lane); }
__device__ inline double ShuffleXor(double value, int mask) { return __shfl_xor_sync(kAllLanes, value, mask); }

__device__ inline double WarpSum(double value) {
#pragma unroll
  for (int mask = kWarp / 2; mask > 0; mask /= 2) value += ShuffleXor(value, mask);
  return value;
}

// 1 / x for a positive normal number: the hardware's estimate and Newton's steps.
__device__ inline double Reciprocal(double x) {
  double y;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
  double e = fma(-x, y, 1.0);
  e = fma(e, e, e);
  y = fma(y, e, y);
  e = fma(-x, y, 1.0);
  return fma(y, e, y);
}

// 1 / sqrt(x) for a positive normal number, likewise.
__device__ inline double ReciprocalRoot(double x) {
  double y;
  asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
  double e = fma(-x * y, y, 1.0);
  y = fma(y, e * fma(e, 0.375, 0.5), y);
  e = fma(-x * y, y, 1.0);
  return fma(0.5 * y, e, y);
}

// ---- Copies from device to shared memory that run beside the arithmetic.

__device__ inline void CopyAsync8(void* to, const void* from) {
  const uint32_t at = static_cast<uint32_t>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(at), "l"(from) : "memory");
}
__device__ inline void CopyAsync16(void* to, const void* from) {
  const uint32_t at = static_cast<uint32_t>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from) : "memory");
}
__device__ inline void CopyAsyncCommit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until at most kPending of this thread's latest groups are under way.
template <int kPending>
__device__ inline void CopyAsyncWait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

// ---- Tiles of 8 x 8 in memory: row by row, with the halves of rows 2, 3, 6 and 7 exchanged, so that a warp
// reads fragments of a tile and of its transpose without bank conflicts.

__device__ inline int TileIndex(int row, int column) { return row * kTile + (column ^ ((row & 2) << 1)); }

// A lane's places in fragments of the matrix instruction D (8 x 8) += A (8 x 4) B (4 x 8): of A (row, k) and
// of B (k, column) alike [lane / 4][lane % 4 + 4 half]; of D row lane / 4, columns 2 (lane % 4) and the next.
struct LanePlaces {
  int straight[2];    // of the operand's tile as stored, by half
  int transposed[2];  // of its transpose
  int pair;           // of the D pair
  int row, column;    // of the D pair

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

__device__ inline void MultiplyAdd(double a, double b, double& d0, double& d1) {
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
               : "+d"(d0), "+d"(d1)
               : "d"(a), "d"(b));
}

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_KERNELS_DEVICE_CUH_
