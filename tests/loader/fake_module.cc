// Replaces libspexd_cuda.so by the service tests' fake engine, without an analyser, as without cuBLAS. It is
// built several times: versions, builds and ways to fail differ.
#include <string>

#include "core/base/version.h"
#include "cuda/loader/build_identity.h"
#include "cuda/loader/cuda_module.h"
#include "tests/service/support/fake_engine.h"

#ifndef SPEXD_FAKE_VERSION
#define SPEXD_FAKE_VERSION ::spexd::kVersion
#endif
#ifndef SPEXD_FAKE_BUILD
#define SPEXD_FAKE_BUILD ::spexd::kBuildIdentity
#endif
#ifndef SPEXD_FAKE_FAILURE
#define SPEXD_FAKE_FAILURE ""
#endif
#ifndef SPEXD_FAKE_HEALTH
#define SPEXD_FAKE_HEALTH ""
#endif
#ifndef SPEXD_FAKE_DEATH
#define SPEXD_FAKE_DEATH ""
#endif
#ifndef SPEXD_FAKE_DEATH_AFTER
#define SPEXD_FAKE_DEATH_AFTER 0
#endif

namespace spexd::testing {
namespace {

constexpr int kDevices = 4;  // devices of the machine

// Returns an identity with the same compiler, but other headers and sanitizers.
[[maybe_unused]] const char* OtherBuild() {
  static const std::string build = [] {
    const std::string own = kBuildIdentity;
    const size_t first = own.find(';'), last = own.rfind(' ');
    return "interface 0123456789abcdef" + own.substr(first, last - first) + " others";
  }();
  return build.c_str();
}

// Lets the first device die under the first job, after SPEXD_FAKE_DEATH_AFTER bundles; the engine fails with
// it if there is no other device. Later jobs run on what is left.
void LetADeviceDie(const std::string& how, EngineControl* control) {
  control->Set([&](auto& b) {
    b.fault.at = EngineControl::Fault::At::kExtract;
    b.fault.after_bundles = SPEXD_FAKE_DEATH_AFTER;
    b.fault.happens = [how, control]() -> absl::Status {
      absl::Status death;
      control->Set([&](auto& now) {
        if (now.fault.at == EngineControl::Fault::At::kNowhere) return;  // the device died under another job
        now.fault.at = EngineControl::Fault::At::kNowhere;
        death = absl::UnavailableError(how);
        now.devices[0].health = absl::UnavailableError(how);
        if (now.devices.size() == 1) now.health = absl::UnavailableError(how);
      });
      return death;
    };
  });
}

absl::StatusOr<std::unique_ptr<Engine>> MakeEngine(const CudaEngineOptions& options) {
  const std::string failure = SPEXD_FAKE_FAILURE, health = SPEXD_FAKE_HEALTH;
  if (!failure.empty()) return absl::FailedPreconditionError(failure);
  std::vector<int> devices = options.devices;
  if (devices.empty()) devices = {0, 1, 2, 3};
  auto control = std::make_shared<EngineControl>();
  for (int index : devices) {
    if (index == 99) throw std::runtime_error("thrown by the module");
    if (index >= kDevices) {
      return absl::InvalidArgumentError("--devices: " + std::to_string(index) + " is not there, 0 to 3 are");
    }
    DeviceStatus device;
    device.index = index;
    device.name = "Fake GPU";
    device.memory_bytes = options.device_memory_bytes;
    if (!health.empty()) device.health = absl::UnavailableError(health);
    control->Set([&](auto& b) { b.devices.push_back(device); });
  }
  control->Set([&](auto& b) {
    const int slots = static_cast<int>(devices.size()) * options.jobs_per_device;
    if (!health.empty()) b.health = absl::UnavailableError(health);
    b.info = {"cuda", std::to_string(devices.size()) + " x Fake GPU", slots, 0};
  });
  const std::string death = SPEXD_FAKE_DEATH;
  if (!death.empty()) LetADeviceDie(death, control.get());
  return std::make_unique<FakeEngine>(std::move(control));
}

absl::StatusOr<std::unique_ptr<Analyser>> MakeAnalyser(const CudaAnalyserOptions& options) {
  if (options.device == 99) throw std::runtime_error("thrown by the module");
  return absl::FailedPreconditionError("cuBLAS cannot be loaded");
}

}  // namespace
}  // namespace spexd::testing

const spexd::CudaModule SpexdCudaModule = {SPEXD_FAKE_VERSION, SPEXD_FAKE_BUILD, &spexd::testing::MakeEngine,
                                           &spexd::testing::MakeAnalyser};
