#include "server/log.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <ctime>

#include "absl/strings/ascii.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"

namespace spexd {
namespace {

constexpr std::array<const char*, 4> kNames = {"debug", "info", "warning", "error"};

// RFC 3339 in UTC, milliseconds.
std::string Now() {
  const auto now = std::chrono::system_clock::now();
  const int64_t millis =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count();
  const std::time_t seconds = static_cast<std::time_t>(millis / 1000);
  std::tm utc{};
  gmtime_r(&seconds, &utc);
  return absl::StrFormat("%04d-%02d-%02dT%02d:%02d:%02d.%03dZ", utc.tm_year + 1900, utc.tm_mon + 1,
                         utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec, static_cast<int>(millis % 1000));
}

bool IsLowerHex(absl::string_view text, size_t length) {
  return text.size() == length && std::all_of(text.begin(), text.end(), [](unsigned char c) {
           return absl::ascii_isdigit(c) || (c >= 'a' && c <= 'f');
         });
}

}  // namespace

absl::StatusOr<LogLevel> ParseLogLevel(const std::string& name) {
  for (size_t k = 0; k < kNames.size(); ++k) {
    if (name == kNames[k]) return static_cast<LogLevel>(k);
  }
  return absl::InvalidArgumentError(
      absl::StrFormat("--log-level \"%s\": must be debug, info, warning or error", name));
}

void Logger::Write(LogLevel level, const std::string& event, const nlohmann::ordered_json& fields) {
  if (level < least_) return;
  nlohmann::ordered_json line = {
      {"time", Now()}, {"level", kNames[static_cast<size_t>(level)]}, {"event", event}};
  if (fields.is_object()) {
    for (const auto& [key, value] : fields.items()) line[key] = value;
  }
  std::string text = line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  text += '\n';
  MutexLock lock(&mutex_);
  out_->write(text.data(), static_cast<std::streamsize>(text.size()));
  out_->flush();
}

std::string TraceIdOf(const std::string& traceparent) {
  const std::vector<std::string> parts = absl::StrSplit(traceparent, '-');
  if (parts.size() < 4 || !IsLowerHex(parts[0], 2) || !IsLowerHex(parts[1], 32) ||
      !IsLowerHex(parts[2], 16)) {
    return "";
  }
  return parts[1];
}

}  // namespace spexd
