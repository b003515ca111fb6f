// Whether there is room for detached jobs: by the limits that they share, --jobs-disk-bytes and
// --jobs-max-kept, of which a job takes its part before anything is written, and on the disk itself.
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

// Safe to use from many threads. Times are given by tests alone.
class DiskSpace {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static Time Now() { return std::chrono::steady_clock::now(); }

  struct Limits {
    int64_t bytes = 0;                                   // --jobs-disk-bytes
    int64_t jobs = std::numeric_limits<int64_t>::max();  // --jobs-max-kept
    // What an owner may take of both, above 0 and at most 1; null: all. Must not call this object.
    std::function<double(const std::string& owner)> share_of = nullptr;
  };
  // `folder`: on the disk; "": the disk itself is not asked.
  explicit DiskSpace(Limits limits, Time since = Now(), std::string folder = "")
      : limits_(std::move(limits)), since_(since), folder_(std::move(folder)) {}

  // Whether the disk has room for so many bytes that are about to be written and leaves kMinFreeBytes free.
  // Unavailable: it has not, or cannot be asked.
  absl::Status CheckDisk(int64_t bytes);
  // Whether fewer than kMinFreeBytes were free when CheckDisk was called last.
  bool disk_full() const { return disk_full_; }

  // For results. ResourceExhausted: with a retry delay if other jobs hold the space, without one if a limit
  // is less than `bytes` and what the job holds already.
  absl::Status Take(const std::string& owner, int64_t bytes, int64_t held) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return Take(owner, {bytes, 0}, held, RoomsFor(owner));
  }
  // For a new job and its inputs, which leave a quarter of each limit of bytes to results: else jobs that
  // wait could fill the disk, and none could end. The same errors, and one with a delay while as many jobs
  // are kept as the limit allows. The delay is the time until room is expected: until as much is given back
  // as is missing, at the recent rate, or until the next job expires.
  absl::Status TakeForInputs(const std::string& owner, int64_t bytes, Time now = Now())
      ABSL_LOCKS_EXCLUDED(mutex_);
  // When the next job expires; Time::max(): none does.
  void SetNextExpiry(Time when) ABSL_LOCKS_EXCLUDED(mutex_);
  // Takes a job that is there already, whatever the limits say.
  void CountJob(const std::string& owner, int64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_) {
    Count(owner, {bytes, 1}, Now());
  }
  // A job gives back some of its bytes; or all, and is no more.
  void Give(const std::string& owner, int64_t bytes, Time now = Now()) ABSL_LOCKS_EXCLUDED(mutex_) {
    Count(owner, {-bytes, 0}, now);
  }
  void GiveJob(const std::string& owner, int64_t bytes, Time now = Now()) ABSL_LOCKS_EXCLUDED(mutex_) {
    Count(owner, {-bytes, -1}, now);
  }
  int64_t used() const ABSL_LOCKS_EXCLUDED(mutex_);
  int64_t limit() const { return limits_.bytes; }

 private:
  // Left free for folders, and for what else lies on the disk.
  static constexpr int64_t kMinFreeBytes = 4 << 20;
  struct Amount {
    int64_t bytes = 0, jobs = 0;
  };
  // What was given back lately: amounts count e times less after each kMemory.
  struct Flow {
    static constexpr double kMemory = 300;  // seconds
    double bytes = 0, jobs = 0;
    Time at{};
  };
  struct Owner {
    Amount used;
    Flow given;
  };
  struct Room {                 // of all owners, or of one
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
  // Seconds until so much more should be free of a limit.
  double SecondsUntil(double missing, double Flow::*what, const Flow& given, Time now) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Limits limits_;
  const Time since_;  // nothing was given back before
  const std::string folder_;
  std::atomic<bool> disk_full_ = false;
  mutable Mutex mutex_;
  Owner all_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Owner> of_owners_ ABSL_GUARDED_BY(mutex_);  // those who have something
  Time next_expiry_ ABSL_GUARDED_BY(mutex_) = Time::max();
};

// Space that was taken for inputs that are not yet there: given back at its end, unless kept.
class DiskHold {
 public:
  // ResourceExhausted: see DiskSpace::TakeForInputs. `space` is not owned.
  static absl::StatusOr<DiskHold> Take(DiskSpace* space, const std::string& owner, int64_t bytes) {
    DiskHold hold(nullptr, owner, bytes);  // what takes memory comes first
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
