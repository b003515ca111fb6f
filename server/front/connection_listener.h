// Accepts connections for gRPC, and limits them. gRPC's own listener has no limit, and does not recover once
// it ran out of file descriptors.
#ifndef SPEXD_SERVER_FRONT_CONNECTION_LISTENER_H_
#define SPEXD_SERVER_FRONT_CONNECTION_LISTENER_H_

#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "core/base/file_descriptor.h"
#include "core/base/threads/mutex.h"
#include "server/front/listening_sockets.h"

namespace spexd {

class ConnectionListener {
 public:
  struct Limits {
    int connections = 0, of_a_peer = 0;
    // A connection whose peer does not acknowledge what was sent for so long is ended by the kernel.
    std::chrono::milliseconds unacknowledged = std::chrono::minutes(15);
  };
  struct Callbacks {
    std::function<void(FileDescriptor connection)> take;  // nonblocking; whoever takes it closes it
    std::function<void()> refused;                        // a connection was closed for a limit
  };

  // Accepts on a thread of its own until it is destroyed.
  ConnectionListener(ListeningSockets sockets, const Limits& limits, Callbacks callbacks);
  ~ConnectionListener();

  // Unavailable, with the reason, once no more connections can be accepted. Running out of file descriptors
  // is no such reason: connections are closed then, until there are descriptors again.
  absl::Status Check() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Connections that were taken and not closed yet.
  int connections() ABSL_LOCKS_EXCLUDED(mutex_);
  // Connections that were closed for a limit.
  int64_t refused() const { return refused_; }

 private:
  // Whoever took a connection closes it without a word: it is there while its descriptor is the same socket.
  struct Connection {
    int descriptor;
    ino_t inode;
    std::string peer;
  };

  void Loop();
  absl::Status Wait();
  absl::Status AcceptAll(int listening);
  // Closes what waits, though there are no descriptors.
  void TurnAway(int listening);
  void CountRefused();
  void Admit(FileDescriptor connection, const std::string& peer);
  bool IsFull(const std::string& peer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ForgetClosed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ListeningSockets sockets_;
  const Limits limits_;
  const Callbacks callbacks_;
  FileDescriptor wake_;   // becomes readable at the end
  FileDescriptor spare_;  // given up where there are no others, to accept and close a connection
  std::atomic<int64_t> refused_ = 0;
  mutable Mutex mutex_;
  std::vector<Connection> connections_ ABSL_GUARDED_BY(mutex_);
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_FRONT_CONNECTION_LISTENER_H_
