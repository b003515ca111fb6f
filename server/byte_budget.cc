#include "server/byte_budget.h"

#include <chrono>

#include "absl/strings/str_format.h"
#include "server/retry.h"

namespace spexd {
namespace {

constexpr std::chrono::seconds kRetryDelay(5);

}  // namespace

void ByteBudget::Reservation::Release() {
  if (budget_ == nullptr) return;
  MutexLock lock(&budget_->mutex_);
  budget_->used_ -= bytes_;
  budget_ = nullptr;
}

absl::StatusOr<ByteBudget::Reservation> ByteBudget::Reserve(int64_t bytes) {
  if (bytes > limit_) {
    return absl::ResourceExhaustedError(
        absl::StrFormat("%s: the job needs %d bytes, the server's limit is %d", what_, bytes, limit_));
  }
  MutexLock lock(&mutex_);
  if (bytes > limit_ - used_) {
    return WithRetryDelay(absl::ResourceExhaustedError(absl::StrFormat(
                              "%s: the job needs %d bytes, other jobs hold %d of the server's %d", what_,
                              bytes, used_, limit_)),
                          kRetryDelay);
  }
  used_ += bytes;
  return Reservation(this, bytes);
}

int64_t ByteBudget::used() const {
  MutexLock lock(&mutex_);
  return used_;
}

}  // namespace spexd
