// Separate from choose_engine.cc, so that code that only reads flags links no engine.

#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "cuda/loader/choose_engine.h"

namespace spexd {
namespace {

absl::Status CheckWithin(const char* flag, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrFormat("%s is %d, must be %d to %d", flag, value, least, most));
}

}  // namespace

absl::Status CheckEngineChoice(const EngineChoice& choice) {
  if (choice.device != "cpu" && choice.device != "cuda" && choice.device != "auto") {
    return absl::InvalidArgumentError(
        absl::StrFormat("--device \"%s\": must be cpu, cuda or auto", choice.device));
  }
  if (choice.device == "cpu" && !choice.devices.empty()) {
    return absl::InvalidArgumentError(
        "--devices names CUDA devices, --device cpu uses none: give one of them");
  }
  SPEXD_RETURN_IF_ERROR(CheckWithin("--threads", choice.threads, 0, kMaxEngineThreads));
  SPEXD_RETURN_IF_ERROR(CheckWithin("--max-workspace-bytes", choice.max_workspace_bytes, 0, kMaxEngineBytes));
  SPEXD_RETURN_IF_ERROR(CheckWithin("--device-memory-bytes", choice.device_memory_bytes, 0, kMaxEngineBytes));
  return CheckWithin("--jobs-per-device", choice.jobs_per_device, 1, kMaxJobsPerDevice);
}

}  // namespace spexd
