// The door of libspexd_cuda_products.so, which makes products of spectra on a GPU. A module of its own, as it
// needs libraries of NVIDIA's toolkit that extraction does without.
#ifndef SPEXD_CUDA_LOADER_CUDA_ANALYSER_OPTIONS_H_
#define SPEXD_CUDA_LOADER_CUDA_ANALYSER_OPTIONS_H_

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "core/analysis/analyser/analyser.h"

namespace spexd {

struct CudaAnalyserOptions {
  int device = 0;            // as CUDA counts
  int64_t memory_bytes = 0;  // most that products take of the device at once; 0: what is free
};

// The module's one entry, exported under kCudaProductsModuleEntry. FailedPrecondition: no driver, no such
// device, or a device too old; the message says which.
using MakeCudaAnalyserFunction = void(const CudaAnalyserOptions& options,
                                      absl::StatusOr<std::unique_ptr<Analyser>>* analyser);
inline constexpr char kCudaProductsModuleEntry[] = "SpexdMakeCudaAnalyser";
inline constexpr char kCudaProductsModuleFile[] = "libspexd_cuda_products.so";
// Names of the exported version and build identity, as cuda_engine_options.h has them for the engine's
// module.
inline constexpr char kCudaProductsModuleVersion[] = "SpexdCudaProductsModuleVersion";
inline constexpr char kCudaProductsModuleBuild[] = "SpexdCudaProductsModuleBuild";

}  // namespace spexd

#endif  // SPEXD_CUDA_LOADER_CUDA_ANALYSER_OPTIONS_H_
