#include "cuda/loader/choose_analyser.h"

#include <map>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "cuda/loader/analyser_of_devices.h"
#include "cuda/loader/load_cuda_module.h"

namespace spexd {

absl::StatusOr<ChosenAnalyser> ChooseAnalyser(const EngineChoice& choice) {
  SPEXD_RETURN_IF_ERROR(CheckEngineChoice(choice));
  if (choice.device == "cpu") return ChosenAnalyser();
  CudaAnalyserOptions options;
  if (!choice.devices.empty()) options.device = choice.devices.front();
  absl::StatusOr<std::unique_ptr<Analyser>> cuda = LoadCudaAnalyser(options);
  if (cuda.ok()) return ChosenAnalyser{*std::move(cuda), ""};
  if (choice.device == "cuda" || !choice.devices.empty()) {
    return absl::Status(cuda.status().code(),
                        absl::StrCat("products on a GPU (--device cuda): ", cuda.status().message()));
  }
  return ChosenAnalyser{nullptr, std::string(cuda.status().message())};
}

ChosenAnalyser ChooseAnalyserFor(const Engine& engine, int64_t memory_bytes) {
  if (memory_bytes == 0) return {};
  std::map<int, std::unique_ptr<Analyser>> devices;
  for (const DeviceStatus& device : engine.Devices()) {
    absl::StatusOr<std::unique_ptr<Analyser>> made =
        LoadCudaAnalyser({.device = device.index, .memory_bytes = memory_bytes});
    if (!made.ok()) return {nullptr, std::string(made.status().message())};
    devices.emplace(device.index, *std::move(made));
  }
  if (devices.empty()) return {};
  return {std::make_unique<AnalyserOfDevices>(std::move(devices)), ""};
}

}  // namespace spexd
