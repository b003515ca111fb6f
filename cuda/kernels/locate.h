// Stage "spots": where a PSF's spots lie; enqueued on a stream.
#ifndef SPEXD_CUDA_KERNELS_LOCATE_H_
#define SPEXD_CUDA_KERNELS_LOCATE_H_

#include <cuda_runtime_api.h>

#include "cuda/plan/psf_arrays.h"

namespace spexd::cuda {

// Computes positions, row_bins and facts.
cudaError_t LocateSpots(const PsfArrays& psf, cudaStream_t stream);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_KERNELS_LOCATE_H_
