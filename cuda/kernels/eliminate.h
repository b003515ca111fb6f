// Elimination of a fibre's neighbours: the remaining matrix is S = D - B^T (L L^T)^-1 B = D - X^T X with X =
// L^-1 B.
#ifndef SPEXD_CUDA_KERNELS_ELIMINATE_H_
#define SPEXD_CUDA_KERNELS_ELIMINATE_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cuda/plan/job_arrays.h"

namespace spexd::cuda {

struct EliminateArgs {
  BlockPlan blocks;
  // Eliminate the matrix of the same number instead of the previous block, and no next block.
  bool partners;
  BandArrays own;          // D of each block
  const double* coupling;  // see EliminationArrays
  ChunkPlan chunks;        // chunks of the factors
  // Factors of the previous blocks ([0]) and of the next ones, in which the blocks further on are eliminated.
  FactorArrays factors[2];
  BandArrays out[2];  // only out[0] where both sides are eliminated at once
  int usual_width;    // entries up to this diagonal are always kept,
  double cut;         // those beyond it only if they exceed this (core/extract/band_rule.h)
  double tail;        // columns end where they fall below this (see ColumnTail)
  int most_width;     // largest width of any `out` of the job
  // Changes made by rounds, relative to the diagonal, for each side, block and chunk (float bits). `changed`
  // is that of the previous round: a block is worked on only where its neighbour's change matters. Null:
  // everywhere.
  const int32_t* changed;
  int32_t* changes;     // of this round; may be null
  int32_t* couplings;   // written by the first round
  int32_t* open_steps;  // [task]: see eliminate.cu
  double* scratch;      // EliminateScratch doubles
};

// out[side] = D minus the term from eliminating that side's neighbour.
cudaError_t EliminateSides(const EliminateArgs& args, cudaStream_t stream);
// out[0] = D minus the terms from eliminating both neighbours.
cudaError_t EliminateBoth(const EliminateArgs& args, cudaStream_t stream);

int64_t EliminateScratch(const BlockPlan& blocks, const ChunkPlan& chunks, int most_width);
cudaError_t ConfigureEliminate(int shared_bytes);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_KERNELS_ELIMINATE_H_
