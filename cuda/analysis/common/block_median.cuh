// Exact medians of a block's values, by bisection of their bits. All counts are integers.
#ifndef SPEXD_CUDA_ANALYSIS_COMMON_BLOCK_MEDIAN_CUH_
#define SPEXD_CUDA_ANALYSIS_COMMON_BLOCK_MEDIAN_CUH_

#include "cuda/kernels/common/machine.cuh"

namespace spexd::cuda {

inline constexpr int kMaxWarps = 32;
inline constexpr int kNotCounted = 0x7fffffff;  // key of a value that is left out

// Maps a float's bits to an integer that sorts like the float, and back.
__device__ inline int KeyOfFloat(float value) {
  const int bits = __float_as_int(value);
  return bits < 0 ? bits ^ 0x7fffffff : bits;
}
__device__ inline float FloatOfKey(int key) { return __int_as_float(key < 0 ? key ^ 0x7fffffff : key); }

// Returns the sum over the block of one number of each thread, in every thread. All threads of the block must
// call it. `scratch`: kMaxWarps integers, in use until the next barrier.
__device__ inline int BlockCount(int own, int* scratch) {
  for (int mask = kWarp / 2; mask > 0; mask /= 2) own += __shfl_xor_sync(kAllLanes, own, mask);
  if (threadIdx.x % kWarp == 0) scratch[threadIdx.x / kWarp] = own;
  __syncthreads();
  int sum = 0;
  for (int w = 0; w < static_cast<int>(blockDim.x) / kWarp; ++w) sum += scratch[w];
  return sum;
}

// Counts the keys below `limit`, which may exceed all keys.
template <typename Key>
__device__ int CountBelow(const Key& key, int size, int64_t limit, int* scratch) {
  int below = 0;
  for (int k = threadIdx.x; k < size; k += static_cast<int>(blockDim.x)) below += key(k) < limit ? 1 : 0;
  return BlockCount(below, scratch);
}

// Returns the largest key below `limit`.
template <typename Key>
__device__ int LargestBelow(const Key& key, int size, int limit, int* scratch) {
  int most = -kNotCounted - 1;
  for (int k = threadIdx.x; k < size; k += static_cast<int>(blockDim.x)) {
    const int own = key(k);
    if (own < limit) most = max(most, own);
  }
  most = __reduce_max_sync(kAllLanes, most);
  if (threadIdx.x % kWarp == 0) scratch[threadIdx.x / kWarp] = most;
  __syncthreads();
  for (int w = 0; w < static_cast<int>(blockDim.x) / kWarp; ++w) most = max(most, scratch[w]);
  return most;
}

// Returns the median, as defined in core/base/median.h, of the `counted` values whose key(k), k < size, is
// not kNotCounted; 0 if there is none. All threads of the block pass the same keys. `scratch`: 2 kMaxWarps
// integers of shared memory.
template <typename Key>
__device__ float BlockMedian(const Key& key, int size, int counted, int* scratch) {
  if (counted == 0) return 0;
  __syncthreads();
  const int rank = counted / 2;
  int64_t high = -(int64_t{1} << 31);  // lower bound of the key of this rank
  for (int bit = 31; bit >= 0; --bit) {
    const int64_t candidate = high + (int64_t{1} << bit);
    // The two halves of the scratch are used in turn, so one barrier a bit is enough.
    if (CountBelow(key, size, candidate, scratch + (bit & 1) * kMaxWarps) <= rank) high = candidate;
  }
  const float middle = FloatOfKey(static_cast<int>(high));
  float low = middle;
  if (counted % 2 == 0 && CountBelow(key, size, high, scratch + kMaxWarps) == rank) {
    low = FloatOfKey(LargestBelow(key, size, static_cast<int>(high), scratch));
  }
  __syncthreads();
  return 0.5f * (low + middle);
}

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_ANALYSIS_COMMON_BLOCK_MEDIAN_CUH_
