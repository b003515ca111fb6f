// The state of a detached job that its watchers see, until the job is cleaned up after its end.
#ifndef SPEXD_SERVER_DETACHED_STORE_LIVE_JOB_H_
#define SPEXD_SERVER_DETACHED_STORE_LIVE_JOB_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "core/base/threads/mutex.h"
#include "server/detached/store/stored_job.h"

namespace spexd {

// Safe to use from many threads.
class LiveJob {
 public:
  struct View {
    uint64_t last_sequence = 0;  // of the last event that can be read
    std::string state = "queued";
    int bundles_done = 0, bundles_total = 0;
    bool ended = false;
    // The job's status, when it has ended. It is no absl::Status, because the thread sanitizer cannot see the
    // reference count that copies of one share.
    absl::StatusCode code = absl::StatusCode::kOk;
    std::string message;
    bool server_stops = false;  // this server will send no further events
  };

  explicit LiveJob(const StoredJob& job) : id_(job.id), owner_(job.owner) { Follow(job); }

  const std::string& id() const { return id_; }
  const std::string& owner() const { return owner_; }

  // Changes the view and wakes all watchers.
  template <typename Change>
  void Set(const Change& change) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    change(&view_);
    ++version_;
    for (const auto& [watcher, wake] : asleep_) wake();
    asleep_.clear();
  }
  // Updates the view from the stored job.
  void Follow(const StoredJob& job) ABSL_LOCKS_EXCLUDED(mutex_) {
    Set([&](View* view) {
      view->last_sequence = job.last_sequence;
      view->bundles_done = static_cast<int>(job.bundles_done);
      view->bundles_total = static_cast<int>(job.bundles_total);
      view->ended = job.has_ended();
      view->code = static_cast<absl::StatusCode>(job.code);
      view->message = job.message;
    });
  }
  // Returns the view and sets `version` to its number.
  View Look(uint64_t* version) const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    *version = version_;
    return view_;
  }
  // Calls `wake` once when the view is newer than `version`, unless Forget is called before. `wake` must not
  // block or use the job. Returns false, and never calls `wake`, if the view is newer already.
  bool Sleep(const void* watcher, uint64_t version, std::function<void()> wake) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    if (version != version_) return false;
    asleep_[watcher] = std::move(wake);
    return true;
  }
  // Removes a watcher that sleeps.
  void Forget(const void* watcher) ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    asleep_.erase(watcher);
  }

 private:
  const std::string id_, owner_;
  mutable Mutex mutex_;
  View view_ ABSL_GUARDED_BY(mutex_);
  uint64_t version_ ABSL_GUARDED_BY(mutex_) = 1;
  std::map<const void*, std::function<void()>> asleep_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace spexd

#endif  // SPEXD_SERVER_DETACHED_STORE_LIVE_JOB_H_
