// Elimination of a fibre's neighbours: the remaining matrix is S = D - B^T (L L^T)^-1 B = D - X^T X with X =
// L^-1 B.
#ifndef SPEXD_CUDA_KERNELS_ELIMINATE_H_
#define SPEXD_CUDA_KERNELS_ELIMINATE_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cuda/plan/job_arrays.h"

namespace spexd::cuda {

// Round 0 takes both neighbours from every block, which leaves its precision as far as the next blocks
// matter. Rounds 1 to n - 1 work where those beyond them matter: they make S, the matrices with the
// neighbours of one side eliminated, in round 1 from D, later from the round before. The last round, n, makes
// the precisions beside these again. `EliminateBoth` does the first and last round, `EliminateSides` those
// between.
struct EliminateArgs {
  BlockPlan blocks;
  int round;
  // Eliminate the matrix of the same number, that of a block's other fibres, instead of the previous block,
  // and no next block.
  bool within_blocks;
  BandArrays own;             // D of each block
  const double* coupling;     // see NormalArrays
  FactorArrays factors;       // of D
  FactorArrays side_factors;  // of `sides`, where these were computed
  BandArrays sides;           // S [side, block], one-sided Schur complements: written by EliminateSides
  BandArrays precision;       // P [block]: written by EliminateBoth
  int usual_width;            // entries up to this diagonal are always kept,
  const double* threshold;    // [block, unknown]: those beyond it only if they exceed this
  double tail;                // columns end where they fall below this (see ColumnTail)
  double negligible;          // what may be left out of the precision (NegligibleChange)
  float* couplings;           // [side, run, block]: what round 0 took at most, relative to D's diagonal
  int32_t* significance;      // [side, run, block]: of S beside D; found by round 0
  int32_t* any_significant;   // [side, block]: whether S is not negligible in some run
  const float* changed;       // [side, run, block]: how much the last round changed S
  float* changes;             // the same of this round; written by EliminateSides
  int32_t* updated;           // [side, block]: whether this round computed S; written by EliminateSides
  int32_t* wide;              // [side, run, block]: whether shared memory was too small
  double* scratch;            // EliminateScratch doubles
};

cudaError_t EliminateBoth(const EliminateArgs& args, cudaStream_t stream);
cudaError_t EliminateSides(const EliminateArgs& args, cudaStream_t stream);

int64_t EliminateScratch(const BlockPlan& blocks, int width);
cudaError_t ConfigureEliminate(int shared_bytes);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_KERNELS_ELIMINATE_H_
