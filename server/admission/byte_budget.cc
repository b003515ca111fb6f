#include "server/admission/byte_budget.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/base/threads/deadline.h"
#include "server/base/retry.h"
#include "server/schedule/retry_delay.h"

namespace spexd {
namespace {

// The weight of the last holding in the mean time of a holding. It is large because load changes with time.
constexpr double kWeightOfTheLast = 0.2;

double Seconds(ByteBudget::Time::duration duration) {
  return std::chrono::duration<double>(duration).count();
}

}  // namespace

void ByteBudget::Reservation::Release() {
  if (budget_ == nullptr) return;
  MutexLock lock(&budget_->mutex_);
  budget_->Resize(&*holding_, 0);
  budget_->held_seconds_ +=
      kWeightOfTheLast * (Seconds(budget_->now_() - holding_->since) - budget_->held_seconds_);
  if (--holding_->identity->second.holdings == 0) budget_->identities_.erase(holding_->identity);
  budget_->holdings_.erase(holding_);
  budget_ = nullptr;
}

absl::Status ByteBudget::Reservation::Grow(int64_t more) {
  if (budget_ == nullptr) return absl::InternalError("memory is taken of which nothing is reserved");
  MutexLock lock(&budget_->mutex_);
  SPEXD_RETURN_IF_ERROR(budget_->CheckLimit(holding_->bytes + more));
  // Goes before the waiters: a job that works gives back its bytes sooner.
  if (more > budget_->limit_ - budget_->used_) SPEXD_RETURN_IF_ERROR(budget_->CheckFree(more));
  budget_->Resize(&*holding_, holding_->bytes + more);
  return absl::OkStatus();
}

absl::Status ByteBudget::Reservation::WaitForUpload() {
  if (budget_ == nullptr) return absl::OkStatus();
  MutexLock lock(&budget_->mutex_);
  if (holding_->slow_at == Time::max()) {
    holding_->slow_at = budget_->now_() + kSlowTime;
    holding_->came = 0;
  }
  return budget_->CheckTakenBack(*holding_);
}

absl::Status ByteBudget::Reservation::EndWait() {
  if (budget_ == nullptr) return absl::OkStatus();
  MutexLock lock(&budget_->mutex_);
  holding_->slow_at = Time::max();
  return budget_->CheckTakenBack(*holding_);
}

void ByteBudget::Reservation::Came(int64_t bytes) {
  if (budget_ == nullptr) return;
  MutexLock lock(&budget_->mutex_);
  holding_->came += bytes;
  if (holding_->slow_at == Time::max() || holding_->came < kSlowBytes) return;
  holding_->slow_at = budget_->now_() + kSlowTime;
  holding_->came = 0;
}

absl::Status ByteBudget::CheckTakenBack(const Holding& holding) const {
  if (!holding.taken_back) return absl::OkStatus();
  return Refuse(absl::ResourceExhaustedError(absl::StrFormat(
                    "%s: others waited for memory while less than %d bytes of this upload came in %d seconds",
                    what_, kSlowBytes, kSlowTime.count())),
                "slow_upload", kWhenTooMany);
}

absl::Status ByteBudget::CheckLimit(int64_t bytes) const {
  int64_t limit = limit_;
  if (largest_.has_value()) limit = std::min(limit, std::max(limit / 2, *largest_));
  if (bytes <= limit) return absl::OkStatus();
  return Refuse(absl::ResourceExhaustedError(absl::StrFormat(
                    "%s: the job needs %d bytes, the server's limit is %d%s", what_, bytes, limit,
                    limit < limit_ ? absl::StrFormat(" for one identity and %d in all", limit_) : "")),
                "memory");
}

absl::Status ByteBudget::Check(int64_t bytes, const std::string& identity) const {
  SPEXD_RETURN_IF_ERROR(CheckFree(bytes));
  return CheckShare(bytes, identity);
}

// Bytes that waiters need do not count as free.
absl::Status ByteBudget::CheckFree(int64_t bytes) const {
  const int64_t missing = std::accumulate(waiters_.begin(), waiters_.end(), bytes) - (limit_ - used_);
  if (bytes <= limit_ - used_ && (bytes == 0 || waiters_.empty())) return absl::OkStatus();
  return Refuse(
      absl::ResourceExhaustedError(absl::StrFormat(
          "%s: the job needs %d bytes, other jobs hold %d of the server's %d", what_, bytes, used_, limit_)),
      "memory", RetryDelayFor(SecondsUntil(missing, nullptr)));
}

absl::Status ByteBudget::CheckShare(int64_t bytes, const std::string& identity) const {
  if (!largest_.has_value() || bytes == 0) return absl::OkStatus();
  const int64_t held = HeldBy(identity), free = limit_ - used_ - bytes;
  const int64_t excess = held + bytes - free;
  if (excess <= 0 || (held == 0 && bytes > limit_ / 2)) return absl::OkStatus();
  // A byte that the identity itself gives back counts twice: it holds less, and more is free.
  const double seconds = ExceedsByItself(bytes, identity) ? SecondsUntil((excess + 1) / 2, &identity)
                                                          : SecondsUntil(excess, nullptr);
  return Refuse(absl::ResourceExhaustedError(absl::StrFormat(
                    "%s: \"%s\" holds %d bytes and needs %d more, which leaves %d of the server's %d free; "
                    "an identity may hold no more than it leaves free",
                    what_, identity, held, bytes, free, limit_)),
                "identity_share", RetryDelayFor(seconds));
}

int64_t ByteBudget::HeldBy(const std::string& identity) const {
  const auto found = identities_.find(identity);
  return found == identities_.end() ? 0 : found->second.bytes;
}

bool ByteBudget::ExceedsByItself(int64_t bytes, const std::string& identity) const {
  const int64_t held = HeldBy(identity);
  return largest_.has_value() && held > 0 && held + bytes > limit_ / 2;
}

// A holding that is older than the mean is expected to be held as long again.
double ByteBudget::SecondsUntil(int64_t bytes, const std::string* identity) const {
  double seconds = 0;
  for (auto holding = holdings_.begin(); holding != holdings_.end() && bytes > 0; ++holding) {
    if (identity != nullptr && holding->identity->first != *identity) continue;
    const double age = Seconds(now_() - holding->since);
    seconds = std::max(seconds, std::max(held_seconds_ - age, age));
    bytes -= holding->bytes;
  }
  return seconds;
}

bool ByteBudget::IsSlow(const Holding& holding) const {
  return holding.bytes > 0 && holding.slow_at <= now_();
}

void ByteBudget::NoteTakenBack(Holding* holding) {
  holding->taken_back = true;
  holding->call_taken_back();
}

ByteBudget::Reservation ByteBudget::Take(int64_t bytes, Owner owner) {
  const auto identity = identities_.try_emplace(std::move(owner.identity)).first;
  const HoldingIterator holding =
      holdings_.insert(holdings_.end(), {0, now_(), identity, std::move(owner.taken_back)});
  ++identity->second.holdings;
  Resize(&*holding, bytes);
  return Reservation(this, holding);
}

void ByteBudget::Resize(Holding* holding, int64_t bytes) {
  const int64_t more = bytes - holding->bytes;
  holding->bytes = bytes;
  holding->identity->second.bytes += more;
  used_ += more;
  if (more < 0) changed_.NotifyAll();
}

absl::StatusOr<ByteBudget::Reservation> ByteBudget::Reserve(int64_t bytes, Owner owner) {
  SPEXD_RETURN_IF_ERROR(CheckLimit(bytes));
  MutexLock lock(&mutex_);
  const absl::Status refused = Check(bytes, owner.identity);
  if (!refused.ok() && !TakeBackFor(bytes, owner.identity)) return refused;
  return Take(bytes, std::move(owner));
}

bool ByteBudget::TakeBackFor(int64_t bytes, const std::string& identity) {
  // A request beyond the identity's own part takes nothing from others.
  const bool only_own = ExceedsByItself(bytes, identity);
  std::vector<std::pair<Holding*, int64_t>> slow;  // holdings of slow uploads, with their bytes
  slow.reserve(holdings_.size());
  bool enough = false;
  for (auto holding = holdings_.begin(); holding != holdings_.end() && !enough; ++holding) {
    if (!IsSlow(*holding) || (only_own && holding->identity->first != identity)) continue;
    slow.emplace_back(&*holding, holding->bytes);
    Resize(&*holding, 0);
    enough = Check(bytes, identity).ok();
  }
  for (const auto& [holding, held] : slow) {
    if (enough) {
      NoteTakenBack(holding);
    } else {
      Resize(holding, held);
    }
  }
  return enough;
}

absl::StatusOr<ByteBudget::Reservation> ByteBudget::WaitFor(int64_t bytes, const std::stop_token& stop) {
  SPEXD_RETURN_IF_ERROR(CheckLimit(bytes));
  const WakeOnStop wake(stop, &mutex_, &changed_);
  MutexLock lock(&mutex_);
  if (bytes == 0) return Take(0, {});
  const auto waiter = waiters_.insert(waiters_.end(), bytes);
  while ((waiter != waiters_.begin() || bytes > limit_ - used_) && !stop.stop_requested())
    changed_.Wait(&mutex_);
  waiters_.erase(waiter);
  changed_.NotifyAll();
  if (stop.stop_requested()) {
    return absl::CancelledError(
        absl::StrFormat("the job was cancelled while it waited for room (%s)", what_));
  }
  return Take(bytes, {});
}

bool ByteBudget::TakeBackFromSlow() {
  MutexLock lock(&mutex_);
  bool any = false;
  for (Holding& holding : holdings_) {
    if (!IsSlow(holding)) continue;
    Resize(&holding, 0);
    NoteTakenBack(&holding);
    any = true;
  }
  return any;
}

int64_t ByteBudget::used() const {
  MutexLock lock(&mutex_);
  return used_;
}

}  // namespace spexd
