// Stage "spots": preparation of a PSF, enqueued on a stream.
#ifndef SPEXD_CUDA_KERNELS_PSF_KERNELS_H_
#define SPEXD_CUDA_KERNELS_PSF_KERNELS_H_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "cuda/plan/psf_arrays.h"

namespace spexd::cuda {

// Computes positions, row_bins and facts.
cudaError_t LocateSpots(const PsfArrays& psf, cudaStream_t stream);
// Evaluates the spots. REQUIRES: shared_bytes >= SpotBytes.
cudaError_t EvaluateSpots(const PsfArrays& psf, int shared_bytes, cudaStream_t stream);

// Minimum shared memory per block to evaluate a spot.
int64_t SpotBytes(const PsfShape& shape);
// Allows the kernels this much shared memory. Call once per device.
cudaError_t ConfigureSpots(int shared_bytes);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_KERNELS_PSF_KERNELS_H_
