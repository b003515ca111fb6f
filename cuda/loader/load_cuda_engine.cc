#include "cuda/loader/load_cuda_engine.h"

#include <exception>

#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "cuda/loader/module_file.h"

namespace spexd {

absl::StatusOr<std::unique_ptr<Engine>> LoadCudaEngine(const CudaEngineOptions& options) {
  SPEXD_ASSIGN_OR_RETURN(const LoadedModule module,
                         LoadModule({"CUDA engine", kCudaModuleFile, kCudaModuleVariable, kCudaModuleEntry,
                                     kCudaModuleVersion, kCudaModuleBuild}));
  absl::StatusOr<std::unique_ptr<Engine>> engine = absl::InternalError(module.path + " made no engine");
  try {
    reinterpret_cast<MakeCudaEngineFunction*>(module.entry)(options, &engine);
  } catch (const std::exception& error) {
    return absl::InternalError(absl::StrFormat("%s: %s", module.path, error.what()));
  }
  if (engine.ok() && *engine == nullptr) return absl::InternalError(module.path + " made no engine");
  return engine;
}

}  // namespace spexd
