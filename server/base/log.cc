#include "server/base/log.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <ctime>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/text.h"

namespace spexd {
namespace {

constexpr std::array<const char*, 4> kNames = {"debug", "info", "warning", "error"};
constexpr std::array<const char*, 3> kFormats = {"auto", "text", "json"};

// Returns the time as RFC 3339 in UTC, with milliseconds.
std::string Now() {
  const auto now = std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now());
  const auto second = std::chrono::floor<std::chrono::seconds>(now);  // rounds down also before 1970
  const std::time_t seconds = std::chrono::system_clock::to_time_t(second);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  // StrFormat would end the process if memory ran out.
  std::array<char, 64> text{};
  absl::SNPrintF(text.data(), text.size(), "%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", utc.tm_year + 1900,
                 utc.tm_mon + 1, utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec,
                 static_cast<int>((now - second).count()));
  return text.data();
}

// Returns JSON. Characters beyond ASCII are escaped if `ascii` is set or if some are control characters,
// which JSON allows.
std::string Dump(const nlohmann::json& value, bool ascii = false) {
  std::string text = value.dump(-1, ' ', ascii, nlohmann::json::error_handler_t::replace);
  return ascii || !HasControlCharacters(text) ? text : Dump(value, /*ascii=*/true);
}

// Returns a value for a text line: words as they are, other strings in quotes.
std::string ForText(const nlohmann::json& value) {
  if (!value.is_string()) return Dump(value, /*ascii=*/true);
  const auto& text = value.get_ref<const std::string&>();
  if (!IsUtf8(text) || HasControlCharacters(text)) return Dump(value, /*ascii=*/true);
  return text.empty() || text.find_first_of(" \"=\\") != std::string::npos ? Dump(value) : text;
}

std::string TextLine(LogLevel level, const std::string& event, const JsonFields& fields) {
  std::string name = kNames[static_cast<size_t>(level)];
  name.resize(7, ' ');
  std::string line = absl::StrCat(Now(), " ", name, " ", event);
  for (const JsonFields::Field& field : fields) absl::StrAppend(&line, " ", field.key, "=", ForText(field.value));
  return line + "\n";
}

std::string JsonLine(LogLevel level, const std::string& event, const JsonFields& fields) {
  std::string line = absl::StrCat(R"({"time":")", Now(), R"(","level":")", kNames[static_cast<size_t>(level)],
                                  R"(","event":)", Dump(event));
  for (const JsonFields::Field& field : fields)
    absl::StrAppend(&line, ",", Dump(field.key), ":", Dump(field.value));
  return line + "}\n";
}

class StreamSink : public LogSink {
 public:
  explicit StreamSink(std::ostream* out) : out_(out) {}
  void Write(const std::string& lines, const std::stop_token&) override {
    out_->write(lines.data(), static_cast<std::streamsize>(lines.size()));
    out_->flush();
  }

 private:
  std::ostream* const out_;
};

class DescriptorSink : public LogSink {
 public:
  explicit DescriptorSink(int descriptor) : descriptor_(descriptor), wake_(eventfd(0, EFD_CLOEXEC)) {}
  ~DescriptorSink() override { close(wake_); }
  bool IsTerminal() const override { return isatty(descriptor_) == 1; }
  void Write(const std::string& lines, const std::stop_token& stop) override {
    const std::stop_callback wake(stop, [this] { eventfd_write(wake_, 1); });
    for (size_t at = 0; at < lines.size() && !stop.stop_requested();) {
      std::array<pollfd, 2> ready = {pollfd{descriptor_, POLLOUT, 0}, pollfd{wake_, POLLIN, 0}};
      if (poll(ready.data(), ready.size(), -1) < 0 && errno != EINTR) return;
      if ((ready[0].revents & ~POLLOUT) != 0) return;  // the reader has closed its end
      if ((ready[0].revents & POLLOUT) == 0) continue;
      // A pipe that is ready takes PIPE_BUF bytes without blocking.
      const ssize_t written =
          write(descriptor_, lines.data() + at, std::min<size_t>(lines.size() - at, PIPE_BUF));
      if (written < 0 && errno != EINTR && errno != EAGAIN) return;
      at += static_cast<size_t>(std::max<ssize_t>(written, 0));
    }
  }

 private:
  const int descriptor_, wake_;
};

}  // namespace

std::unique_ptr<LogSink> MakeStreamSink(std::ostream* out) { return std::make_unique<StreamSink>(out); }
std::unique_ptr<LogSink> MakeDescriptorSink(int descriptor) {
  return std::make_unique<DescriptorSink>(descriptor);
}

absl::StatusOr<LogLevel> ParseLogLevel(const std::string& name) {
  for (size_t k = 0; k < kNames.size(); ++k) {
    if (name == kNames[k]) return static_cast<LogLevel>(k);
  }
  return absl::InvalidArgumentError(
      absl::StrFormat("--log-level \"%s\": must be debug, info, warning or error", name));
}

std::string LogLevelName(LogLevel level) { return kNames[static_cast<size_t>(level)]; }

absl::StatusOr<LogFormat> ParseLogFormat(const std::string& name) {
  for (size_t k = 0; k < kFormats.size(); ++k) {
    if (name == kFormats[k]) return static_cast<LogFormat>(k);
  }
  return absl::InvalidArgumentError(
      absl::StrFormat("--log-format \"%s\": must be auto, text or json", name));
}

std::string LogFormatName(LogFormat format) { return kFormats[static_cast<size_t>(format)]; }

Logger::Logger(LogLevel min_level, std::unique_ptr<LogSink> sink, int64_t max_queued_bytes, LogFormat format)
    : min_level_(min_level),
      max_queued_bytes_(max_queued_bytes),
      sink_(std::move(sink)),
      text_(format == LogFormat::kText || (format == LogFormat::kAuto && sink_->IsTerminal())),
      writer_([this](const std::stop_token& stop) { Run(stop); }) {}

Logger::~Logger() {
  Flush();
  writer_.request_stop();
}

void Logger::Flush() {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  MutexLock lock(&mutex_);
  while ((writing_ || !queue_.empty()) && changed_.WaitUntil(&mutex_, deadline)) continue;
}

void Logger::Write(LogLevel level, const std::string& event, const JsonFields& fields) {
  if (level < min_level_) return;
  const auto write = text_ ? TextLine : JsonLine;
  const std::string line = write(level, event, fields);
  MutexLock lock(&mutex_);
  if (static_cast<int64_t>(queue_.size() + line.size()) > max_queued_bytes_) {
    ++dropped_;
    return;
  }
  if (dropped_ > reported_) {
    queue_ += write(LogLevel::kWarning, "log_lines_dropped", {{"lines", dropped_ - reported_}});
    reported_ = dropped_;
  }
  queue_ += line;
  changed_.NotifyAll();
}

int64_t Logger::dropped() const {
  MutexLock lock(&mutex_);
  return dropped_;
}

void Logger::Run(const std::stop_token& stop) {
  const std::stop_callback wake(stop, [this] {
    MutexLock lock(&mutex_);
    changed_.NotifyAll();
  });
  for (std::string lines = Take(stop); !lines.empty(); lines = Take(stop)) sink_->Write(lines, stop);
}

std::string Logger::Take(const std::stop_token& stop) {
  MutexLock lock(&mutex_);
  writing_ = false;
  changed_.NotifyAll();
  while (queue_.empty() && !stop.stop_requested()) changed_.Wait(&mutex_);
  writing_ = !queue_.empty() && !stop.stop_requested();
  return writing_ ? std::exchange(queue_, {}) : "";
}

}  // namespace spexd
