// Features that only CUDA's compiler has: launches, dynamic shared memory, and instructions without a name in
// C++. tests/cuda_emulation has a file of this name for the host's compiler.
#ifndef SPEXD_CUDA_KERNELS_COMMON_MACHINE_CUH_
#define SPEXD_CUDA_KERNELS_COMMON_MACHINE_CUH_

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "cuda/kernels/common/checked.h"
#include "cuda/kernels/common/first_error.h"

namespace spexd::cuda {

inline constexpr unsigned kAllLanes = 0xffffffffu;
inline constexpr int kWarp = 32;

// Enqueues a kernel; a checked build waits for it. Returns the error of this kernel or of earlier work.
template <typename... Parameters, typename... Arguments>
[[nodiscard]] cudaError_t Launch(void (*kernel)(Parameters...), dim3 grid, int threads, int64_t shared_bytes,
                                 cudaStream_t stream, const Arguments&... arguments) {
  kernel<<<grid, static_cast<unsigned>(threads), static_cast<size_t>(shared_bytes), stream>>>(arguments...);
  const cudaError_t error = cudaGetLastError();
  return kChecked && error == cudaSuccess ? cudaStreamSynchronize(stream) : error;
}

// Allows a kernel to use `bytes` of dynamic shared memory.
template <typename Kernel>
[[nodiscard]] cudaError_t AllowShared(Kernel* kernel, int bytes) {
  return cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
}

__device__ inline double* DynamicShared() {
  extern __shared__ __align__(16) double spexd_dynamic_shared[];
  return spexd_dynamic_shared;
}

// States a condition that must hold. A checked build stops the kernel if it does not.
__device__ inline void DeviceCheck(bool holds) {
  if (kChecked && !holds) __trap();
}

__device__ inline int LeadingZeros(uint64_t bits) { return __clzll(static_cast<long long>(bits)); }
__device__ inline uint32_t FromBigEndian(uint32_t word) { return __byte_perm(word, 0, 0x0123); }

// Estimates of 1 / x and 1 / sqrt(x) for positive normal numbers, with about 20 correct bits.
__device__ inline double ReciprocalEstimate(double x) {
  double y;
  asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
  return y;
}
__device__ inline double ReciprocalRootEstimate(double x) {
  double y;
  asm("rsqrt.approx.ftz.f64 %0, %1;" : "=d"(y) : "d"(x));
  return y;
}

// ---- Copies from device to shared memory that run at the same time as the arithmetic.

__device__ inline void CopyAsync8(void* to, const void* from) {
  const uint32_t at = static_cast<uint32_t>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.ca.shared.global [%0], [%1], 8;" ::"r"(at), "l"(from) : "memory");
}
__device__ inline void CopyAsync16(void* to, const void* from) {
  const uint32_t at = static_cast<uint32_t>(__cvta_generic_to_shared(to));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(at), "l"(from) : "memory");
}
// An address in shared memory; adding counts bytes.
using SharedAddress = uint32_t;
__device__ inline SharedAddress SharedAddressOf(const void* at) {
  return static_cast<SharedAddress>(__cvta_generic_to_shared(at));
}
// Copies 4 or 8 bytes if `there`; otherwise writes zeros, and `from` may point anywhere.
template <int kBytes>
__device__ inline void CopyAsyncOrZero(SharedAddress to, const void* from, bool there) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(kBytes),
               "r"(there ? kBytes : 0)
               : "memory");
}
__device__ inline void CopyAsyncCommit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until at most the latest kPending of this thread's groups are still being copied.
template <int kPending>
__device__ inline void CopyAsyncWait() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

// ---- Matrix units

// D (16 x 8) += A (16 x 8) B (8 x 8) by a warp. `top` and `bottom` hold this lane's halves of A's upper and
// lower tile (row lane / 4, columns lane % 4 and lane % 4 + 4). `b` holds the same of B's transpose. `d`
// holds this lane's pairs of both tiles of D (row lane / 4, columns 2 (lane % 4) and the next).
__device__ __forceinline__ void MultiplyAdd16(const double (&top)[2], const double (&bottom)[2],
                                              const double (&b)[2], double (&d)[4]) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
      : "d"(top[0]), "d"(bottom[0]), "d"(top[1]), "d"(bottom[1]), "d"(b[0]), "d"(b[1]));
#else  // the A100's generation has only m8n8k4
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                 : "+d"(d[0]), "+d"(d[1])
                 : "d"(top[half]), "d"(b[half]));
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                 : "+d"(d[2]), "+d"(d[3])
                 : "d"(bottom[half]), "d"(b[half]));
  }
#endif
}

// The same with only the first four columns of A and B^T.
__device__ __forceinline__ void MultiplyAdd16(const double (&a)[2], double b, double (&d)[4]) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
      : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
      : "d"(a[0]), "d"(a[1]), "d"(b));
#else
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
                 : "+d"(d[2 * half]), "+d"(d[2 * half + 1])
                 : "d"(a[half]), "d"(b));
  }
#endif
}

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_KERNELS_COMMON_MACHINE_CUH_
