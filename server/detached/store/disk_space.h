// The disk space of detached jobs: the shared limits --jobs-disk-bytes and --jobs-max-kept, of which a job
// reserves its part before anything is written, and the free bytes of the disk.
#ifndef SPEXD_SERVER_DETACHED_STORE_DISK_SPACE_H_
#define SPEXD_SERVER_DETACHED_STORE_DISK_SPACE_H_

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/threads/mutex.h"

namespace spexd {

// Safe to use from many threads. Only tests pass times.
class DiskSpace {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static Time Now() { return std::chrono::steady_clock::now(); }

  struct Limits {
    int64_t bytes = 0;                                   // --jobs-disk-bytes
    int64_t jobs = std::numeric_limits<int64_t>::max();  // --jobs-max-kept
    // Returns the share of both limits that an owner may take, above 0 and at most 1; null: everything. It
    // must not call this object.
    std::function<double(const std::string& owner)> share_of = nullptr;
  };
  // `folder`: a folder on the disk; "": the free bytes of the disk are not checked.
  explicit DiskSpace(Limits limits, Time since = Now(), std::string folder = "")
      : limits_(std::move(limits)), since_(since), folder_(std::move(folder)) {}

  // Checks that kMinFreeBytes of the disk remain free after `bytes` are written. Unavailable: they do not, or
  // the disk cannot be asked.
  absl::Status CheckDisk(int64_t bytes);
  // Whether fewer than kMinFreeBytes were free at the last call of CheckDisk.
  bool disk_full() const { return disk_full_; }

  // Reserves bytes for results. `held`: bytes that the job has already. ResourceExhausted: with a retry delay
  // if other jobs hold the space, without one if `held` and `bytes` together exceed a limit.
  absl::Status Take(const std::string& owner, int64_t bytes, int64_t held) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return Take(owner, {bytes, 0}, held, RoomsFor(owner));
  }
  // Reserves bytes for a new job and its inputs. A quarter of each limit of bytes remains for results, so
  // that waiting jobs cannot fill the disk and keep each other from ending. Errors as in Take, and
  // ResourceExhausted with a delay if the limit of jobs is reached. The delay is the time until room is
  // expected: until the missing bytes or jobs are given back at the recent rate, or until the next job
  // expires.
  absl::Status TakeForInputs(const std::string& owner, int64_t bytes, Time now = Now())
      ABSL_LOCKS_EXCLUDED(mutex_);
  // Sets when the next job expires; Time::max(): no job will.
  void SetNextExpiry(Time when) ABSL_LOCKS_EXCLUDED(mutex_);
  // Counts an existing job, regardless of the limits.
  void CountJob(const std::string& owner, int64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_) {
    Count(owner, {bytes, 1}, Now());
  }
  // Gives back some bytes of a job.
  void Give(const std::string& owner, int64_t bytes, Time now = Now()) ABSL_LOCKS_EXCLUDED(mutex_) {
    Count(owner, {-bytes, 0}, now);
  }
  // Gives back a job, with its remaining bytes.
  void GiveJob(const std::string& owner, int64_t bytes, Time now = Now()) ABSL_LOCKS_EXCLUDED(mutex_) {
    Count(owner, {-bytes, -1}, now);
  }
  int64_t used() const ABSL_LOCKS_EXCLUDED(mutex_);
  int64_t limit() const { return limits_.bytes; }

 private:
  // The bytes that stay free, for folders and for other users of the disk.
  static constexpr int64_t kMinFreeBytes = 4 << 20;
  struct Amount {
    int64_t bytes = 0, jobs = 0;
  };
  // Amounts that were given back lately. Their weight falls by a factor e in kMemory.
  struct Flow {
    static constexpr double kMemory = 300;  // seconds
    double bytes = 0, jobs = 0;
    Time at{};
  };
  struct Owner {
    Amount used;
    Flow given;
  };
  struct Room {                 // the limits and amounts of all owners, or of one
    const char *share, *whose;  // for messages
    Amount max;
    Owner owner;
  };
  using Rooms = std::array<Room, 2>;
  Rooms RoomsFor(const std::string& owner) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status Take(const std::string& owner, const Amount& amount, int64_t held, const Rooms& rooms)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Count(const std::string& owner, const Amount& amount, Time now) ABSL_LOCKS_EXCLUDED(mutex_);
  static void Note(const Amount& amount, Time now, Flow* given);
  // Estimates the seconds until `missing` more of a limit is free.
  double SecondsUntil(double missing, double Flow::*what, const Flow& given, Time now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Limits limits_;
  const Time since_;  // start of the record of what was given back
  const std::string folder_;
  std::atomic<bool> disk_full_ = false;
  mutable Mutex mutex_;
  Owner all_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Owner> of_owners_ ABSL_GUARDED_BY(mutex_);  // owners who have something
  Time next_expiry_ ABSL_GUARDED_BY(mutex_) = Time::max();
};

// A reservation of disk space for the inputs of a new job. It is given back on destruction, unless Keep was
// called.
class DiskHold {
 public:
  // ResourceExhausted: see DiskSpace::TakeForInputs. `space` is not owned.
  static absl::StatusOr<DiskHold> Take(DiskSpace* space, const std::string& owner, int64_t bytes) {
    DiskHold hold(nullptr, owner, bytes);  // made first, because copying the owner may throw
    if (absl::Status taken = space->TakeForInputs(owner, bytes); !taken.ok()) return taken;
    hold.space_ = space;
    return hold;
  }
  DiskHold(DiskHold&& other) noexcept
      : space_(std::exchange(other.space_, nullptr)), owner_(std::move(other.owner_)), bytes_(other.bytes_) {}
  DiskHold& operator=(DiskHold&& other) noexcept {
    std::swap(space_, other.space_);
    std::swap(owner_, other.owner_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~DiskHold() {
    if (space_ != nullptr) space_->GiveJob(owner_, bytes_);
  }
  void Keep() { space_ = nullptr; }

 private:
  DiskHold(DiskSpace* space, std::string owner, int64_t bytes)
      : space_(space), owner_(std::move(owner)), bytes_(bytes) {}
  DiskSpace* space_;
  std::string owner_;
  int64_t bytes_;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_DETACHED_STORE_DISK_SPACE_H_
