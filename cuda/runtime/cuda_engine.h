// The CUDA engine: runs jobs on all GPUs that it was given.
#ifndef SPEXD_CUDA_RUNTIME_CUDA_ENGINE_H_
#define SPEXD_CUDA_RUNTIME_CUDA_ENGINE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "core/extract/engine.h"
#include "cuda/loader/cuda_options.h"

namespace spexd::cuda {

// FailedPrecondition: no driver, no device, one too old or not there. ResourceExhausted: less device memory
// is free than asked for. InvalidArgument: an option out of range.
absl::StatusOr<std::unique_ptr<Engine>> MakeCudaEngine(const CudaEngineOptions& options);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_RUNTIME_CUDA_ENGINE_H_
