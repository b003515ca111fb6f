// Stopping a job from another thread.
#ifndef SPEXD_CLIENT_CANCEL_TOKEN_H_
#define SPEXD_CLIENT_CANCEL_TOKEN_H_

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>

#include "core/base/mutex.h"

namespace spexd::client {

using Clock = std::chrono::system_clock;

// Cancelled once, by any thread; safe to use from many.
class CancelToken {
 public:
  CancelToken() = default;
  CancelToken(const CancelToken&) = delete;
  CancelToken& operator=(const CancelToken&) = delete;

  void Cancel();
  bool cancelled() const;
  // Sleeps until `when`, or less if cancelled; returns whether it was.
  bool WaitUntil(Clock::time_point when) const;

 private:
  friend class CancelHook;
  int64_t Attach(std::function<void()> action);
  void Detach(int64_t id);

  mutable Mutex mutex_;
  mutable CondVar changed_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  int64_t next_id_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<int64_t, std::function<void()>> actions_ ABSL_GUARDED_BY(mutex_);
};

// Runs `action` when the token is cancelled (at once if it was), while the hook lives. The action runs under
// the token's lock: it must be short and must not use the token. `token` may be null.
class CancelHook {
 public:
  CancelHook(CancelToken* token, std::function<void()> action);
  ~CancelHook();
  CancelHook(const CancelHook&) = delete;
  CancelHook& operator=(const CancelHook&) = delete;

 private:
  CancelToken* token_;
  int64_t id_ = 0;
};

}  // namespace spexd::client

#endif  // SPEXD_CLIENT_CANCEL_TOKEN_H_
