#include "server/engine_health.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"

namespace spexd {

void EngineHealth::StartServing(std::function<void(bool)> announce) {
  MutexLock lock(&mutex_);
  announce_ = std::move(announce);
  Announce();
}

void EngineHealth::StopServing() {
  MutexLock lock(&mutex_);
  stopped_ = true;
  Announce();
}

void EngineHealth::Announce() {
  if (announce_) announce_(healthy_ && !stopped_);
}

absl::Status EngineHealth::Check() {
  // Asked under the lock, so that an older answer never follows a newer one.
  MutexLock lock(&mutex_);
  const absl::Status status = engine_->Health();
  LogDevices(engine_->Devices());
  if (status.ok() != healthy_) {
    healthy_ = status.ok();
    if (healthy_) {
      log_->Info("engine_recovered");
    } else {
      log_->Error("engine_failed", {{"message", std::string(status.message())}});
    }
    Announce();
  }
  if (status.ok()) return status;
  return absl::UnavailableError(absl::StrCat("the engine can run no more jobs: ", status.message()));
}

void EngineHealth::LogDevices(const std::vector<DeviceStatus>& devices) {
  for (const DeviceStatus& device : devices) {
    if (!device.health.ok()) {
      if (!failed_devices_.insert(device.index).second) continue;
      log_->Error("device_failed", {{"device", device.index},
                                    {"name", device.name},
                                    {"message", std::string(device.health.message())}});
    } else if (failed_devices_.erase(device.index) > 0) {
      log_->Info("device_recovered", {{"device", device.index}, {"name", device.name}});
    }
  }
}

}  // namespace spexd
