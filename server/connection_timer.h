// Ends connections that have been open for too long, whatever their peers send meanwhile.
#ifndef SPEXD_SERVER_CONNECTION_TIMER_H_
#define SPEXD_SERVER_CONNECTION_TIMER_H_

#include <chrono>
#include <list>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "core/base/mutex.h"

namespace spexd {

// Safe to use from many threads.
class ConnectionTimer {
 public:
  explicit ConnectionTimer(std::chrono::milliseconds most);
  ~ConnectionTimer();
  ConnectionTimer(const ConnectionTimer&) = delete;
  ConnectionTimer& operator=(const ConnectionTimer&) = delete;

  // A socket that was just connected; it is shut down when its time is over.
  void Opened(int socket) ABSL_LOCKS_EXCLUDED(mutex_);
  // Call before the socket is closed.
  void Closed(int socket) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Connection {
    int socket;
    std::chrono::steady_clock::time_point end;
  };
  void Watch() ABSL_LOCKS_EXCLUDED(mutex_);

  const std::chrono::milliseconds most_;
  Mutex mutex_;
  CondVar changed_;
  std::list<Connection> connections_ ABSL_GUARDED_BY(mutex_);  // the oldest first
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_CONNECTION_TIMER_H_
