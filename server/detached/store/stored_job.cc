#include "server/detached/store/stored_job.h"

#include <algorithm>
#include <chrono>
#include <random>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "core/base/text.h"

namespace spexd {

int64_t StoredJob::input_bytes() const {
  int64_t bytes = 0;
  for (const StoredInput& input : inputs) bytes += input.bytes;
  return bytes;
}

absl::Status CheckFailures(const StoredJob& job) {
  if (job.deaths < kMaxDeaths && job.device_failures < kMaxDeviceFailures) return absl::OkStatus();
  const std::string begun = absl::StrCat("the job was begun ", job.runs, job.runs == 1 ? " time" : " times");
  if (job.deaths < kMaxDeaths) {
    return absl::InternalError(
        absl::StrCat(begun, ", and its device failed ", job.device_failures,
                     " times without a new result; it is not run again. Submit it under "
                     "another request_id once the device works"));
  }
  return absl::InternalError(absl::StrCat(
      begun, ", and the server died ",
      job.runs == job.deaths ? "each time" : absl::StrCat("during ", job.deaths, " of these runs"),
      "; it is not run again, because it may be the cause. Look for the cause in the server's log before "
      "each "
      "job_recovered of this job, and in the system's log (out of memory?), then submit the job under "
      "another "
      "request_id"));
}

absl::Status CheckNotEnded(const StoredJob& job) {
  return job.has_ended() ? absl::AbortedError("the job has ended") : absl::OkStatus();
}

void EndJob(const absl::Status& result, StoredJob* job) {
  constexpr size_t kMaxMessageBytes = 1500;  // fits a state record even if escaping doubles it
  job->state = result.ok()                 ? v1::DETACHED_STATE_DONE
               : absl::IsCancelled(result) ? v1::DETACHED_STATE_CANCELLED
                                           : v1::DETACHED_STATE_FAILED;
  job->ended = SecondsSince1970();
  job->expires = job->ended + static_cast<double>(job->keep_seconds);
  job->code = static_cast<int64_t>(result.code());
  const std::string message = IsUtf8(result.message()) ? EscapeControlCharacters(result.message())
                                                       : absl::CHexEscape(result.message());
  job->message = std::string(CutUtf8(message, kMaxMessageBytes));
  const bool released = job->acknowledged == job->last_sequence;
  if (released || job->state == v1::DETACHED_STATE_CANCELLED) job->result_bytes = 0;
}

int64_t DiskOf(const StoredJob& job) {
  return kJobBytes + job.header_bytes + (job.has_ended() ? 0 : job.input_bytes()) + job.result_bytes;
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

bool IsJobId(absl::string_view text) {
  return text.size() == kJobIdBytes &&
         std::all_of(text.begin(), text.end(), [](unsigned char c) { return absl::ascii_isalnum(c); });
}

JsonFields LogFieldsOf(const StoredJob& job) {
  JsonFields fields = {{"job", job.id}};
  if (!job.trace_id.empty()) fields["trace_id"] = job.trace_id;
  return fields;
}

}  // namespace spexd
