// Stage "spots": the values of a PSF's spots, enqueued on a stream. Each spot model has its own kernel.
#ifndef SPEXD_CUDA_KERNELS_SPOTS_SPOTS_H_
#define SPEXD_CUDA_KERNELS_SPOTS_SPOTS_H_

#include <cuda_runtime_api.h>

#include <cstdint>
#include <variant>

#include "cuda/kernels/common/first_error.h"
#include "cuda/plan/psf_arrays.h"
#include "cuda/plan/spots/spot_model.h"

namespace spexd::cuda {

// gauss_hermite.cu
cudaError_t EvaluateSpots(const PsfArrays& psf, const GaussHermiteArrays& model, int shared_bytes,
                          cudaStream_t stream);
int64_t SpotBytes(const PsfShape& shape, const GaussHermiteShape& model);
cudaError_t ConfigureGaussHermiteSpots(int shared_bytes);

// sampled.cu
cudaError_t EvaluateSpots(const PsfArrays& psf, const SampledArrays& model, int shared_bytes,
                          cudaStream_t stream);
int64_t SpotBytes(const PsfShape& shape, const SampledShape& model);
cudaError_t ConfigureSampledSpots(int shared_bytes);

// ---- Any model

// Evaluates the spots. REQUIRES: LocateSpots has run; shared_bytes >= SpotBytes.
inline cudaError_t EvaluateSpots(const PsfArrays& psf, int shared_bytes, cudaStream_t stream) {
  return std::visit([&](const auto& model) { return EvaluateSpots(psf, model, shared_bytes, stream); },
                    psf.model);
}
// Minimum shared memory per block to evaluate a spot.
inline int64_t SpotBytes(const PsfShape& shape) {
  return std::visit([&](const auto& model) { return SpotBytes(shape, model); }, shape.model);
}
// Allows the kernels this much shared memory. Call once per device.
inline cudaError_t ConfigureSpots(int shared_bytes) {
  return FirstError({ConfigureGaussHermiteSpots(shared_bytes), ConfigureSampledSpots(shared_bytes)});
}

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_KERNELS_SPOTS_SPOTS_H_
