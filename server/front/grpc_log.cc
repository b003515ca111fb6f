#include "server/front/grpc_log.h"

#include <grpc/support/log.h>

#include "core/base/threads/mutex.h"

namespace spexd {
namespace {

// The log for gRPC's log function, which has no argument for its owner.
struct Target {
  Mutex mutex;
  Logger* log ABSL_GUARDED_BY(mutex) = nullptr;
};
Target& TheTarget() {
  static Target* const target = new Target;  // never destroyed: gRPC's threads may outlive main
  return *target;
}

void Forward(gpr_log_func_args* line) {
  MutexLock lock(&TheTarget().mutex);
  if (TheTarget().log == nullptr) return;
  const LogLevel level = line->severity == GPR_LOG_SEVERITY_ERROR  ? LogLevel::kWarning
                         : line->severity == GPR_LOG_SEVERITY_INFO ? LogLevel::kInfo
                                                                   : LogLevel::kDebug;
  TheTarget().log->Write(level, "grpc", {{"message", line->message}});
}

}  // namespace

GrpcLog::GrpcLog(Logger* log) : log_(log) {
  MutexLock lock(&TheTarget().mutex);
  TheTarget().log = log;
  gpr_set_log_function(&Forward);
}

GrpcLog::~GrpcLog() {
  MutexLock lock(&TheTarget().mutex);
  if (TheTarget().log == log_) TheTarget().log = nullptr;
}

}  // namespace spexd
