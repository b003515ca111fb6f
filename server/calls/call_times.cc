#include "server/calls/call_times.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "server/jobs/job_bounds.h"

namespace spexd {
namespace {

constexpr CallTimes::Clock::duration kLastMessage = std::chrono::milliseconds(500);

CallTimes::Clock::duration Duration(double seconds) {
  return std::chrono::duration_cast<CallTimes::Clock::duration>(std::chrono::duration<double>(seconds));
}

double Seconds(CallTimes::Clock::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

CallTimes::CallTimes(const ServerOptions& options, double max_seconds, StallWatchdog* watchdog,
                     std::function<void()> wake)
    : header_(Duration(options.header_seconds)),
      input_(Duration(options.input_seconds)),
      stall_(Duration(options.stall_seconds)),
      job_(Duration(max_seconds)),
      watch_(watchdog, std::move(wake)) {}

void CallTimes::WaitForInput() {
  const Clock::time_point stall = Clock::now() + stall_;
  if (input_deadline_ < stall) {
    WaitUntil(Limit::kInput, input_deadline_);
  } else {
    WaitUntil(Limit::kStall, stall);
  }
}

void CallTimes::WaitUntil(Limit limit, Clock::time_point deadline) {
  limit_ = deadline < job_deadline() ? limit : Limit::kJob;
  deadline_ = std::min(deadline, job_deadline());
  watch_.Arm(deadline_);
}

void CallTimes::AllowLastMessage() {
  deadline_ = Clock::now() + kLastMessage;
  watch_.Arm(deadline_);
}

absl::Status CallTimes::Passed() const {
  if (Clock::now() < deadline_) return absl::OkStatus();
  switch (limit_) {
    case Limit::kHeader:
      return absl::DeadlineExceededError(absl::StrFormat(
          "no header came within %g seconds, the limit of --header-seconds", Seconds(header_)));
    case Limit::kInput:
      return absl::DeadlineExceededError(absl::StrFormat(
          "the input was not complete %g seconds after its header, the limit of --input-seconds",
          Seconds(input_)));
    case Limit::kStall:
      return absl::CancelledError(
          absl::StrFormat("the client neither sent nor received for %g seconds", Seconds(stall_)));
    case Limit::kJob:
      break;
  }
  return MaxJobSecondsPassed(Seconds(job_));
}

}  // namespace spexd
