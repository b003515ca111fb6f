// Which engine a program runs: asked for by its flags, decided once, at its start.
#ifndef SPEXD_CUDA_LOADER_CHOOSE_ENGINE_H_
#define SPEXD_CUDA_LOADER_CHOOSE_ENGINE_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/extract/engine.h"
#include "cuda/loader/cuda_engine_options.h"

namespace spexd {

struct EngineChoice {
  std::string device = "auto";    // "cpu", "cuda" or "auto"
  std::vector<int> devices = {};  // of CUDA; empty: all, or
  // For a program that runs one job: the first device alone, and of its memory what the job needs.
  bool one_job = false;
  int threads = 0;                  // of the CPU engine; 0: all processors
  int64_t max_workspace_bytes = 0;  // of the CPU engine; 0: half of the machine's memory
  int64_t device_memory_bytes = 0;  // see CudaEngineOptions
  int jobs_per_device = CudaEngineOptions().jobs_per_device;
};

struct ChosenEngine {
  std::unique_ptr<Engine> engine;
  std::string note;  // why CUDA was not taken under "auto", else ""; always to be shown
};

// InvalidArgument naming the flag, its value and the limit.
absl::Status CheckEngineChoice(const EngineChoice& choice);

// "cuda" fails where it is not possible (see LoadCudaEngine); "auto" takes the CPU then and says why. Naming
// devices asks for CUDA: then "auto" fails too.
absl::StatusOr<ChosenEngine> ChooseEngine(const EngineChoice& choice);

}  // namespace spexd

#endif  // SPEXD_CUDA_LOADER_CHOOSE_ENGINE_H_
