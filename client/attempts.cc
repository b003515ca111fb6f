#include "client/attempts.h"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/balance/server_rotation.h"
#include "core/base/status_macros.h"
#include "core/base/threads/deadline.h"

namespace spexd::client {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// The last refusals of all servers, combined into one error.
class Refusals {
 public:
  // `servers` outlives this object and may grow.
  explicit Refusals(const Servers& servers) : servers_(servers) {}

  void Note(int server, const absl::Status& status) {
    last_.resize(servers_.size());
    last_[server] = status;
  }
  // Returns the refusals as one status. Its code is ResourceExhausted if any server was full, because a later
  // try may succeed then.
  absl::Status Sum() const {
    if (servers_.size() == 1) return last_[0];
    std::vector<std::string> parts;
    absl::StatusCode code = absl::StatusCode::kUnavailable;
    for (size_t k = 0; k < last_.size(); ++k) {
      if (last_[k].ok()) continue;  // never tried
      const std::string& address = servers_[k]->address();
      const bool named = absl::StrContains(last_[k].message(), address);
      parts.push_back(named ? std::string(last_[k].message())
                            : absl::StrCat("spexd at ", address, ": ", last_[k].message()));
      if (absl::IsResourceExhausted(last_[k])) code = last_[k].code();
    }
    return absl::Status(code, absl::StrCat("no server took the job: ", absl::StrJoin(parts, "; ")));
  }

 private:
  const Servers& servers_;
  std::vector<absl::Status> last_;
};

Connection::Deadline Earlier(const Connection::Deadline& deadline, milliseconds patience) {
  const Clock::time_point soon = Clock::now() + patience;
  return deadline.has_value() ? std::min(*deadline, soon) : soon;
}

// Appends the servers that `find` finds and `servers` lacks, and returns their number. Servers that are not
// found stay, because their refusals are counted.
int AddNewServers(const ServerSource& find, Servers* servers) {
  const absl::StatusOr<Servers> found = find();
  if (!found.ok()) return 0;
  const size_t before = servers->size();
  for (const auto& server : *found) {
    if (std::find(servers->begin(), servers->end(), server) == servers->end()) servers->push_back(server);
  }
  return static_cast<int>(servers->size() - before);
}

ServerBalancer::Outcome OutcomeOf(const Attempt& made, const Connection::Deadline& deadline,
                                  const std::stop_token& stop) {
  if (stop.stop_requested() || (deadline.has_value() && Clock::now() >= *deadline))
    return ServerBalancer::Outcome::kOther;
  if (made.status.ok()) return ServerBalancer::Outcome::kDone;
  const bool refused = made.then == Attempt::Then::kElsewhere || absl::IsUnavailable(made.status);
  return refused ? ServerBalancer::Outcome::kRefused : ServerBalancer::Outcome::kOther;
}

// Makes an attempt on the candidate's server or, with a balancer, on one of `ready`. Returns the server and
// the attempt.
std::pair<int, Attempt> TryOne(const Servers& servers, const ServerRotation::Candidate& candidate,
                               std::vector<int> ready, const AttemptLimits& limits,
                               const std::stop_token& stop,
                               const std::function<Attempt(Connection*)>& attempt) {
  std::optional<ServerBalancer::Assignment> assignment;
  int server = candidate.server;
  if (limits.balancer != nullptr) {
    if (ready.empty()) ready.push_back(server);
    server = assignment.emplace(limits.balancer, servers, ready, limits.deadline, stop).server();
  }
  Connection* const connection = servers[static_cast<size_t>(server)].get();
  Attempt made = {absl::OkStatus()};
  if (servers.size() > 1) {
    made = {connection->CheckServing(Earlier(limits.deadline, limits.retry.health_patience), stop),
            Attempt::Then::kElsewhere};
  }
  if (made.status.ok() && !stop.stop_requested()) made = attempt(connection);
  if (assignment.has_value()) assignment->End(OutcomeOf(made, limits.deadline, stop), made.retry_delay);
  return {server, made};
}

}  // namespace

Attempt AttemptOf(const CallResult& result, bool taken) {
  Attempt attempt = {result.status, Attempt::Then::kEnd, result.retry_delay};
  const bool delay = result.retry_delay.has_value();
  if (absl::IsResourceExhausted(result.status) && delay) attempt.then = Attempt::Then::kElsewhere;
  if (absl::IsUnavailable(result.status) && (delay || !taken)) attempt.then = Attempt::Then::kElsewhere;
  if (absl::IsDataLoss(result.status)) attempt.then = Attempt::Then::kAgain;
  return attempt;
}

absl::Status TryServers(const ServerSource& find, const AttemptLimits& limits, JobObserver* observer,
                        const std::stop_token& stop, const std::function<Attempt(Connection*)>& attempt) {
  SPEXD_ASSIGN_OR_RETURN(Servers servers, find());
  ServerRotation rotation(static_cast<int>(servers.size()), limits.retry, limits.first_server);
  Refusals refusals(servers);
  int damaged = 0;
  bool stays = false;
  std::optional<ServerRotation::Candidate> candidate = rotation.Next(steady_clock::now());
  std::vector<int> ready = rotation.Ready(steady_clock::now());
  for (int number = 1;; ++number) {
    const auto [server, made] = TryOne(servers, *candidate, ready, limits, stop, attempt);
    if (stop.stop_requested()) return absl::CancelledError("cancelled");
    if (made.status.ok() || made.then == Attempt::Then::kEnd) return made.status;
    refusals.Note(server, made.status);
    if (made.then == Attempt::Then::kAgain) {
      if (++damaged >= limits.retry.data_loss_attempts) return made.status;
      candidate = ServerRotation::Candidate{server};
      ready = {server};
    } else {
      const auto now = steady_clock::now();
      if (absl::IsResourceExhausted(made.status)) {
        rotation.NoteFull(server, made.retry_delay.value_or(milliseconds(0)), now);
      } else {
        rotation.NoteGone(server, made.retry_delay, now);
      }
      if (made.then == Attempt::Then::kHere) {
        stays = true;
        rotation.StayWith(server);
      }
      if (!stays && rotation.AllRefused(now)) {
        if (const int added = AddNewServers(find, &servers); added > 0) rotation.Add(added);
      }
      candidate = rotation.Next(now);
      if (!candidate.has_value()) return refusals.Sum();
    }
    if (limits.deadline.has_value() && Clock::now() + candidate->wait >= *limits.deadline) {
      return absl::DeadlineExceededError(absl::StrCat(
          "no time for another attempt before the deadline; the last one: ", made.status.message()));
    }
    if (observer != nullptr) observer->OnRetry(number, made.status, candidate->wait);
    if (SleepUnlessStopped(candidate->wait, stop)) return absl::CancelledError("cancelled");
    if (made.then != Attempt::Then::kAgain) ready = rotation.Ready(steady_clock::now());
  }
}

}  // namespace spexd::client
