// Loads the CUDA engine and the analyser of products from their module, libspexd_cuda.so, where there is one.
// A program therefore needs no CUDA to build or to start.
#ifndef SPEXD_CUDA_LOADER_LOAD_CUDA_MODULE_H_
#define SPEXD_CUDA_LOADER_LOAD_CUDA_MODULE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "core/analysis/analyser/analyser.h"
#include "core/extract/engine.h"
#include "cuda/loader/cuda_options.h"

namespace spexd {

// Environment variable with the full path of the module, which is then looked for nowhere else.
inline constexpr char kCudaModuleVariable[] = "SPEXD_CUDA_MODULE";

// Both look for the module in the folder of the program, or of the Python extension, that contains this code,
// then in lib/spexd of its installation (core/base/install_paths.h). It stays loaded until the process ends.
// FailedPrecondition, in words that an operator can act on: it is not there (names the places), cannot be
// loaded, is another library, or is of another version or build. Else what the module says (CudaModule).
absl::StatusOr<std::unique_ptr<Engine>> LoadCudaEngine(const CudaEngineOptions& options);
absl::StatusOr<std::unique_ptr<Analyser>> LoadCudaAnalyser(const CudaAnalyserOptions& options);

}  // namespace spexd

#endif  // SPEXD_CUDA_LOADER_LOAD_CUDA_MODULE_H_
