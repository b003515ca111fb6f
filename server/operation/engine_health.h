// The engine's health: whether it can run jobs, for gRPC's health service and the log.
#ifndef SPEXD_SERVER_OPERATION_ENGINE_HEALTH_H_
#define SPEXD_SERVER_OPERATION_ENGINE_HEALTH_H_

#include <cstdint>
#include <functional>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "core/base/threads/mutex.h"
#include "core/extract/engine.h"
#include "server/base/log.h"

namespace spexd {

// Safe to use from many threads.
class EngineHealth {
 public:
  // `engine` and `log` are not owned.
  EngineHealth(const Engine* engine, Logger* log) : engine_(engine), log_(log) {}

  // Calls `announce` at once and at each change, with whether the server takes jobs. `announce` must not use
  // this object.
  void StartServing(std::function<void(bool serving)> announce);
  // Announces that the server takes no jobs. `announce` is not called after this returns.
  void StopServing();

  // Asks the engine, without blocking other callers meanwhile. Logs and announces changes of the engine and
  // of each device. Unavailable, with the reason: the engine can run no more jobs.
  absl::Status Check() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  absl::Status Ask() ABSL_LOCKS_EXCLUDED(mutex_);
  void Announce() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Apply(const absl::Status& status, const std::vector<DeviceStatus>& devices)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void LogDevices(const std::vector<DeviceStatus>& devices) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Engine* const engine_;
  Logger* const log_;
  Mutex mutex_;
  std::function<void(bool)> announce_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t asked_ ABSL_GUARDED_BY(mutex_) = 0;    // how often the engine was asked
  uint64_t applied_ ABSL_GUARDED_BY(mutex_) = 0;  // the number of the question whose answer is in use
  bool healthy_ ABSL_GUARDED_BY(mutex_) = true;
  std::set<int> failed_devices_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace spexd

#endif  // SPEXD_SERVER_OPERATION_ENGINE_HEALTH_H_
