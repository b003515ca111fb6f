#include "client/pauses.h"

#include "absl/strings/str_cat.h"
#include "core/base/threads/deadline.h"

namespace spexd::client {

Pauses::Pauses(const RetryPolicy& policy, JobObserver* observer, Connection::Deadline deadline)
    : policy_(policy),
      observer_(observer),
      deadline_(deadline),
      random_(MakeRandom(policy)),
      patience_(policy.queue_patience) {}

absl::Status Pauses::Wait(const CallResult& result, const std::stop_token& stop) {
  const std::chrono::milliseconds wait = BackOff(policy_, ++failures_, result.retry_delay, &random_);
  if (wait > patience_) return result.status;
  patience_ -= wait;
  if (deadline_.has_value() && Clock::now() + wait >= *deadline_) {
    return absl::DeadlineExceededError(absl::StrCat(
        "no time for another attempt before the deadline; the last one: ", result.status.message()));
  }
  if (observer_ != nullptr) observer_->OnRetry(failures_, result.status, wait);
  return SleepUnlessStopped(wait, stop) ? absl::CancelledError("cancelled") : absl::OkStatus();
}

void Pauses::Reset() {
  failures_ = 0;
  patience_ = policy_.queue_patience;
}

}  // namespace spexd::client
