#include "server/detached/store/disk_space.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>

#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "server/base/retry.h"
#include "server/schedule/retry_delay.h"

namespace spexd {
namespace {

// The delay for results, and for jobs as long as nothing tells when there will be room.
constexpr std::chrono::seconds kRetryDelay(10);

struct Share {
  const char* flag;
  const char* whose;
  int64_t limit, used;
};

absl::Status CheckLimit(const Share& share, int64_t bytes) {
  if (bytes <= share.limit) return absl::OkStatus();
  return Refuse(absl::ResourceExhaustedError(absl::StrFormat(
                    "the job takes %d bytes of disk, the limit of %s is %d", bytes, share.flag, share.limit)),
                "disk");
}

absl::Status CheckRoom(const Share& share, int64_t bytes) {
  if (bytes <= share.limit - share.used) return absl::OkStatus();
  return Refuse(absl::ResourceExhaustedError(
                    absl::StrFormat("the job takes %d bytes of disk more, %s hold %d of the %d of %s", bytes,
                                    share.whose, share.used, share.limit, share.flag)),
                "disk", kRetryDelay);
}

absl::Status CheckJobs(const Share& share, int64_t jobs) {
  if (jobs <= share.limit - share.used || jobs == 0) return absl::OkStatus();
  return Refuse(
      absl::ResourceExhaustedError(absl::StrFormat("%s are %d, the limit of %s is %d; each is kept until its "
                                                   "time to live has passed",
                                                   share.whose, share.used, share.flag, share.limit)),
      "disk", kRetryDelay);
}

}  // namespace

absl::Status DiskSpace::Take(const std::string& owner, const Amount& amount, int64_t held,
                             const Limits& limits) {
  const auto known = of_owners_.find(owner);
  const Amount own = known == of_owners_.end() ? Amount() : known->second.used;
  const Share shares[] = {
      {"--jobs-disk-bytes", "jobs", limits.bytes, all_.used.bytes},
      {"--jobs-disk-bytes-per-identity", "this identity's jobs", limits.bytes_of_owner, own.bytes}};
  for (const Share& share : shares) SPEXD_RETURN_IF_ERROR(CheckLimit(share, amount.bytes + held));
  for (const Share& share : shares) SPEXD_RETURN_IF_ERROR(CheckRoom(share, amount.bytes));
  SPEXD_RETURN_IF_ERROR(
      CheckJobs({"--jobs-max-kept", "detached jobs", limits.jobs, all_.used.jobs}, amount.jobs));
  SPEXD_RETURN_IF_ERROR(CheckJobs(
      {"--jobs-max-kept-per-identity", "this identity's jobs", limits.jobs_of_owner, own.jobs}, amount.jobs));
  Owner& account = of_owners_[owner];
  for (Amount* sum : {&all_.used, &account.used}) {
    sum->bytes += amount.bytes;
    sum->jobs += amount.jobs;
  }
  return absl::OkStatus();
}

absl::Status DiskSpace::TakeForInputs(const std::string& owner, int64_t bytes, Time now) {
  Limits limits = limits_;
  limits.bytes -= limits.bytes / 4;
  limits.bytes_of_owner -= limits.bytes_of_owner / 4;
  MutexLock lock(&mutex_);
  const absl::Status taken = Take(owner, {bytes, 1}, 0, limits);
  if (!RetryDelayOf(taken).has_value()) return taken;
  const double seconds = SecondsUntilRoom(owner, {bytes, 1}, limits, now);
  return std::isfinite(seconds) ? WithRetryDelay(taken, RetryDelayFor(seconds)) : taken;
}

double DiskSpace::SecondsUntilRoom(const std::string& owner, const Amount& amount, const Limits& limits,
                                   Time now) const {
  const auto known = of_owners_.find(owner);
  const Owner own = known == of_owners_.end() ? Owner() : known->second;
  const auto missing = [](int64_t used, int64_t more, int64_t limit) {
    return static_cast<double>(used) + static_cast<double>(more) - static_cast<double>(limit);
  };
  return std::max(
      {SecondsUntil(missing(all_.used.bytes, amount.bytes, limits.bytes), &Flow::bytes, all_.given, now),
       SecondsUntil(missing(all_.used.jobs, amount.jobs, limits.jobs), &Flow::jobs, all_.given, now),
       SecondsUntil(missing(own.used.bytes, amount.bytes, limits.bytes_of_owner), &Flow::bytes, own.given,
                    now),
       SecondsUntil(missing(own.used.jobs, amount.jobs, limits.jobs_of_owner), &Flow::jobs, own.given, now)});
}

double DiskSpace::SecondsUntil(double missing, double Flow::*what, const Flow& given, Time now) const {
  constexpr double kForever = std::numeric_limits<double>::infinity();
  if (missing <= 0) return 0;
  const auto weight_after = [&](Time then) {
    return std::exp(-std::chrono::duration<double>(now - then).count() / Flow::kMemory);
  };
  const double lately = given.*what * weight_after(given.at);
  const double seconds = Flow::kMemory * (1 - weight_after(since_));  // for which that stands
  const double by_flow = lately > 0 ? missing * seconds / lately : kForever;
  if (next_expiry_ == Time::max()) return by_flow;
  const double by_expiry = std::max(0.0, std::chrono::duration<double>(next_expiry_ - now).count());
  // Bytes come back as jobs end, too: where none did yet, a distant expiry tells nothing of them.
  constexpr double kSoon = 60;
  if (what == &Flow::bytes && lately <= 0 && by_expiry > kSoon) return kForever;
  return std::min(by_flow, by_expiry);
}

void DiskSpace::SetNextExpiry(Time when) {
  MutexLock lock(&mutex_);
  next_expiry_ = when;
}

void DiskSpace::Note(const Amount& amount, Time now, Flow* given) {
  const double kept = std::exp(-std::chrono::duration<double>(now - given->at).count() / Flow::kMemory);
  given->bytes = given->bytes * kept + static_cast<double>(std::max<int64_t>(0, -amount.bytes));
  given->jobs = given->jobs * kept + static_cast<double>(std::max<int64_t>(0, -amount.jobs));
  given->at = now;
}

void DiskSpace::Count(const std::string& owner, const Amount& amount, Time now) {
  MutexLock lock(&mutex_);
  const auto account = of_owners_.try_emplace(owner).first;
  for (Owner* part : {&all_, &account->second}) {
    part->used.bytes += amount.bytes;
    part->used.jobs += amount.jobs;
    if (amount.bytes < 0 || amount.jobs < 0) Note(amount, now, &part->given);
  }
  if (account->second.used.bytes <= 0 && account->second.used.jobs <= 0) of_owners_.erase(account);
}

int64_t DiskSpace::used() const {
  MutexLock lock(&mutex_);
  return all_.used.bytes;
}

}  // namespace spexd
