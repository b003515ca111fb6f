// The limits of open streams: in all, of one peer, and on one connection.
#ifndef SPEXD_SERVER_ADMISSION_STREAM_LIMITS_H_
#define SPEXD_SERVER_ADMISSION_STREAM_LIMITS_H_

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "core/base/threads/mutex.h"

namespace spexd {

// Safe to use from many threads; outlives its leases.
class StreamLimits {
 public:
  using Time = std::chrono::steady_clock::time_point;

  struct Limits {
    int streams = 16384, of_a_peer = 4096, of_a_connection = 256;
  };

  // An open stream; it counts until the lease is destroyed.
  class Lease {
   public:
    Lease(Lease&& other) noexcept
        : limits_(std::exchange(other.limits_, nullptr)),
          connection_(std::move(other.connection_)),
          since_(other.since_) {}
    Lease& operator=(Lease&&) = delete;
    ~Lease() {
      if (limits_ != nullptr) limits_->Release(connection_, since_);
    }

   private:
    friend class StreamLimits;
    Lease(StreamLimits* limits, std::string connection, Time since)
        : limits_(limits), connection_(std::move(connection)), since_(since) {}
    StreamLimits* limits_;
    std::string connection_;
    Time since_;
  };

  // `now`: the clock, for tests.
  explicit StreamLimits(
      const Limits& limits, std::function<Time()> now = [] { return std::chrono::steady_clock::now(); })
      : limits_(limits), now_(std::move(now)) {}

  // Opens a stream. `connection`: its name in gRPC ("ipv4:10.0.0.7:41234"). Connections to a Unix socket have
  // no names of their own, so only the limit of all streams applies to them. ResourceExhausted: too many
  // streams are open; the retry delay is estimated from how long the last streams were open.
  absl::StatusOr<Lease> Acquire(const std::string& connection) ABSL_LOCKS_EXCLUDED(mutex_);
  int open() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether a flood of streams has ended: at least kFlood streams were open at once, and less than a quarter
  // of the largest number is open now. True once for each flood.
  bool FloodEnded() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  static constexpr int kFlood = 100;

  void Release(const std::string& connection, Time since) ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status TooMany(int open, const char* where, const char* flag, int limit) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Limits limits_;
  const std::function<Time()> now_;
  mutable Mutex mutex_;
  int open_ ABSL_GUARDED_BY(mutex_) = 0;
  int max_open_ ABSL_GUARDED_BY(mutex_) = 0;         // maximum since the last flood ended
  double open_seconds_ ABSL_GUARDED_BY(mutex_) = 0;  // weighted mean of the last streams
  std::map<std::string, int, std::less<>> of_peers_ ABSL_GUARDED_BY(mutex_), of_connections_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace spexd

#endif  // SPEXD_SERVER_ADMISSION_STREAM_LIMITS_H_
