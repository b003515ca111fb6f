#include "cuda/loader/load_cuda_analyser.h"

#include <exception>

#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "cuda/loader/module_file.h"

namespace spexd {

absl::StatusOr<std::unique_ptr<Analyser>> LoadCudaAnalyser(const CudaAnalyserOptions& options) {
  SPEXD_ASSIGN_OR_RETURN(
      const LoadedModule module,
      LoadModule({"module for products on GPUs", kCudaProductsModuleFile, kCudaProductsModuleVariable,
                  kCudaProductsModuleEntry, kCudaProductsModuleVersion, kCudaProductsModuleBuild}));
  absl::StatusOr<std::unique_ptr<Analyser>> analyser = absl::InternalError(module.path + " made no analyser");
  try {
    reinterpret_cast<MakeCudaAnalyserFunction*>(module.entry)(options, &analyser);
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrFormat("%s: %s", module.path, error.what()));
  }
  if (analyser.ok() && *analyser == nullptr) return absl::InternalError(module.path + " made no analyser");
  return analyser;
}

}  // namespace spexd
