// The structured log: one JSON object per line, or the same as readable text. Callers never wait for the
// reader of the log.
#ifndef SPEXD_SERVER_BASE_LOG_H_
#define SPEXD_SERVER_BASE_LOG_H_

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <ostream>
#include <stop_token>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "core/base/threads/mutex.h"
#include "server/base/json_fields.h"

namespace spexd {

enum class LogLevel { kDebug, kInfo, kWarning, kError };

absl::StatusOr<LogLevel> ParseLogLevel(const std::string& name);
std::string LogLevelName(LogLevel level);

// kAuto: kText if the sink is a terminal, otherwise kJson.
enum class LogFormat { kAuto, kText, kJson };

// Parses "auto", "text" or "json".
absl::StatusOr<LogFormat> ParseLogFormat(const std::string& name);
std::string LogFormatName(LogFormat format);

// The destination of log lines. Only one call at a time.
class LogSink {
 public:
  virtual ~LogSink() = default;
  virtual bool IsTerminal() const { return false; }
  // Writes lines. May block while the reader does not read, but returns soon after a stop is requested, even
  // if not everything is written.
  virtual void Write(const std::string& lines, const std::stop_token& stop) = 0;
};
// A sink that writes to a stream. `out` is not owned and outlives the sink.
std::unique_ptr<LogSink> MakeStreamSink(std::ostream* out);
// A sink that writes to a file, terminal, pipe or socket. It does not close the descriptor. Lines are lost on
// errors.
std::unique_ptr<LogSink> MakeDescriptorSink(int descriptor);

// The log. A thread writes the lines from a bounded queue, so that a reader that stops reading blocks
// nothing. Lines that do not fit the queue are dropped and counted; the next line that is written states the
// number. Safe to use from many threads.
class Logger {
 public:
  static constexpr int64_t kMaxQueuedBytes = 1 << 20;

  Logger(LogLevel min_level, std::unique_ptr<LogSink> sink, int64_t max_queued_bytes = kMaxQueuedBytes,
         LogFormat format = LogFormat::kAuto);
  // Flushes, then stops a sink that still blocks.
  ~Logger();

  // Writes the line {"time": ..., "level": ..., "event": event, fields...}, or as text "TIME LEVEL EVENT
  // FIELD=VALUE ...". Bytes that are not UTF-8 are replaced. In text, control characters are escaped.
  void Write(LogLevel level, const std::string& event, const JsonFields& fields = {});
  void Info(const std::string& event, const JsonFields& fields = {}) {
    Write(LogLevel::kInfo, event, fields);
  }
  void Warning(const std::string& event, const JsonFields& fields = {}) {
    Write(LogLevel::kWarning, event, fields);
  }
  void Error(const std::string& event, const JsonFields& fields = {}) {
    Write(LogLevel::kError, event, fields);
  }
  // Writes an error with the message of `status`.
  void Failure(const char* event, const absl::Status& status) {
    Error(event, {{"message", std::string(status.message())}});
  }
  // Sets the level below which lines are not written.
  void SetLevel(LogLevel level) { min_level_ = level; }
  // Waits until the sink has all lines, but at most kPatience.
  void Flush() ABSL_LOCKS_EXCLUDED(mutex_);
  // The number of dropped lines.
  int64_t dropped() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  static constexpr std::chrono::seconds kPatience{1};

  void Run(const std::stop_token& stop);
  // Waits for lines and takes all of them; "" after a stop request. Sets `writing_`, which the next call
  // clears.
  std::string Take(const std::stop_token& stop) ABSL_LOCKS_EXCLUDED(mutex_);

  std::atomic<LogLevel> min_level_;
  const int64_t max_queued_bytes_;
  const std::unique_ptr<LogSink> sink_;
  const bool text_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::string queue_ ABSL_GUARDED_BY(mutex_);
  bool writing_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t dropped_ ABSL_GUARDED_BY(mutex_) = 0, reported_ ABSL_GUARDED_BY(mutex_) = 0;
  std::jthread writer_;  // the last member, so that the thread ends before the others are destroyed
};

}  // namespace spexd

#endif  // SPEXD_SERVER_BASE_LOG_H_
