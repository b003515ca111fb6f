#include "client/cli/doctor/cuda_checks.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/cli/flags/where_flags.h"
#include "cuda/loader/driver_facts.h"
#include "cuda/loader/load_cuda_module.h"

namespace spexd::cli {
namespace {

std::string DeviceText(const DriverDevice& device) {
  std::string text =
      absl::StrFormat("%s, %.1f GiB, compute capability %d.%d", device.name,
                      static_cast<double>(device.memory_bytes) / kGiB, device.major, device.minor);
  if (device.mig) absl::StrAppend(&text, ", a part of a device (MIG)");
  return text;
}

std::string DriverText(const DriverFacts& driver) {
  return absl::StrFormat("NVIDIA %s, CUDA up to %d.%d",
                         driver.version.empty() ? "of unknown version" : driver.version,
                         driver.cuda_version / 1000, driver.cuda_version % 1000 / 10);
}

// Loads the engine on all devices, without taking their memory.
Finding CheckCudaEngine() {
  CudaEngineOptions options;
  options.on_demand = true;
  const auto engine = LoadCudaEngine(options);
  if (!engine.ok()) {
    return Doubtful("cuda engine", std::string(engine.status().message()),
                    "until then the CPU extracts; docs/install.md has the GPU's installation");
  }
  std::vector<std::string> names;
  for (const DeviceStatus& device : (*engine)->Devices()) {
    names.push_back(absl::StrCat(device.index, device.health.ok() ? "" : " (FAILED)"));
  }
  return Good("cuda engine", absl::StrCat("loaded, ready on the devices ", absl::StrJoin(names, ", ")));
}

}  // namespace

FindingList CheckCuda() {
  const absl::StatusOr<DriverFacts> driver = AskDriver();
  if (!driver.ok()) {
    const std::string found(driver.status().message());
    if (!HasGpu()) return {Good("gpu", absl::StrCat("none: ", found, "; the CPU extracts"))};
    return {Doubtful("gpu", found,
                     "check with nvidia-smi; a container needs the devices (docker run --gpus all)")};
  }
  FindingList findings = {Good("driver", DriverText(*driver))};
  if (driver->devices.empty()) {
    findings.push_back(
        Doubtful("gpu", "the driver shows no device",
                 "check with nvidia-smi, and CUDA_VISIBLE_DEVICES; until then the CPU extracts"));
    return findings;
  }
  for (size_t k = 0; k < driver->devices.size(); ++k) {
    findings.push_back(Good(absl::StrCat("gpu ", k), DeviceText(driver->devices[k])));
  }
  findings.push_back(CheckCudaEngine());
  return findings;
}

}  // namespace spexd::cli
