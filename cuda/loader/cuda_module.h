// The interface that libspexd_cuda.so exports, for both sides of the module boundary.
#ifndef SPEXD_CUDA_LOADER_CUDA_MODULE_H_
#define SPEXD_CUDA_LOADER_CUDA_MODULE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "core/analysis/analyser/analyser.h"
#include "core/extract/engine.h"
#include "cuda/loader/cuda_options.h"

namespace spexd {

struct CudaModule {
  // A program reads these two first. It reads the rest only if they equal its own kVersion and
  // kBuildIdentity, because a module of the same version may have been built from other headers or by another
  // compiler. They are the first members in every version.
  const char* version;
  const char* build;
  // Returns FailedPrecondition if there is no driver, no device, or a device is too old; the message says
  // which. InvalidArgument: the options do not fit the machine.
  absl::StatusOr<std::unique_ptr<Engine>> (*make_engine)(const CudaEngineOptions& options);
  // Same errors; also FailedPrecondition if cuBLAS cannot be loaded. This call looks for cuBLAS.
  absl::StatusOr<std::unique_ptr<Analyser>> (*make_analyser)(const CudaAnalyserOptions& options);
};

inline constexpr char kCudaModuleFile[] = "libspexd_cuda.so";
inline constexpr char kCudaModuleSymbol[] = "SpexdCudaModule";

}  // namespace spexd

// The only symbol that the module exports. Programs find it by its name.
extern "C" __attribute__((visibility("default"))) const spexd::CudaModule SpexdCudaModule;

#endif  // SPEXD_CUDA_LOADER_CUDA_MODULE_H_
