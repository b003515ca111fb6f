// Functions that the sky's kernels share.
#ifndef SPEXD_CUDA_ANALYSIS_SKY_SKY_KERNELS_CUH_
#define SPEXD_CUDA_ANALYSIS_SKY_SKY_KERNELS_CUH_

#include "cuda/analysis/common/block_median.cuh"
#include "cuda/analysis/sky/sky.h"
#include "cuda/kernels/common/first_error.h"
#include "cuda/kernels/common/machine.cuh"

namespace spexd::cuda {

inline constexpr int kBlock = 256;  // threads

// Returns an element of A's band or of b without the prior: the sum of the fibres' parts.
__device__ inline double NormalAt(const double* normal, int bins, int row, int j) {
  double sum = 0;
  for (int part = 0; part < kNormalParts; ++part)
    sum += normal[(int64_t{part} * kNormalRows + row) * bins + j];
  return sum;
}

// Returns whether a bin has no sky: it or a neighbour has too few values.
__device__ inline bool WithoutSky(const int32_t* few, int bins, int j) {
  return few[j] != 0 || (j > 0 && j + 1 < bins && (few[j - 1] != 0 || few[j + 1] != 0));
}

// Returns the sum over the block of a value of each thread, in every thread, in a fixed order. `scratch`:
// kMaxWarps values, in use until the next barrier.
__device__ inline double BlockSum(double value, double* scratch) {
  for (int mask = kWarp / 2; mask > 0; mask /= 2) value += __shfl_xor_sync(kAllLanes, value, mask);
  if (threadIdx.x % kWarp == 0) scratch[threadIdx.x / kWarp] = value;
  __syncthreads();
  double sum = 0;
  for (int w = 0; w < static_cast<int>(blockDim.x) / kWarp; ++w) sum += scratch[w];
  return sum;
}

struct RankScratch {
  int counts[kMaxWarps];
  double middle[2];
};

// Returns the median of those of `values` (shared or global memory) that are not NaN, by their ranks; 0 if
// there is none. The block's threads may write the values just before and just after the call. `counted`:
// number of values that are not NaN.
__device__ inline double RankMedian(const double* values, int size, RankScratch* scratch, int* counted) {
  __syncthreads();
  int own_counts = 0;
  for (int k = threadIdx.x; k < size; k += static_cast<int>(blockDim.x))
    own_counts += values[k] == values[k] ? 1 : 0;
  const int valid = BlockCount(own_counts, scratch->counts);
  for (int k = threadIdx.x; k < size; k += static_cast<int>(blockDim.x)) {
    const double own = values[k];
    if (own != own) continue;
    int rank = 0;
    for (int i = 0; i < k; ++i) rank += values[i] <= own ? 1 : 0;
    for (int i = k + 1; i < size; ++i) rank += values[i] < own ? 1 : 0;
    if (rank == valid / 2) scratch->middle[0] = own;
    if (rank == (valid - 1) / 2) scratch->middle[1] = own;
  }
  __syncthreads();
  *counted = valid;
  const double median = valid == 0 ? 0 : (scratch->middle[0] + scratch->middle[1]) / 2;
  __syncthreads();
  return median;
}

cudaError_t SumSkyNormal(const SkyArgs& args, cudaStream_t stream);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_ANALYSIS_SKY_SKY_KERNELS_CUH_
