// Stage "resolution": each fibre's square root of its precision, and what it reports.
#ifndef SPEXD_CUDA_KERNELS_RESOLUTION_H_
#define SPEXD_CUDA_KERNELS_RESOLUTION_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cuda/kernels/side_streams.h"
#include "cuda/plan/job_arrays.h"

namespace spexd::cuda {

struct RootArgs {
  int fibres;
  BandArrays precision;
  ChunkPlan chunks;
  const double* flux;         // f [fibre, bin]
  const double* alternating;  // see SolveArrays
  int usual_width;
  int shared_bytes;
  ResolutionArrays resolution;
};

struct ReportArgs {
  int fibres, bins, pad;
  double bin_width;  // Angstrom
  const double* flux;
  ResolutionArrays resolution;
  OutputArrays output;
};

// Clears what lies beyond the widths, as far as the narrow roots look.
cudaError_t TrimPrecision(const RootArgs& args, cudaStream_t stream);
// How many poles each fibre's root takes, and which.
cudaError_t PlanPoles(const RootArgs& args, cudaStream_t stream);
// The sums over poles.
cudaError_t SquareRoot(const RootArgs& args, cudaStream_t stream, const SideStreams& side);
// Flux, ivar and resolution.
cudaError_t ReportSpectra(const ReportArgs& args, cudaStream_t stream);

// What decides how much scratch the roots take.
struct RootShape {
  ChunkPlan chunks;
  int fibres, usual_width, most_width;
};
int64_t SquareRootScratch(const RootShape& shape);  // in doubles
cudaError_t ConfigureResolution(int shared_bytes);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_KERNELS_RESOLUTION_H_
