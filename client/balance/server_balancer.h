// Shares the jobs of a client among servers by their speeds (ServerSpeeds).
#ifndef SPEXD_CLIENT_BALANCE_SERVER_BALANCER_H_
#define SPEXD_CLIENT_BALANCE_SERVER_BALANCER_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <stop_token>
#include <vector>

#include "client/balance/server_speeds.h"
#include "client/connection/connection.h"
#include "client/connection/server_directory.h"
#include "core/base/threads/mutex.h"

namespace spexd::client {

// Safe to use from many threads.
class ServerBalancer {
 public:
  using Outcome = ServerSpeeds::Outcome;

  // A job on a server. It ends with this, for a reason of the job's own unless End says otherwise.
  class Assignment {
   public:
    // On one of `ready`, which are indices of `servers`. Waits while all of several servers are at their
    // first job, but not beyond the deadline or a stop. REQUIRES: `ready` is not empty.
    Assignment(ServerBalancer* balancer, const Servers& servers, const std::vector<int>& ready,
               const Connection::Deadline& deadline, const std::stop_token& stop);
    Assignment(const Assignment&) = delete;
    Assignment& operator=(const Assignment&) = delete;
    ~Assignment() { End(Outcome::kOther, std::nullopt); }

    int server() const { return index_; }
    // Only the first call counts. `delay`: when the server asks to be called again.
    void End(Outcome outcome, std::optional<std::chrono::milliseconds> delay);

   private:
    ServerBalancer* balancer_;  // null: ended
    int index_ = 0;
    ServerSpeeds::Server server_;
  };

  // Servers of unknown speed take turns, beginning with `first`, counted modulo their number.
  explicit ServerBalancer(uint32_t first) : speeds_(first) {}

 private:
  Mutex mutex_;
  CondVar changed_;  // a job has ended
  ServerSpeeds speeds_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace spexd::client

#endif  // SPEXD_CLIENT_BALANCE_SERVER_BALANCER_H_
