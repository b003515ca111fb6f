// Cholesky factors S = L L^T of many band matrices at once.
#ifndef SPEXD_CUDA_KERNELS_FACTOR_FACTOR_H_
#define SPEXD_CUDA_KERNELS_FACTOR_FACTOR_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cuda/kernels/common/side_streams.h"
#include "cuda/plan/job_arrays.h"

namespace spexd::cuda {

struct FactorArgs {
  BandArrays matrices;
  FactorArrays factors;  // written: values by Factorise, the rest by FindDepths
  ChunkPlan chunks;
  int count;  // number of matrices
  // [matrix]: a matrix whose value is below `least` has not changed since the last call, and is skipped.
  // Null: all have changed.
  const int32_t* changed = nullptr;
  int least = 1;
};

// Closes the widths (see BandArrays), and finds how far each tile column reaches and how deep each chunk is.
// Matrices without widths reach as far as their diagonals.
cudaError_t FindDepths(const FactorArgs& args, cudaStream_t stream);

// Tile 0 of a tile column becomes L^-1 of the diagonal tile, tile k becomes Y_k = L_k L^-1, so that
//   L^-1 b:  z_a = b_a - sum_k Y_(a,a-k) z_(a-k),  then L_aa^-1 z_a.
// A chunk's factor begins one halo before the part that it keeps. Chunks of different depths run side by
// side. scratch: FactorScratch doubles.
cudaError_t Factorise(const FactorArgs& args, double* scratch, int shared_bytes, cudaStream_t stream,
                      const SideStreams& side);

// Scratch in doubles, for factors of `tiles` tiles below the diagonal one at most and `columns` tile columns;
// 0 if the window of the deepest matrix fits into a block's shared memory.
int64_t FactorScratch(int tiles, int columns, int shared_bytes);
cudaError_t ConfigureFactor(int shared_bytes);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_KERNELS_FACTOR_FACTOR_H_
