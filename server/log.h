// Structured logs: one JSON object a line.
#ifndef SPEXD_SERVER_LOG_H_
#define SPEXD_SERVER_LOG_H_

#include <ostream>
#include <string>

#include "absl/status/statusor.h"
#include "core/base/mutex.h"
#include "nlohmann/json.hpp"

namespace spexd {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

absl::StatusOr<LogLevel> ParseLogLevel(const std::string& name);

// Safe to use from many threads.
class Logger {
 public:
  // `out` is not owned and outlives the logger.
  Logger(LogLevel least, std::ostream* out) : least_(least), out_(out) {}

  // {"time": ..., "level": ..., "event": event, fields...}. Bytes that are not UTF-8 are replaced.
  void Write(LogLevel level, const std::string& event, const nlohmann::ordered_json& fields = {});
  void Info(const std::string& event, const nlohmann::ordered_json& fields = {}) {
    Write(LogLevel::kInfo, event, fields);
  }
  void Warning(const std::string& event, const nlohmann::ordered_json& fields = {}) {
    Write(LogLevel::kWarning, event, fields);
  }
  void Error(const std::string& event, const nlohmann::ordered_json& fields = {}) {
    Write(LogLevel::kError, event, fields);
  }

 private:
  const LogLevel least_;
  Mutex mutex_;
  std::ostream* const out_ ABSL_PT_GUARDED_BY(mutex_);
};

// The trace id of a W3C traceparent header ("00-<32 hex>-<16 hex>-<2 hex>"), "" if it is none.
std::string TraceIdOf(const std::string& traceparent);

}  // namespace spexd

#endif  // SPEXD_SERVER_LOG_H_
