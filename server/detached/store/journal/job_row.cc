#include "server/detached/store/journal/job_row.h"

#include <algorithm>
#include <chrono>
#include <climits>
#include <cstdint>
#include <random>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"
#include "server/schedule/job_claim.h"

namespace spexd {
namespace {

constexpr size_t kMostIdCharacters = 32;
constexpr double kMostTime = 1e12;                     // seconds since 1970
constexpr int64_t kMostBytes = 1'000'000'000'000'000;  // of one job on disk
constexpr int kMostCode = 16;                          // of gRPC's status codes
constexpr size_t kMostMessageBytes = 4096;

struct Named {
  const char* column;
  int64_t value, least, most;
};

// The id is part of files' names.
bool IsId(const std::string& id) {
  return !id.empty() && id.size() <= kMostIdCharacters &&
         std::all_of(id.begin(), id.end(), [](unsigned char c) { return absl::ascii_isalnum(c); });
}

// SQLite counts rows on from the largest number, and lists begin before INT64_MAX.
constexpr int64_t kMostNumber = int64_t{1} << 62;

absl::Status CheckNumbers(const JobRow& row) {
  const auto events = static_cast<int64_t>(row.last_sequence);
  const Named numbers[] = {
      {"number", row.number, 0, kMostNumber},
      {"state", row.state, v1::DETACHED_STATE_QUEUED, v1::DetachedState_MAX},
      {"priority", row.priority, -kHighestPriority, kHighestPriority},
      {"keep_seconds", row.keep_seconds, 0, UINT32_MAX},
      {"runs", row.runs, 0, INT_MAX},
      {"setbacks", row.setbacks, 0, INT_MAX},
      {"bundles_done", row.bundles_done, 0, INT_MAX},
      {"bundles_total", row.bundles_total, 0, INT_MAX},
      {"last_sequence", events, 0, INT64_MAX},
      {"acknowledged", static_cast<int64_t>(row.acknowledged), 0, events},
      {"input_bytes", row.input_bytes, 0, kMostBytes},
      {"result_bytes", row.result_bytes, 0, kMostBytes},
      {"code", row.code, 0, kMostCode},
  };
  for (const Named& number : numbers) {
    if (number.value >= number.least && number.value <= number.most) continue;
    return absl::InvalidArgumentError(absl::StrFormat("%s is %d, must be %d to %d", number.column,
                                                      number.value, number.least, number.most));
  }
  return absl::OkStatus();
}

absl::Status CheckTimes(const JobRow& row) {
  const struct {
    const char* column;
    double value;
  } times[] = {{"submitted", row.submitted},
               {"deadline", row.deadline},
               {"started", row.started},
               {"ended", row.ended},
               {"expires", row.expires}};
  for (const auto& time : times) {
    if (time.value >= 0 && time.value <= kMostTime) continue;
    return absl::InvalidArgumentError(
        absl::StrFormat("%s is %g, must be 0 to %g", time.column, time.value, kMostTime));
  }
  return absl::OkStatus();
}

absl::Status CheckTexts(const JobRow& row) {
  if (!IsId(row.id)) return absl::InvalidArgumentError(absl::StrFormat("id is \"%s\"", ForMessage(row.id)));
  const struct {
    const char* column;
    const std::string& value;
  } texts[] = {{"owner", row.owner}, {"request_id", row.request_id}, {"image", row.image},
               {"psf", row.psf},     {"trace_id", row.trace_id},     {"message", row.message}};
  for (const auto& text : texts) {
    if (!IsUtf8(text.value))
      return absl::InvalidArgumentError(absl::StrFormat("%s is no UTF-8", text.column));
  }
  return absl::OkStatus();
}

absl::Status CheckEnd(const JobRow& row) {
  const bool failed = row.has_ended() && row.state != v1::DETACHED_STATE_DONE;
  if (failed != (row.code != 0)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("state is %d with the code %d", static_cast<int>(row.state), row.code));
  }
  if (row.has_ended() == (row.expires > 0)) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrFormat("state is %d, and expires %g", static_cast<int>(row.state), row.expires));
}

}  // namespace

absl::Status CheckRow(const JobRow& row) {
  SPEXD_RETURN_IF_ERROR(CheckNumbers(row));
  SPEXD_RETURN_IF_ERROR(CheckTimes(row));
  SPEXD_RETURN_IF_ERROR(CheckTexts(row));
  return CheckEnd(row);
}

double SecondsSince1970() {
  const auto seconds = [](auto time) {
    return std::chrono::duration<double>(time.time_since_epoch()).count();
  };
  const double wall = seconds(std::chrono::system_clock::now());
  return wall > 0 ? wall : seconds(std::chrono::steady_clock::now());
}

std::string NewJobId() {
  std::random_device random;
  const auto part = [&random] { return absl::Hex(random(), absl::kZeroPad8); };
  return absl::StrCat(part(), part(), part(), part());
}

JsonFields LogFieldsOf(const JobRow& row) {
  JsonFields fields = {{"job", row.id}};
  if (!row.trace_id.empty()) fields["trace_id"] = row.trace_id;
  return fields;
}

int64_t DiskOf(const JobRow& row) { return kRowBytes + row.input_bytes + row.result_bytes; }

void EndRow(const absl::Status& result, JobRow* row) {
  row->state = result.ok()                 ? v1::DETACHED_STATE_DONE
               : absl::IsCancelled(result) ? v1::DETACHED_STATE_CANCELLED
                                           : v1::DETACHED_STATE_FAILED;
  row->ended = SecondsSince1970();
  row->expires = row->ended + static_cast<double>(row->keep_seconds);
  row->code = static_cast<int>(result.code());
  const std::string message =
      IsUtf8(result.message()) ? std::string(result.message()) : absl::CHexEscape(result.message());
  row->message = std::string(CutUtf8(message, kMostMessageBytes));
  row->input_bytes = static_cast<int64_t>(row->header.size());
  const bool released = row->acknowledged == row->last_sequence;
  if (released || row->state == v1::DETACHED_STATE_CANCELLED) row->result_bytes = 0;
}

absl::Status CheckSetbacks(const JobRow& row) {
  const int64_t deaths = row.deaths();
  if (deaths < kMaxDeaths && row.device_failures() < kMaxDeviceFailures) return absl::OkStatus();
  const std::string begun = absl::StrCat("the job was begun ", row.runs, row.runs == 1 ? " time" : " times");
  if (deaths < kMaxDeaths) {
    return absl::InternalError(
        absl::StrCat(begun, ", and its device failed ", row.device_failures(),
                     " times without a new result; it is not run again. Submit it under "
                     "another request_id once the device works"));
  }
  return absl::InternalError(
      absl::StrCat(begun, ", and the server died ",
                   row.runs == deaths ? "each time" : absl::StrCat("during ", deaths, " of these runs"),
                   "; it is not run again, because it may be the cause. Look for the cause in the server's "
                   "log before each "
                   "job_recovered of this job, and in the system's log (out of memory?), then submit the job "
                   "under another "
                   "request_id"));
}

absl::Status CheckNotEnded(const JobRow& row) {
  return row.has_ended() ? absl::AbortedError("the job has ended") : absl::OkStatus();
}

}  // namespace spexd
