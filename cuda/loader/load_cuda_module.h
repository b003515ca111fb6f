// Loads the CUDA engine and the analyser of products from their module, libspexd_cuda.so, if it is installed.
// A program therefore needs no CUDA to build or to start.
#ifndef SPEXD_CUDA_LOADER_LOAD_CUDA_MODULE_H_
#define SPEXD_CUDA_LOADER_LOAD_CUDA_MODULE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "core/analysis/analyser/analyser.h"
#include "core/extract/engine.h"
#include "cuda/loader/cuda_options.h"

namespace spexd {

// Environment variable with the full path of the module. If it is set, no other place is searched.
inline constexpr char kCudaModuleVariable[] = "SPEXD_CUDA_MODULE";

// Both look for the module in the folder of the program or Python extension that contains this code, then in
// lib/spexd of its installation (core/base/install_paths.h). The module stays loaded until the process ends.
// FailedPrecondition, with a message for operators: the module is not there (names the places), cannot be
// loaded, is another library, or is of another version or build. Other errors come from the module
// (CudaModule).
absl::StatusOr<std::unique_ptr<Engine>> LoadCudaEngine(const CudaEngineOptions& options);
absl::StatusOr<std::unique_ptr<Analyser>> LoadCudaAnalyser(const CudaAnalyserOptions& options);

}  // namespace spexd

#endif  // SPEXD_CUDA_LOADER_LOAD_CUDA_MODULE_H_
