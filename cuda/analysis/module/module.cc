// The entry of libspexd_cuda_products.so: all that it exports.
#include <exception>

#include "absl/status/status.h"
#include "core/base/version.h"
#include "cuda/analysis/module/cuda_analyser.h"
#include "cuda/loader/build_identity.h"
#include "cuda/loader/cuda_analyser_options.h"

#define SPEXD_EXPORT __attribute__((visibility("default")))

extern "C" {

SPEXD_EXPORT extern const char* const SpexdCudaProductsModuleVersion;
const char* const SpexdCudaProductsModuleVersion = spexd::kVersion;
SPEXD_EXPORT extern const char* const SpexdCudaProductsModuleBuild;
const char* const SpexdCudaProductsModuleBuild = spexd::kBuildIdentity;

SPEXD_EXPORT void SpexdMakeCudaAnalyser(const spexd::CudaAnalyserOptions& options,
                                        absl::StatusOr<std::unique_ptr<spexd::Analyser>>* analyser) {
  // Exceptions do not cross modules.
  try {
    *analyser = spexd::cuda::MakeCudaAnalyser(options);
  } catch (const std::exception& error) {
    *analyser = absl::InternalError(error.what());
  }
}

}  // extern "C"
