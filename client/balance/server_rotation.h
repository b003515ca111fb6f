// The rotation of servers: which one is tried next, and when. Pure logic, which gets the time and never
// waits.
#ifndef SPEXD_CLIENT_BALANCE_SERVER_ROTATION_H_
#define SPEXD_CLIENT_BALANCE_SERVER_ROTATION_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "client/connection/retry_policy.h"

namespace spexd::client {

// Servers are tried in a cycle. A server that refused is not tried before its delay has passed.
class ServerRotation {
 public:
  using milliseconds = std::chrono::milliseconds;
  using Time = std::chrono::steady_clock::time_point;
  struct Candidate {
    int server = 0;
    milliseconds wait{0};  // time to wait before the try
  };

  // The cycle begins at the index `first` modulo `servers`; nullopt: at a random one, so that clients with
  // the same list share the servers. REQUIRES: servers >= 1.
  ServerRotation(int servers, const RetryPolicy& policy, std::optional<uint32_t> first = std::nullopt);

  // Adds `count` servers, which are tried next. REQUIRES: count >= 1.
  void Add(int count);
  // Whether no server may be tried at `now`.
  bool AllRefused(Time now) const { return Ready(now).empty(); }
  // Returns the servers that may be tried at `now`.
  std::vector<int> Ready(Time now) const;
  // Returns the next candidate, without a wait while there is a server that may be tried at `now`. nullopt:
  // no server should be tried again.
  std::optional<Candidate> Next(Time now);
  // Notes that `server` is full and asks for `delay` before the next try.
  void NoteFull(int server, milliseconds delay, Time now);
  // Notes that `server` could not be reached or takes no jobs. `delay`: what it asks for, if anything.
  void NoteGone(int server, std::optional<milliseconds> delay, Time now);
  // Restricts all further tries to `server`.
  void StayWith(int server);

 private:
  struct Server {
    Time ready{};  // earliest time of the next try
    bool full = false;
    int gone = 0;      // how often it could not be reached
    bool out = false;  // is not tried again
  };

  const RetryPolicy policy_;
  milliseconds patience_;
  std::mt19937 random_;
  std::vector<Server> servers_;
  int first_;  // where the next search begins
};

}  // namespace spexd::client

#endif  // SPEXD_CLIENT_BALANCE_SERVER_ROTATION_H_
