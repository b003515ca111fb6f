// The balancer: it shares the jobs of a client among servers by their speeds (ServerSpeeds).
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

  // The assignment of a job to a server. Its destructor ends it with Outcome::kOther unless End was called.
  class Assignment {
   public:
    // Chooses one of `ready`, which are indices of `servers`. Waits while all of several servers run their
    // first job, until the deadline or a stop request. REQUIRES: `ready` is not empty.
    Assignment(ServerBalancer* balancer, const Servers& servers, const std::vector<int>& ready,
               const Connection::Deadline& deadline, const std::stop_token& stop);
    Assignment(const Assignment&) = delete;
    Assignment& operator=(const Assignment&) = delete;
    ~Assignment() { End(Outcome::kOther, std::nullopt); }

    int server() const { return index_; }
    // Ends the assignment; only the first call counts. `delay`: the server's retry delay.
    void End(Outcome outcome, std::optional<std::chrono::milliseconds> delay);

   private:
    ServerBalancer* balancer_;  // null after End
    int index_ = 0;
    ServerSpeeds::Server server_;
  };

  // Servers of unknown speed take turns, beginning with the index `first` modulo their number.
  explicit ServerBalancer(uint32_t first) : speeds_(first) {}

 private:
  Mutex mutex_;
  CondVar changed_;  // a job has ended
  ServerSpeeds speeds_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace spexd::client

#endif  // SPEXD_CLIENT_BALANCE_SERVER_BALANCER_H_
