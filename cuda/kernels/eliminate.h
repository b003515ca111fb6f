// A fibre's neighbours eliminated: what remains of its matrix, S = D - B^T (L L^T)^-1 B = D - X^T X with
// X = L^-1 B.
#ifndef SPEXD_CUDA_KERNELS_ELIMINATE_H_
#define SPEXD_CUDA_KERNELS_ELIMINATE_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cuda/plan/job_arrays.h"

namespace spexd::cuda {

struct EliminateArgs {
  BlockPlan blocks;
  bool partners;  // instead of the block before, a matrix of the same number is eliminated; none behind
  BandArrays own;          // D of each block
  const double* coupling;  // see EliminationArrays
  ChunkPlan chunks;        // of the factors
  FactorArrays factors[2];  // of the blocks before ([0]) and behind, those further on eliminated
  BandArrays out[2];        // where both sides are eliminated at once the first alone
  int usual_width;          // entries up to this diagonal are kept, however small,
  double cut;               // those beyond where they are as large (core/extract/band_rule.h)
  double tail;              // columns end where they are below this, of the same
  int most_width;           // of any `out` of the job
  // What rounds change, as a part of the diagonal, for each side, block and chunk (float bits). A block is worked
  // on where what the round before `changed` of its neighbour matters. Null: everywhere.
  const int32_t* changed;
  int32_t* changes;    // by this round; may be null
  int32_t* couplings;  // by the first round
  int32_t* open_steps;  // [task]: see eliminate.cu
  double* scratch;     // EliminateScratch doubles
};

// out[side] = D less what eliminating that side's neighbour takes.
cudaError_t EliminateSides(const EliminateArgs& args, cudaStream_t stream);
// out[0] = D less what eliminating both neighbours takes.
cudaError_t EliminateBoth(const EliminateArgs& args, cudaStream_t stream);

int64_t EliminateScratch(const BlockPlan& blocks, const ChunkPlan& chunks, int most_width);
cudaError_t ConfigureEliminate(int shared_bytes);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_KERNELS_ELIMINATE_H_
