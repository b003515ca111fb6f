// Choice of the engine that a program runs. Its flags request it; it is decided once, at the program's start.
#ifndef SPEXD_CUDA_LOADER_CHOOSE_ENGINE_H_
#define SPEXD_CUDA_LOADER_CHOOSE_ENGINE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/extract/engine.h"
#include "cuda/loader/cuda_options.h"

namespace spexd {

inline constexpr int kMaxEngineThreads = 1024;
inline constexpr int kMaxJobsPerDevice = 64;
inline constexpr int64_t kMaxEngineBytes = 1'000'000'000'000'000;

struct EngineChoice {
  std::string device = "auto";    // "cpu", "cuda" or "auto"
  std::vector<int> devices = {};  // CUDA devices; empty: all, or the first if one_job
  // True for a program that runs one job: it takes only the first device, and only the device memory that the
  // job needs.
  bool one_job = false;
  int threads = 0;                  // CPU engine's threads; 0: all processors
  int64_t max_workspace_bytes = 0;  // CPU engine's limit; 0: half of MachineMemory()
  int64_t device_memory_bytes = 0;  // see CudaEngineOptions
  int64_t kept_memory_bytes = 0;    // see CudaEngineOptions
  int jobs_per_device = CudaEngineOptions().jobs_per_device;
};

struct ChosenEngine {
  std::unique_ptr<Engine> engine;
  std::string note;  // why "auto" did not choose CUDA, else ""
};

// Returns InvalidArgument that names the flag, its value and the limit.
absl::Status CheckEngineChoice(const EngineChoice& choice);

// Makes the engine. "cuda" fails if CUDA is not available (see LoadCudaEngine); "auto" then chooses the CPU
// and says why in the note. If devices are named, CUDA is required, and "auto" fails too.
absl::StatusOr<ChosenEngine> ChooseEngine(const EngineChoice& choice);

}  // namespace spexd

#endif  // SPEXD_CUDA_LOADER_CHOOSE_ENGINE_H_
