// Stage "resolution": the square root of each fibre's precision.
#ifndef SPEXD_CUDA_KERNELS_ROOT_RESOLUTION_H_
#define SPEXD_CUDA_KERNELS_ROOT_RESOLUTION_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cuda/kernels/common/side_streams.h"
#include "cuda/plan/job_arrays.h"

namespace spexd::cuda {

struct RootArgs {
  int fibres;
  BandArrays precision;
  ChunkPlan chunks;
  const double* flux;         // f [fibre, bin]
  const double* alternating;  // see SolveArrays
  int usual_width;
  bool conditioned;  // see IsConditioned
  int shared_bytes;
  ResolutionArrays resolution;
};

// Clears entries beyond the widths, as far as the narrow roots read.
cudaError_t TrimPrecision(const RootArgs& args, cudaStream_t stream);
// Chooses the number of poles of each chunk's root, the poles, and the widths of their bands.
cudaError_t PlanPoles(const RootArgs& args, cudaStream_t stream);
// Finds which kernel solves which chunk and group of poles.
cudaError_t PlanRoots(const RootArgs& args, cudaStream_t stream);
// Computes the sums over poles, on `stream` and on the first three of the side streams; the caller forks and
// joins these.
cudaError_t SquareRoot(const RootArgs& args, cudaStream_t stream, const SideStreams& side);

// Sizes that determine the scratch of the roots.
struct RootShape {
  ChunkPlan chunks;
  int fibres, usual_width, max_width, shared_bytes;
};
int64_t SquareRootScratch(const RootShape& shape);  // in doubles
cudaError_t ConfigureResolution(int shared_bytes);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_KERNELS_ROOT_RESOLUTION_H_
