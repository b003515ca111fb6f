// What the CUDA engine is made with, on both sides of the module's door.
#ifndef SPEXD_CUDA_LOADER_CUDA_ENGINE_OPTIONS_H_
#define SPEXD_CUDA_LOADER_CUDA_ENGINE_OPTIONS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "core/extract/engine.h"

namespace spexd {

struct CudaEngineOptions {
  std::vector<int> devices = {};  // as CUDA counts them; empty: all
  // Of each device, taken at start; 0: nine tenths of what is free. On demand: the most that is taken; 0: all
  // that is free.
  int64_t device_memory_bytes = 0;
  int jobs_per_device = 4;  // that run on one device at once
  int chunk_bins = 0;       // see PlanOptions; 0: chosen
  // Memory of a device is taken as jobs need it: for programs of one job, of which several may share a
  // device.
  bool on_demand = false;
};

// The module's one entry, exported by libspexd_cuda.so under kCudaModuleEntry as a MakeCudaEngineFunction.
// FailedPrecondition: no driver, no device, or a device too old; the message says which.
using MakeCudaEngineFunction = void(const CudaEngineOptions& options,
                                    absl::StatusOr<std::unique_ptr<Engine>>* engine);
inline constexpr char kCudaModuleEntry[] = "SpexdMakeCudaEngine";
inline constexpr char kCudaModuleFile[] = "libspexd_cuda.so";
// A module of another version is refused: exported as a const char* of this name, compared with kVersion.
inline constexpr char kCudaModuleVersion[] = "SpexdCudaModuleVersion";
// Likewise, compared with kBuildIdentity: of one version, but built from other headers or by another
// compiler.
inline constexpr char kCudaModuleBuild[] = "SpexdCudaModuleBuild";

}  // namespace spexd

#endif  // SPEXD_CUDA_LOADER_CUDA_ENGINE_OPTIONS_H_
