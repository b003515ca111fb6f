// Which of several servers is tried next, and when. Pure logic: it is told the time and never waits.
#ifndef SPEXD_CLIENT_BALANCE_SERVER_ROTATION_H_
#define SPEXD_CLIENT_BALANCE_SERVER_ROTATION_H_

#include <chrono>
#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "client/connection/retry_policy.h"

namespace spexd::client {

// Servers are tried in a cycle. One that refused is left alone until its time has come.
class ServerRotation {
 public:
  using milliseconds = std::chrono::milliseconds;
  using Time = std::chrono::steady_clock::time_point;
  struct Candidate {
    int server = 0;
    milliseconds wait{0};  // before it is tried
  };

  // The cycle begins at server `first`, counted modulo their number; nullopt: at a random one, so that
  // clients with the same list share the servers. REQUIRES: servers >= 1.
  ServerRotation(int servers, const RetryPolicy& policy, std::optional<uint32_t> first = std::nullopt);

  // `count` more servers, to be tried next. REQUIRES: count >= 1.
  void Add(int count);
  // Whether no server may be tried now.
  bool AllRefused(Time now) const { return Ready(now).empty(); }
  // Servers that may be tried now.
  std::vector<int> Ready(Time now) const;
  // The next candidate: at once while a server is left that may be tried now. nullopt: no server is worth
  // another try.
  std::optional<Candidate> Next(Time now);
  // `server` is full, and asks not to be called again for `delay`.
  void NoteFull(int server, milliseconds delay, Time now);
  // `server` could not be reached or takes no jobs; with the `delay` that it asks for, if it does.
  void NoteGone(int server, std::optional<milliseconds> delay, Time now);
  // Only `server` is tried from now on.
  void StayWith(int server);

 private:
  struct Server {
    Time ready{};  // not before
    bool full = false;
    int gone = 0;  // times it could not be reached
    bool out = false;
  };

  const RetryPolicy policy_;
  milliseconds patience_;
  std::mt19937 random_;
  std::vector<Server> servers_;
  int first_;  // where the next search begins
};

}  // namespace spexd::client

#endif  // SPEXD_CLIENT_BALANCE_SERVER_ROTATION_H_
