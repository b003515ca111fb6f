// Sums of products whose terms are far larger than the sum: rounding the terms would drown it. Both factors
// are split into leading bits, whose products add up without rounding in any order, and the rest. Three
// products for one, on the matrix units.
#ifndef SPEXD_CUDA_KERNELS_SPLIT_SUMS_CUH_
#define SPEXD_CUDA_KERNELS_SPLIT_SUMS_CUH_

#include "cuda/kernels/device.cuh"

namespace spexd::cuda {

// A lane's pair of a tile. Leading bits are multiples of the last bit of `by`, which is far larger.
struct SplitPair {
  double leading[2], rest[2];
  __device__ __forceinline__ SplitPair(const double (&pair)[2], double by) {
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      leading[c] = (pair[c] + by) - by;
      rest[c] = pair[c] - leading[c];
    }
  }
};

// MultiplyAdd16 to the sum of both: exact[.] of leading bits, small[.] of all else.
__device__ __forceinline__ void MultiplyAddSplit16(const double (&top)[2], const double (&bottom)[2],
                                                   double by, const double (&b)[2], double b_by,
                                                   double (&exact)[4], double (&small)[4]) {
  const SplitPair of_top(top, by), of_bottom(bottom, by), of_b(b, b_by);
  MultiplyAdd16(of_top.leading, of_bottom.leading, of_b.leading, exact);
  MultiplyAdd16(of_top.leading, of_bottom.leading, of_b.rest, small);
  MultiplyAdd16(of_top.rest, of_bottom.rest, b, small);
}

// MultiplyAdd8, likewise.
__device__ __forceinline__ void MultiplyAddSplit8(const double (&a)[2], double by, const double (&b)[2],
                                                  double b_by, double (&exact)[2], double (&small)[2]) {
  const SplitPair of_a(a, by), of_b(b, b_by);
  MultiplyAdd8(of_a.leading, of_b.leading, exact);
  MultiplyAdd8(of_a.leading, of_b.rest, small);
  MultiplyAdd8(of_a.rest, b, small);
}

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_KERNELS_SPLIT_SUMS_CUH_
