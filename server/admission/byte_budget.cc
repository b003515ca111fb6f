#include "server/admission/byte_budget.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_format.h"
#include "core/base/seconds_since.h"
#include "core/base/status_macros.h"
#include "core/base/threads/deadline.h"
#include "server/base/retry.h"
#include "server/schedule/retry_delay.h"

namespace spexd {
namespace {

// Uploads and readers change with the hour: the last few holdings count.
constexpr double kWeightOfTheLast = 0.2;

}  // namespace

void ByteBudget::Reservation::Release() {
  if (budget_ == nullptr) return;
  ShrinkTo(0);
  MutexLock lock(&budget_->mutex_);
  budget_->held_seconds_ += kWeightOfTheLast * (SecondsSince(place_->since) - budget_->held_seconds_);
  budget_->holdings_.erase(place_);
  budget_ = nullptr;
}

void ByteBudget::Reservation::ShrinkTo(int64_t bytes) {
  if (budget_ == nullptr) return;
  MutexLock lock(&budget_->mutex_);
  if (bytes >= place_->bytes) return;
  budget_->used_ -= place_->bytes - bytes;
  place_->bytes = bytes;
  budget_->changed_.NotifyAll();
}

absl::Status ByteBudget::Reservation::Grow(int64_t more) {
  MutexLock lock(&budget_->mutex_);
  SPEXD_RETURN_IF_ERROR(budget_->CheckLimit(place_->bytes + more));
  SPEXD_RETURN_IF_ERROR(budget_->CheckFree(more));
  budget_->used_ += more;
  place_->bytes += more;
  return absl::OkStatus();
}

absl::Status ByteBudget::CheckLimit(int64_t bytes) const {
  if (bytes <= limit_) return absl::OkStatus();
  return Refuse(absl::ResourceExhaustedError(absl::StrFormat(
                    "%s: the job needs %d bytes, the server's limit is %d", what_, bytes, limit_)),
                "memory");
}

absl::Status ByteBudget::CheckFree(int64_t bytes) const {
  if (bytes <= limit_ - used_ && (bytes == 0 || line_.empty())) return absl::OkStatus();
  return Refuse(
      absl::ResourceExhaustedError(absl::StrFormat(
          "%s: the job needs %d bytes, other jobs hold %d of the server's %d", what_, bytes, used_, limit_)),
      "memory", RetryDelayFor(SecondsUntilFree(bytes)));
}

// Who waits in line goes first. What was held longer than others hold theirs is expected to be held as long
// again.
double ByteBudget::SecondsUntilFree(int64_t bytes) const {
  int64_t missing = std::accumulate(line_.begin(), line_.end(), bytes) - (limit_ - used_);
  double seconds = 0;
  for (auto holding = holdings_.begin(); holding != holdings_.end() && missing > 0; ++holding) {
    const double age = SecondsSince(holding->since);
    seconds = std::max(seconds, std::max(held_seconds_ - age, age));
    missing -= holding->bytes;
  }
  return seconds;
}

ByteBudget::Reservation ByteBudget::Take(int64_t bytes) {
  const Place place = holdings_.insert(holdings_.end(), {bytes, std::chrono::steady_clock::now()});
  used_ += bytes;
  return Reservation(this, place);
}

absl::StatusOr<ByteBudget::Reservation> ByteBudget::Reserve(int64_t bytes) {
  SPEXD_RETURN_IF_ERROR(CheckLimit(bytes));
  MutexLock lock(&mutex_);
  SPEXD_RETURN_IF_ERROR(CheckFree(bytes));
  return Take(bytes);
}

absl::StatusOr<ByteBudget::Reservation> ByteBudget::WaitFor(int64_t bytes, const std::stop_token& stop) {
  SPEXD_RETURN_IF_ERROR(CheckLimit(bytes));
  const WakeOnStop wake(stop, &mutex_, &changed_);
  MutexLock lock(&mutex_);
  if (bytes == 0) return Take(0);
  const auto place = line_.insert(line_.end(), bytes);
  while ((place != line_.begin() || bytes > limit_ - used_) && !stop.stop_requested()) changed_.Wait(&mutex_);
  line_.erase(place);
  changed_.NotifyAll();
  if (stop.stop_requested()) {
    return absl::CancelledError(
        absl::StrFormat("the job was cancelled while it waited for memory (%s)", what_));
  }
  return Take(bytes);
}

int64_t ByteBudget::used() const {
  MutexLock lock(&mutex_);
  return used_;
}

}  // namespace spexd
