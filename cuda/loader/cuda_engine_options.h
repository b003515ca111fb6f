// Options and entry points of the CUDA engine, shared by both sides of the module boundary.
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
  // Memory taken from each device at start; 0: nine tenths of what is free. On demand: the most that is
  // taken; 0: all that is free.
  int64_t device_memory_bytes = 0;
  int64_t kept_memory_bytes = 0;  // most beside it for spectra that stay on a device; 0: what is free
  int jobs_per_device = 4;        // jobs that run on one device at once
  int chunk_bins = 0;             // see PlanOptions; 0: chosen
  // Device memory is taken when jobs need it: for programs of one job, several of which may share a device.
  bool on_demand = false;
};

// The module's one entry, exported by libspexd_cuda.so under kCudaModuleEntry as a MakeCudaEngineFunction.
// FailedPrecondition: no driver, no device, or a device too old; the message says which.
using MakeCudaEngineFunction = void(const CudaEngineOptions& options,
                                    absl::StatusOr<std::unique_ptr<Engine>>* engine);
inline constexpr char kCudaModuleEntry[] = "SpexdMakeCudaEngine";
inline constexpr char kCudaModuleFile[] = "libspexd_cuda.so";
// Name of the module's exported version (const char*). A module whose version is not kVersion is refused.
inline constexpr char kCudaModuleVersion[] = "SpexdCudaModuleVersion";
// Name of the module's exported build identity, compared with kBuildIdentity. It differs for a module of the
// same version that was built from other headers or by another compiler.
inline constexpr char kCudaModuleBuild[] = "SpexdCudaModuleBuild";

}  // namespace spexd

#endif  // SPEXD_CUDA_LOADER_CUDA_ENGINE_OPTIONS_H_
