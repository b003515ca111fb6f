// Structured logs: one JSON object a line, or the same as readable text. Callers never wait for whoever reads
// them.
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

// kAuto: kText where the sink is a terminal, else kJson.
enum class LogFormat { kAuto, kText, kJson };

// "auto", "text" or "json".
absl::StatusOr<LogFormat> ParseLogFormat(const std::string& name);
std::string LogFormatName(LogFormat format);

// Where log lines go. One call at a time.
class LogSink {
 public:
  virtual ~LogSink() = default;
  virtual bool IsTerminal() const { return false; }
  // May wait as long as the reader likes, but returns soon after a stop request, whatever is written by then.
  virtual void Write(const std::string& lines, const std::stop_token& stop) = 0;
};
// A stream that takes lines at once. `out` is not owned and outlives the sink.
std::unique_ptr<LogSink> MakeStreamSink(std::ostream* out);
// A file, terminal, pipe or socket, which stays open. Errors lose lines.
std::unique_ptr<LogSink> MakeDescriptorSink(int descriptor);

// Lines wait in a bounded queue for a thread that writes them, so that a reader who stops reading holds
// nothing up. Lines that find the queue full are dropped and counted; the next line that is written tells how
// many. Safe to use from many threads.
class Logger {
 public:
  static constexpr int64_t kMaxQueuedBytes = 1 << 20;

  Logger(LogLevel min_level, std::unique_ptr<LogSink> sink, int64_t max_queued_bytes = kMaxQueuedBytes,
         LogFormat format = LogFormat::kAuto);
  // Flushes, and ends what the sink still waits for.
  ~Logger();

  // {"time": ..., "level": ..., "event": event, fields...}, or "TIME LEVEL EVENT FIELD=VALUE ...". Bytes that
  // are not UTF-8 are replaced; in text, control characters are escaped.
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
  // An error with the message of `status`.
  void Failure(const char* event, const absl::Status& status) {
    Error(event, {{"message", std::string(status.message())}});
  }
  // Lines below `level` are not written from now on.
  void SetLevel(LogLevel level) { min_level_ = level; }
  // Waits until the sink has taken all lines, kPatience at most.
  void Flush() ABSL_LOCKS_EXCLUDED(mutex_);
  // Lines dropped so far.
  int64_t dropped() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  static constexpr std::chrono::seconds kPatience{1};

  void Run(const std::stop_token& stop);
  // All lines that wait, "" after a stop request. `writing_` is set until the next call.
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
  std::jthread writer_;  // last: ends before what it uses
};

}  // namespace spexd

#endif  // SPEXD_SERVER_BASE_LOG_H_
