#include "server/detached/store/disk_space.h"

#include <chrono>

#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "server/base/retry.h"

namespace spexd {
namespace {

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
  MutexLock lock(&mutex_);
  const auto known = of_owners_.find(owner);
  const Amount own = known == of_owners_.end() ? Amount() : known->second;
  const Share shares[] = {
      {"--jobs-disk-bytes", "jobs", limits.bytes, used_.bytes},
      {"--jobs-disk-bytes-per-identity", "this identity's jobs", limits.bytes_of_owner, own.bytes}};
  for (const Share& share : shares) SPEXD_RETURN_IF_ERROR(CheckLimit(share, amount.bytes + held));
  for (const Share& share : shares) SPEXD_RETURN_IF_ERROR(CheckRoom(share, amount.bytes));
  SPEXD_RETURN_IF_ERROR(
      CheckJobs({"--jobs-max-kept", "detached jobs", limits.jobs, used_.jobs}, amount.jobs));
  SPEXD_RETURN_IF_ERROR(CheckJobs(
      {"--jobs-max-kept-per-identity", "this identity's jobs", limits.jobs_of_owner, own.jobs}, amount.jobs));
  Add(owner, amount);
  return absl::OkStatus();
}

void DiskSpace::Count(const std::string& owner, const Amount& amount) {
  MutexLock lock(&mutex_);
  Add(owner, amount);
}

void DiskSpace::Add(const std::string& owner, const Amount& amount) {
  Amount& own = of_owners_[owner];
  for (Amount* sum : {&used_, &own}) {
    sum->bytes += amount.bytes;
    sum->jobs += amount.jobs;
  }
  if (own.bytes <= 0 && own.jobs <= 0) of_owners_.erase(owner);
}

int64_t DiskSpace::used() const {
  MutexLock lock(&mutex_);
  return used_.bytes;
}

}  // namespace spexd
