// Loads the CUDA engine from its module, which lies beside the program where there is one. A program
// therefore needs no CUDA to build or to start.
#ifndef SPEXD_CUDA_LOADER_LOAD_CUDA_ENGINE_H_
#define SPEXD_CUDA_LOADER_LOAD_CUDA_ENGINE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "core/extract/engine.h"
#include "cuda/loader/cuda_engine_options.h"

namespace spexd {

// Environment variable with the full path of the module, if it is not beside the program.
inline constexpr char kCudaModuleVariable[] = "SPEXD_CUDA_MODULE";

// See LoadModule for where it is looked for. The module stays loaded until the process ends.
// FailedPrecondition, in words that an operator can act on: it is not there (names the places), cannot be
// loaded, or is of another version or build. Else what the module says: FailedPrecondition for no driver or
// device, InvalidArgument for options that do not fit the machine.
absl::StatusOr<std::unique_ptr<Engine>> LoadCudaEngine(const CudaEngineOptions& options);

}  // namespace spexd

#endif  // SPEXD_CUDA_LOADER_LOAD_CUDA_ENGINE_H_
