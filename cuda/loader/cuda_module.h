// What libspexd_cuda.so exports, for both sides of the module boundary.
#ifndef SPEXD_CUDA_LOADER_CUDA_MODULE_H_
#define SPEXD_CUDA_LOADER_CUDA_MODULE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "core/analysis/analyser/analyser.h"
#include "core/extract/engine.h"
#include "cuda/loader/cuda_options.h"

namespace spexd {

struct CudaModule {
  // A program reads these two first, and the rest only if they are its own (kVersion, kBuildIdentity): a
  // module of the same version may be from other headers or another compiler. They come first in each
  // version.
  const char* version;
  const char* build;
  // FailedPrecondition: no driver, no device, or a device too old; the message says which. InvalidArgument:
  // options that do not fit the machine.
  absl::StatusOr<std::unique_ptr<Engine>> (*make_engine)(const CudaEngineOptions& options);
  // Likewise; also FailedPrecondition where cuBLAS cannot be loaded, which is looked for when this is called.
  absl::StatusOr<std::unique_ptr<Analyser>> (*make_analyser)(const CudaAnalyserOptions& options);
};

inline constexpr char kCudaModuleFile[] = "libspexd_cuda.so";
inline constexpr char kCudaModuleSymbol[] = "SpexdCudaModule";

}  // namespace spexd

// The only symbol that the module exports. Programs find it by its name.
extern "C" __attribute__((visibility("default"))) const spexd::CudaModule SpexdCudaModule;

#endif  // SPEXD_CUDA_LOADER_CUDA_MODULE_H_
