// The entry of libspexd_cuda.so: all that it exports.
#include <exception>

#include "absl/status/status.h"
#include "core/base/version.h"
#include "cuda/loader/build_identity.h"
#include "cuda/loader/cuda_engine_options.h"
#include "cuda/runtime/cuda_engine.h"

#define SPEXD_EXPORT __attribute__((visibility("default")))

extern "C" {

SPEXD_EXPORT extern const char* const SpexdCudaModuleVersion;
const char* const SpexdCudaModuleVersion = spexd::kVersion;
SPEXD_EXPORT extern const char* const SpexdCudaModuleBuild;
const char* const SpexdCudaModuleBuild = spexd::kBuildIdentity;

SPEXD_EXPORT void SpexdMakeCudaEngine(const spexd::CudaEngineOptions& options,
                                      absl::StatusOr<std::unique_ptr<spexd::Engine>>* engine) {
  // Exceptions do not cross modules.
  try {
    *engine = spexd::cuda::MakeCudaEngine(options);
  } catch (const std::exception& error) {
    *engine = absl::InternalError(error.what());
  }
}

}  // extern "C"
