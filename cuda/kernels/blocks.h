// Blocks of several fibres, for PSFs whose fibres overlap beyond their neighbours: matrices of blocks from those
// of fibres, and back.
#ifndef SPEXD_CUDA_KERNELS_BLOCKS_H_
#define SPEXD_CUDA_KERNELS_BLOCKS_H_

#include <cuda_runtime_api.h>

#include "cuda/plan/job_arrays.h"

namespace spexd::cuda {

struct BlockArgs {
  BlockPlan blocks;
  JobFibres fibres;
  NormalArrays normal;
  BandArrays own;    // written by Interleave: D of each block
  double* coupling;  // written by Interleave: O, see EliminationArrays
};

// D and O of blocks. Fibres that a bundle's last block lacks are unknowns of their own, with a diagonal of 1.
cudaError_t Interleave(const BlockArgs& args, cudaStream_t stream);

// One fibre of each block, `member`, and its partners, from the block's precision: three sets of matrices of the same
// size, so that the partners can be eliminated as a neighbouring block is. Whatever belongs to the others has a
// diagonal of 1.
struct PartArgs {
  BlockPlan blocks;
  BandArrays whole;   // P [block]
  int member;
  BandArrays own;     // of the member
  BandArrays others;  // of its partners
  double* coupling;   // unknown j of the partners, j + k of the member [block, k + reach, j]
  int coupling_reach;
};
cudaError_t TakePart(const PartArgs& args, cudaStream_t stream);

// The precision of each block's fibre `member`, from what is left of it in `part`.
struct MemberArgs {
  BlockPlan blocks;
  JobFibres fibres;
  BandArrays part;       // [block]
  int member;
  BandArrays precision;  // [fibre]: written, widths not yet closed
};
cudaError_t TakeMember(const MemberArgs& args, cudaStream_t stream);

// Sets the widths of matrices to what is kept in any case.
cudaError_t FillWidths(const BandArrays& bands, int count, int width, cudaStream_t stream);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_KERNELS_BLOCKS_H_
