// cuda/kernels/common/machine.cuh for the host's compiler: CUDA's language on top of the emulator. The
// kernels' sources find this file in place of the real one.
#ifndef SPEXD_CUDA_KERNELS_COMMON_MACHINE_CUH_
#define SPEXD_CUDA_KERNELS_COMMON_MACHINE_CUH_

#include <cuda_runtime_api.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <type_traits>

#include "cuda/kernels/common/first_error.h"
#include "tests/cuda_emulation/emulator.h"

#undef __global__
#undef __device__
#undef __host__
#undef __shared__
#undef __forceinline__
#undef __launch_bounds__
#undef __grid_constant__
#define __global__
#define __device__
#define __host__
// Static shared memory has the alignment of a block's, whatever its type requires.
#define __shared__ alignas(16) static thread_local
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __grid_constant__

#define threadIdx (::spexd::emulation::this_thread->index)
#define blockIdx (::spexd::emulation::this_position->block)
#define blockDim (::spexd::emulation::this_position->block_size)
#define gridDim (::spexd::emulation::this_position->grid_size)

// ---- CUDA's functions, where its own sources expect them

template <typename A, typename B>
constexpr std::common_type_t<A, B> min(A a, B b) {
  using T = std::common_type_t<A, B>;
  return static_cast<T>(b) < static_cast<T>(a) ? static_cast<T>(b) : static_cast<T>(a);
}
template <typename A, typename B>
constexpr std::common_type_t<A, B> max(A a, B b) {
  using T = std::common_type_t<A, B>;
  return static_cast<T>(a) < static_cast<T>(b) ? static_cast<T>(b) : static_cast<T>(a);
}
using std::abs;
using std::isfinite;

inline void __syncthreads() { spexd::emulation::MeetBlock("__syncthreads", false); }
inline int __syncthreads_or(int value) {
  return spexd::emulation::MeetBlock("__syncthreads_or", value != 0) ? 1 : 0;
}
inline void __threadfence() {}
inline int __popc(unsigned bits) { return std::popcount(bits); }
inline void __syncwarp() { spexd::emulation::MeetWarp("__syncwarp"); }

template <typename T>
T __shfl_sync(unsigned, T value, int lane) {
  static_assert(sizeof(T) <= sizeof(uint64_t));
  uint64_t word = 0;
  __builtin_memcpy(&word, &value, sizeof(T));
  const uint64_t* words = spexd::emulation::Exchange("__shfl_sync", &word, 1);
  __builtin_memcpy(&value, words + (lane & 31), sizeof(T));
  return value;
}
template <typename T>
T __shfl_xor_sync(unsigned mask, T value, int lanes) {
  return __shfl_sync(mask, value, spexd::emulation::this_thread->lane ^ lanes);
}
inline unsigned __ballot_sync(unsigned, int value) {
  const uint64_t word = value != 0;
  const uint64_t* words = spexd::emulation::Exchange("__ballot_sync", &word, 1);
  unsigned ballot = 0;
  for (int lane = 0; lane < 32; ++lane) ballot |= static_cast<unsigned>(words[lane]) << lane;
  return ballot;
}
inline int __any_sync(unsigned mask, int value) { return __ballot_sync(mask, value) != 0; }
inline int __reduce_max_sync(unsigned, int value) {
  const uint64_t word = static_cast<uint64_t>(static_cast<int64_t>(value));
  const uint64_t* words = spexd::emulation::Exchange("__reduce_max_sync", &word, 1);
  for (int lane = 0; lane < 32; ++lane)
    value = std::max(value, static_cast<int>(static_cast<int64_t>(words[lane])));
  return value;
}
inline int __float_as_int(float value) { return std::bit_cast<int>(value); }
inline long long __double_as_longlong(double value) { return std::bit_cast<long long>(value); }
inline float __int_as_float(int bits) { return std::bit_cast<float>(bits); }
inline int __ffs(unsigned value) { return value == 0 ? 0 : std::countr_zero(value) + 1; }

// Threads switch only where they wait, so plain operations suffice here.
template <typename T>
T atomicMin(T* to, T value) {
  const T old = *to;
  *to = std::min(old, value);
  return old;
}
template <typename T>
T atomicMax(T* to, T value) {
  const T old = *to;
  *to = std::max(old, value);
  return old;
}
template <typename T>
T atomicAdd(T* to, T value) {
  static_assert(std::is_integral_v<T>, "sums of other numbers depend on their order");
  const T old = *to;
  *to = old + value;
  return old;
}
template <typename T>
T atomicOr(T* to, T value) {
  const T old = *to;
  *to = old | value;
  return old;
}

namespace spexd::cuda {

inline constexpr unsigned kAllLanes = 0xffffffffu;
inline constexpr int kWarp = 32;

template <typename... Parameters, typename... Arguments>
[[nodiscard]] cudaError_t LaunchNamed(const char* name, void (*kernel)(Parameters...), dim3 grid, int threads,
                                      int64_t shared_bytes, cudaStream_t stream,
                                      const Arguments&... arguments) {
  if (!emulation::MayTakeShared(reinterpret_cast<const void*>(kernel), shared_bytes))
    return cudaErrorInvalidValue;
  emulation::Run(name, stream, grid, threads, static_cast<size_t>(shared_bytes),
                 [&] { kernel(arguments...); });
  return cudaSuccess;
}
#define Launch(kernel, ...) LaunchNamed(#kernel, kernel, __VA_ARGS__)

template <typename Kernel>
[[nodiscard]] cudaError_t AllowShared(Kernel* kernel, int bytes) {
  emulation::AllowShared(reinterpret_cast<const void*>(kernel), bytes);
  return cudaSuccess;
}

inline double* DynamicShared() { return reinterpret_cast<double*>(emulation::this_position->shared); }

inline void DeviceCheck(bool holds) {
  if (!holds) emulation::Fail("DeviceCheck");
}

inline int LeadingZeros(uint64_t bits) { return std::countl_zero(bits); }
inline uint32_t FromBigEndian(uint32_t word) { return __builtin_bswap32(word); }

// Returns an estimate that is no better than a device's.
inline double Coarse(double value) {
  return std::bit_cast<double>(std::bit_cast<uint64_t>(value) & ~((uint64_t{1} << 33) - 1));
}
inline double ReciprocalEstimate(double x) { return Coarse(1 / x); }
inline double ReciprocalRootEstimate(double x) { return Coarse(1 / std::sqrt(x)); }

inline void CopyAsync8(void* to, const void* from) { emulation::CopyLater(to, from, 8); }
inline void CopyAsync16(void* to, const void* from) { emulation::CopyLater(to, from, 16); }
using SharedAddress = char*;
inline SharedAddress SharedAddressOf(void* at) { return static_cast<char*>(at); }
template <int kBytes>
void CopyAsyncOrZero(SharedAddress to, const void* from, bool there) {
  alignas(kBytes) static constexpr char kZeros[kBytes] = {};
  emulation::CopyLater(to, there ? from : kZeros, kBytes);
}
inline void CopyAsyncCommit() { emulation::EndCopyGroup(); }
template <int kPending>
void CopyAsyncWait() {
  emulation::WaitForCopies(kPending);
}

inline void MultiplyAdd16(const double (&top)[2], const double (&bottom)[2], const double (&b)[2],
                          double (&d)[4]) {
  const double own[6] = {top[0], top[1], bottom[0], bottom[1], b[0], b[1]};
  const auto* all = reinterpret_cast<const double*>(
      emulation::Exchange("MultiplyAdd16", reinterpret_cast<const uint64_t*>(own), 6));
  const int row = emulation::this_thread->lane / 4, column = 2 * (emulation::this_thread->lane % 4);
  for (int k = 0; k < 8; ++k) {
    const double* a = all + (row * 4 + k % 4) * 6;
    for (int c = 0; c < 2; ++c) {
      const double of_b = all[((column + c) * 4 + k % 4) * 6 + 4 + k / 4];
      d[c] = std::fma(a[k / 4], of_b, d[c]);
      d[2 + c] = std::fma(a[2 + k / 4], of_b, d[2 + c]);
    }
  }
}

inline void MultiplyAdd16(const double (&a)[2], double b, double (&d)[4]) {
  MultiplyAdd16({a[0], 0}, {a[1], 0}, {b, 0}, d);
}

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_KERNELS_COMMON_MACHINE_CUH_
