#include "cuda/loader/choose_engine.h"

#include <utility>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "core/base/status_macros.h"
#include "core/extract/cpu/cpu_engine.h"
#include "cuda/loader/load_cuda_module.h"

namespace spexd {
namespace {

ChosenEngine OnTheCpu(const EngineChoice& choice, std::string note) {
  return {MakeCpuEngine({choice.threads, choice.max_workspace_bytes}), std::move(note)};
}

}  // namespace

absl::StatusOr<ChosenEngine> ChooseEngine(const EngineChoice& choice) {
  SPEXD_RETURN_IF_ERROR(CheckEngineChoice(choice));
  if (choice.device == "cpu") return OnTheCpu(choice, "");
  CudaEngineOptions options;
  options.devices = choice.devices;
  if (choice.one_job && choice.devices.empty()) options.devices = {0};
  options.on_demand = choice.one_job;
  options.device_memory_bytes = choice.device_memory_bytes;
  options.kept_memory_bytes = choice.kept_memory_bytes;
  options.jobs_per_device = choice.one_job ? 1 : choice.jobs_per_device;
  absl::StatusOr<std::unique_ptr<Engine>> cuda = LoadCudaEngine(options);
  if (cuda.ok()) return ChosenEngine{*std::move(cuda), ""};
  if (choice.device == "cuda" || !choice.devices.empty()) {
    const std::string flag =
        choice.devices.empty() ? "--device cuda" : "--devices " + absl::StrJoin(choice.devices, ",");
    return absl::Status(cuda.status().code(), absl::StrFormat("%s: %s", flag, cuda.status().message()));
  }
  return OnTheCpu(choice, std::string(cuda.status().message()));
}

}  // namespace spexd
