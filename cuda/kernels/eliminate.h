// Elimination of a block's neighbours. What remains of the block's matrix D is
//   S = D - B^T (L L^T)^-1 B = D - X^T X,   X = L^-1 B,
// where B couples the block to a neighbour whose matrix has the Cholesky factor L.
#ifndef SPEXD_CUDA_KERNELS_ELIMINATE_H_
#define SPEXD_CUDA_KERNELS_ELIMINATE_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cuda/plan/job_arrays.h"

namespace spexd::cuda {

// Round 0 eliminates both neighbours from every block. This gives the block's precision P as far as its
// neighbours determine it. Round 0 also finds where blocks further away matter. There, rounds 1 to `rounds`
// make S, the one-sided Schur complements: round 1 from D, each later round from the S of the round before.
// Round `rounds` + 1 makes the precisions beside these S again.
struct EliminateArgs {
  BlockPlan blocks;
  int round, rounds;
  bool within;                // eliminate from each block its own other fibres, the matrix of the same number
  BandArrays normal;          // D of each block
  BandArrays own;             // what neighbours are eliminated from: D, or if `within` the part of a fibre
  const double* coupling;     // see NormalArrays
  FactorArrays factors;       // factors of D
  ChunkPlan chunks;           // chunks of `factors`
  FactorArrays side_factors;  // of S, where it was computed
  BandArrays out;             // P [block], or S [side, block]: written; widths not yet closed
  int usual_width;            // entries up to this diagonal are always kept
  int max_width;              // entries beyond this diagonal are never kept
  double* threshold;          // [block, unknown]: entries between are kept above this; found in round 0
  double* values;             // [block, chunk, extended]: scratch of the thresholds
  double tail;                // columns end where they fall below this (see ColumnTail)
  double negligible;          // change of the precision that may be left out (NegligibleChange)
  float* change;              // [side, block, run]: the most that round 0 took, relative to D's diagonal
  int32_t* depth;             // [side, block, run]: the last round that changes S there; 0: none
  int32_t* deepest;           // [side, block]: the largest of all runs
  int32_t* work;              // [side, block, run]: what this round does there
  int32_t* walks;             // number of walks, number of walks taken up, and where each begins
  double* scratch;            // EliminateScratch doubles
  int shared_bytes;           // shared memory of a block of threads
};

cudaError_t EliminateRound(const EliminateArgs& args, cudaStream_t stream);

int64_t EliminateScratch(const BlockPlan& blocks, int max_width);
cudaError_t ConfigureEliminate(int shared_bytes);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_KERNELS_ELIMINATE_H_
