#include "server/admission/stream_limits.h"

#include <algorithm>
#include <chrono>

#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "server/base/retry.h"
#include "server/schedule/retry_delay.h"

namespace spexd {
namespace {

// The weight of the last stream in open_seconds_, the same as in byte_budget.cc.
constexpr double kWeightOfTheLast = 0.2;

bool IsUnixSocket(const std::string& connection) { return absl::StartsWith(connection, "unix"); }

using Counts = std::map<std::string, int, std::less<>>;

absl::string_view PeerOf(absl::string_view connection) { return connection.substr(0, connection.rfind(':')); }

int CountOf(const Counts& counts, absl::string_view name) {
  const auto found = counts.find(name);
  return found == counts.end() ? 0 : found->second;
}

void CountDown(Counts* counts, absl::string_view name) {
  const auto found = counts->find(name);
  if (--found->second == 0) counts->erase(found);
}

}  // namespace

absl::Status StreamLimits::TooMany(int open, const char* where, const char* flag, int limit) const {
  const auto delay = std::max(kWhenTooMany, RetryDelayFor(open_seconds_ / std::max(open, 1)));
  return Refuse(absl::ResourceExhaustedError(absl::StrFormat("%d streams are open%s, the limit of %s is %d",
                                                             open, where, flag, limit)),
                "too_many_calls", delay);
}

absl::StatusOr<StreamLimits::Lease> StreamLimits::Acquire(const std::string& connection) {
  MutexLock lock(&mutex_);
  if (open_ >= limits_.streams) return TooMany(open_, "", "--max-streams", limits_.streams);
  Lease lease(nullptr, connection, now_());
  if (!IsUnixSocket(connection)) {
    const absl::string_view peer = PeerOf(connection);
    const int of_peer = CountOf(of_peers_, peer), of_connection = CountOf(of_connections_, connection);
    if (of_peer >= limits_.of_a_peer) {
      return TooMany(of_peer, " from this address", "--max-streams-per-peer", limits_.of_a_peer);
    }
    if (of_connection >= limits_.of_a_connection) {
      return TooMany(of_connection, " on this connection", "--max-streams-per-connection",
                     limits_.of_a_connection);
    }
    ++of_peers_[std::string(peer)];
    ++of_connections_[connection];
  }
  max_open_ = std::max(max_open_, ++open_);
  lease.limits_ = this;
  return lease;
}

void StreamLimits::Release(const std::string& connection, Time since) {
  const double seconds = std::chrono::duration<double>(now_() - since).count();
  MutexLock lock(&mutex_);
  --open_;
  open_seconds_ += kWeightOfTheLast * (seconds - open_seconds_);
  if (IsUnixSocket(connection)) return;
  CountDown(&of_peers_, PeerOf(connection));
  CountDown(&of_connections_, connection);
}

int StreamLimits::open() const {
  MutexLock lock(&mutex_);
  return open_;
}

bool StreamLimits::FloodEnded() {
  MutexLock lock(&mutex_);
  if (max_open_ < kFlood || open_ >= max_open_ / 4) return false;
  max_open_ = open_;
  return true;
}

}  // namespace spexd
