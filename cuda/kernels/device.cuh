// Small tools for device code.
#ifndef SPEXD_CUDA_KERNELS_DEVICE_CUH_
#define SPEXD_CUDA_KERNELS_DEVICE_CUH_

#include <cstdint>

#include "cuda/plan/tile.h"

namespace spexd::cuda {

inline constexpr unsigned kAllLanes = 0xffffffffu;
inline constexpr int kWarp = 32;

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

// Division by the same number over and over: exact for 0 <= n < 2^31 / divisor.
struct Divider {
  int divisor;
  unsigned magic;
  __device__ explicit Divider(int d) : divisor(d), magic(d == 1 ? 0 : 0xffffffffu / d + 1) {}
  __device__ int Quotient(int n) const { return divisor == 1 ? n : static_cast<int>(__umulhi(n, magic)); }
};

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

// D (16 x 8) += A (16 x 8) B (8 x 8) by a warp: `top` and `bottom` hold this lane's halves of A's upper and
// lower tile, d its pairs of both.
__device__ __forceinline__ void MultiplyAdd16(const double (&top)[2], const double (&bottom)[2],
                                              const double (&b)[2], double (&d)[4]) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
      : "d"(top[0]), "d"(bottom[0]), "d"(top[1]), "d"(bottom[1]), "d"(b[0]), "d"(b[1]));
}

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
