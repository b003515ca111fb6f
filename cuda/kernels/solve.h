// The flux, by conjugate gradients on the exact normal equations, with each fibre's precision as the
// preconditioner.
#ifndef SPEXD_CUDA_KERNELS_SOLVE_H_
#define SPEXD_CUDA_KERNELS_SOLVE_H_

#include <cuda_runtime_api.h>

#include "cuda/plan/job_arrays.h"

namespace spexd::cuda {

struct SolveArgs {
  JobFibres fibres;
  NormalArrays normal;
  ChunkPlan chunks;
  SolveArrays solve;
  OutputArrays output;  // each bundle's residual is written
  int shared_bytes;
};

cudaError_t ConfigureSolve(int shared_bytes);
// Solves for `solve.alternating`, from which the poles are planned. REQUIRES: factors of the precision. May
// run beside SolveFlux, as the two write no array in common.
cudaError_t SolveAlternating(const SolveArgs& args, cudaStream_t stream);
// Computes the flux and each bundle's residual.
cudaError_t SolveFlux(const SolveArgs& args, cudaStream_t stream);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_KERNELS_SOLVE_H_
