// The CUDA engine: runs jobs on all GPUs that it was given.
#ifndef SPEXD_CUDA_RUNTIME_CUDA_ENGINE_H_
#define SPEXD_CUDA_RUNTIME_CUDA_ENGINE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "core/extract/engine.h"
#include "cuda/loader/cuda_options.h"

namespace spexd::cuda {

// FailedPrecondition: there is no driver or no device, or a device is too old or absent. ResourceExhausted:
// less device memory is free than asked for. InvalidArgument: an option is out of range.
absl::StatusOr<std::unique_ptr<Engine>> MakeCudaEngine(const CudaEngineOptions& options);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_RUNTIME_CUDA_ENGINE_H_
