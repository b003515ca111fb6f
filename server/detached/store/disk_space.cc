#include "server/detached/store/disk_space.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <optional>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "server/base/files.h"
#include "server/base/retry.h"
#include "server/schedule/retry_delay.h"
#include "server/security/identity.h"

namespace spexd {
namespace {

// The delay for results, and for new jobs if the time until there is room is unknown.
constexpr std::chrono::seconds kRetryDelay(10);

}  // namespace

absl::Status DiskSpace::CheckDisk(int64_t bytes) {
  if (folder_.empty()) return absl::OkStatus();
  struct statvfs disk;
  if (statvfs(folder_.c_str(), &disk) != 0) return DiskError(folder_, "cannot be asked for its free space");
  const int64_t free = static_cast<int64_t>(disk.f_bavail) * static_cast<int64_t>(disk.f_frsize);
  disk_full_ = free < kMinFreeBytes;
  if (free - bytes >= kMinFreeBytes) return absl::OkStatus();
  return absl::UnavailableError(
      absl::StrCat(folder_, ": the disk has ", free, " free bytes, ", bytes + kMinFreeBytes,
                   " are needed; remove files from it, or acknowledge and cancel jobs"));
}

DiskSpace::Rooms DiskSpace::RoomsFor(const std::string& owner) const {
  const double share = limits_.share_of == nullptr ? 1 : limits_.share_of(owner);
  const auto known = of_owners_.find(owner);
  return {{{"", "detached jobs", {limits_.bytes, limits_.jobs}, all_},
           {"the identity's disk-share of ",
            "this identity's jobs",
            {ShareOf(limits_.bytes, share), ShareOf(limits_.jobs, share)},
            known == of_owners_.end() ? Owner() : known->second}}};
}

absl::Status DiskSpace::Take(const std::string& owner, const Amount& amount, int64_t held,
                             const Rooms& rooms) {
  const auto refuse = [](const std::string& message,
                         std::optional<std::chrono::milliseconds> delay = std::nullopt) {
    return Refuse(absl::ResourceExhaustedError(message), "disk", delay);
  };
  for (const Room& room : rooms) {
    if (amount.bytes + held <= room.max.bytes) continue;
    return refuse(absl::StrFormat("the job takes %d bytes of disk, the limit of %s--jobs-disk-bytes is %d",
                                  amount.bytes + held, room.share, room.max.bytes));
  }
  for (const Room& room : rooms) {
    const Amount& used = room.owner.used;
    if (amount.bytes <= room.max.bytes - used.bytes) continue;
    return refuse(
        absl::StrFormat("the job takes %d bytes of disk more, %s hold %d of the %d of %s--jobs-disk-bytes",
                        amount.bytes, room.whose, used.bytes, room.max.bytes, room.share),
        kRetryDelay);
  }
  for (const Room& room : rooms) {
    if (amount.jobs == 0 || amount.jobs <= room.max.jobs - room.owner.used.jobs) continue;
    return refuse(absl::StrFormat("%s are %d, the limit of %s--jobs-max-kept is %d; each is kept until its "
                                  "time to live has passed",
                                  room.whose, room.owner.used.jobs, room.share, room.max.jobs),
                  kRetryDelay);
  }
  Owner& account = of_owners_[owner];
  for (Amount* sum : {&all_.used, &account.used}) {
    sum->bytes += amount.bytes;
    sum->jobs += amount.jobs;
  }
  return absl::OkStatus();
}

absl::Status DiskSpace::TakeForInputs(const std::string& owner, int64_t bytes, Time now) {
  MutexLock lock(&mutex_);
  Rooms rooms = RoomsFor(owner);
  for (Room& room : rooms) room.max.bytes -= room.max.bytes / 4;
  const absl::Status taken = Take(owner, {bytes, 1}, 0, rooms);
  if (!RetryDelayOf(taken).has_value()) return taken;
  double seconds = 0;
  for (const Room& room : rooms) {
    const auto [used, given] = room.owner;
    const double missing_bytes = static_cast<double>(used.bytes - room.max.bytes + bytes);
    const double missing_jobs = static_cast<double>(used.jobs - room.max.jobs + 1);
    seconds = std::max({seconds, SecondsUntil(missing_bytes, &Flow::bytes, given, now),
                        SecondsUntil(missing_jobs, &Flow::jobs, given, now)});
  }
  return std::isfinite(seconds) ? WithRetryDelay(taken, RetryDelayFor(seconds)) : taken;
}

double DiskSpace::SecondsUntil(double missing, double Flow::*what, const Flow& given, Time now) const {
  constexpr double kForever = std::numeric_limits<double>::infinity();
  if (missing <= 0) return 0;
  const auto weight_after = [&](Time then) {
    return std::exp(-std::chrono::duration<double>(now - then).count() / Flow::kMemory);
  };
  const double lately = given.*what * weight_after(given.at);
  const double seconds = Flow::kMemory * (1 - weight_after(since_));  // the weighted time of that amount
  const double by_flow = lately > 0 ? missing * seconds / lately : kForever;
  if (next_expiry_ == Time::max()) return by_flow;
  const double by_expiry = std::max(0.0, std::chrono::duration<double>(next_expiry_ - now).count());
  // Bytes also come back when jobs end. If none did yet, a distant expiry is a poor estimate.
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
