#include "server/operation/engine_health.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/threads/guard.h"

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
  announce_ = nullptr;
}

void EngineHealth::Announce() {
  if (announce_) announce_(healthy_ && !stopped_);
}

absl::Status EngineHealth::Check() {
  return CatchExceptions([this] { return Ask(); });
}

absl::Status EngineHealth::Ask() {
  uint64_t number = 0;
  {
    MutexLock lock(&mutex_);
    number = ++asked_;
  }
  const absl::Status status = engine_->Health();
  const std::vector<DeviceStatus> devices = engine_->Devices();
  {
    MutexLock lock(&mutex_);
    // An older answer that arrives after a newer one is ignored.
    if (number > applied_) {
      applied_ = number;
      Apply(status, devices);
    }
  }
  if (status.ok()) return status;
  return absl::UnavailableError(absl::StrCat("the engine can run no more jobs: ", status.message()));
}

void EngineHealth::Apply(const absl::Status& status, const std::vector<DeviceStatus>& devices) {
  LogDevices(devices);
  if (status.ok() == healthy_) return;
  healthy_ = status.ok();
  if (healthy_) {
    log_->Info("engine_recovered");
  } else {
    log_->Failure("engine_failed", status);
  }
  Announce();
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
