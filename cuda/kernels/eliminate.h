// Elimination of a fibre's neighbours: the remaining matrix is S = D - B^T (L L^T)^-1 B = D - X^T X with X =
// L^-1 B.
#ifndef SPEXD_CUDA_KERNELS_ELIMINATE_H_
#define SPEXD_CUDA_KERNELS_ELIMINATE_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cuda/plan/job_arrays.h"

namespace spexd::cuda {

// Round 0 takes both neighbours from every block, which leaves its precision as far as the next blocks
// matter, and finds where those beyond them matter. There the next `rounds` rounds make S, the one-sided
// Schur complements, in round 1 from D, later from the round before. One more makes the precisions beside
// these again.
struct EliminateArgs {
  BlockPlan blocks;
  int round, rounds;
  bool within;                // eliminate the matrix of the same number, that of a block's other fibres
  BandArrays normal;          // D of each block
  BandArrays own;             // what is eliminated from: D, or `within` a block the part of a fibre
  const double* coupling;     // see NormalArrays
  FactorArrays factors;       // of D,
  ChunkPlan chunks;           // in these chunks
  FactorArrays side_factors;  // of S, where it was computed
  BandArrays out;             // P [block], or S [side, block]: written; widths not yet closed
  int usual_width;            // entries up to this diagonal are always kept,
  int max_width;              // those beyond this one never,
  double* threshold;          // [block, unknown]: others only if they exceed this; found in round 0
  double* values;             // [block, chunk, extended]: scratch of the thresholds
  double tail;                // columns end where they fall below this (see ColumnTail)
  double negligible;          // what may be left out of the precision (NegligibleChange)
  float* change;              // [side, block, run]: what round 0 took at most, relative to D's diagonal
  int32_t* depth;             // [side, block, run]: the last round that changes S there; 0: none
  int32_t* deepest;           // [side, block]: the largest of all runs
  int32_t* work;              // [side, block, run]: what this round does there
  int32_t* walks;             // number of walks, number of those taken up, and where each begins
  double* scratch;            // EliminateScratch doubles
  int shared_bytes;           // that a block of threads may have
};

cudaError_t EliminateRound(const EliminateArgs& args, cudaStream_t stream);

int64_t EliminateScratch(const BlockPlan& blocks, int max_width);
cudaError_t ConfigureEliminate(int shared_bytes);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_KERNELS_ELIMINATE_H_
