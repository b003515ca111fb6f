// Each fibre's precision from that of its block, for PSFs whose fibres overlap beyond their neighbours, so
// that blocks have several fibres.
#ifndef SPEXD_CUDA_KERNELS_FACTOR_BLOCKS_H_
#define SPEXD_CUDA_KERNELS_FACTOR_BLOCKS_H_

#include <cuda_runtime_api.h>

#include "cuda/plan/job_arrays.h"

namespace spexd::cuda {

// Splits each block's precision into fibre `member` and the others. This gives three sets of matrices of
// the same size, so that the others can be eliminated as a neighbouring block is. Unknowns that a matrix
// does not have get a diagonal of 1.
struct PartArgs {
  BlockPlan blocks;
  BandArrays whole;  // P [block]
  int member;
  BandArrays own;     // matrix of the member [block]
  BandArrays others;  // matrix of the block's other fibres [block]
  double* coupling;   // unknown j of the others with j + k of the member [block, k + diagonals - 1, j]
};
cudaError_t TakePart(const PartArgs& args, cudaStream_t stream);

// Writes the precision of fibre `member` of each block, taken from the reduced matrix `part`.
struct MemberArgs {
  BlockPlan blocks;
  JobFibres fibres;
  BandArrays part;  // [block]
  int member;
  BandArrays precision;  // [fibre]: written, widths not yet closed
};
cudaError_t TakeMember(const MemberArgs& args, cudaStream_t stream);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_KERNELS_FACTOR_BLOCKS_H_
