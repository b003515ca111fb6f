// Loads the analyser that makes products on a GPU from its module, as LoadCudaEngine does the engine.
#ifndef SPEXD_CUDA_LOADER_LOAD_CUDA_ANALYSER_H_
#define SPEXD_CUDA_LOADER_LOAD_CUDA_ANALYSER_H_

#include <memory>

#include "absl/status/statusor.h"
#include "cuda/loader/cuda_analyser_options.h"

namespace spexd {

// Environment variable with the full path of the module, if it is not beside the program.
inline constexpr char kCudaProductsModuleVariable[] = "SPEXD_CUDA_PRODUCTS_MODULE";

// FailedPrecondition as LoadModule's, or what the module says of driver and device.
absl::StatusOr<std::unique_ptr<Analyser>> LoadCudaAnalyser(const CudaAnalyserOptions& options);

}  // namespace spexd

#endif  // SPEXD_CUDA_LOADER_LOAD_CUDA_ANALYSER_H_
