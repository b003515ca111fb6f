// How many streams may be open: in all, of one peer, and on one connection.
#ifndef SPEXD_SERVER_ADMISSION_STREAM_LIMITS_H_
#define SPEXD_SERVER_ADMISSION_STREAM_LIMITS_H_

#include <functional>
#include <map>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "core/base/threads/mutex.h"

namespace spexd {

// Safe to use from many threads; outlives its places.
class StreamLimits {
 public:
  struct Limits {
    int streams = 16384, of_a_peer = 4096, of_a_connection = 256;
  };

  // An open stream, until it is destroyed.
  class Place {
   public:
    Place(Place&& other) noexcept
        : limits_(std::exchange(other.limits_, nullptr)), connection_(std::move(other.connection_)) {}
    Place& operator=(Place&&) = delete;
    ~Place() {
      if (limits_ != nullptr) limits_->Leave(connection_);
    }

   private:
    friend class StreamLimits;
    Place(StreamLimits* limits, std::string connection)
        : limits_(limits), connection_(std::move(connection)) {}
    StreamLimits* limits_;
    std::string connection_;
  };

  explicit StreamLimits(const Limits& limits) : limits_(limits) {}

  // `connection`: as gRPC names it ("ipv4:10.0.0.7:41234"). Connections to a Unix socket have no names of
  // their own: only the limit of all streams applies to them. ResourceExhausted with a retry delay: too many
  // are open.
  absl::StatusOr<Place> Enter(const std::string& connection) ABSL_LOCKS_EXCLUDED(mutex_);
  int open() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether, since the last such answer, at least kFlood streams were open and then less than a quarter of
  // the most.
  bool FloodEnded() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  static constexpr int kFlood = 100;

  // Takes no memory.
  void Leave(const std::string& connection) ABSL_LOCKS_EXCLUDED(mutex_);

  const Limits limits_;
  mutable Mutex mutex_;
  int open_ ABSL_GUARDED_BY(mutex_) = 0;
  int most_ ABSL_GUARDED_BY(mutex_) = 0;  // since the last flood ended
  std::map<std::string, int, std::less<>> of_peers_ ABSL_GUARDED_BY(mutex_), of_connections_
      ABSL_GUARDED_BY(mutex_);
};

}  // namespace spexd

#endif  // SPEXD_SERVER_ADMISSION_STREAM_LIMITS_H_
