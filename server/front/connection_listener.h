// Accepts connections for gRPC, and limits them. gRPC's own listener has no limit, and does not recover once
// it ran out of file descriptors.
//
// A connection is silent until its client has sent something: the first bytes of HTTP/2, or of TLS, are the
// client's. gRPC gets it then. Until then it is kept here, counts towards the limits, and is the first to go:
// a new connection for which there is no room takes the place of the oldest silent one.
#ifndef SPEXD_SERVER_FRONT_CONNECTION_LISTENER_H_
#define SPEXD_SERVER_FRONT_CONNECTION_LISTENER_H_

#include <poll.h>
#include <sys/types.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <list>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/base/file_descriptor.h"
#include "core/base/threads/mutex.h"
#include "server/front/listening_sockets.h"

namespace spexd {

class ConnectionListener {
 public:
  struct Limits {
    int connections = 0, of_a_peer = 0;  // silent ones and those that gRPC has
    // A connection whose peer does not acknowledge what was sent for so long is ended by the kernel.
    std::chrono::milliseconds unacknowledged = std::chrono::minutes(15);
    std::chrono::milliseconds silent = std::chrono::seconds(10);  // a connection is closed after that
  };
  struct Callbacks {
    // A connection on which there is something to read. Nonblocking; whoever takes it closes it.
    std::function<void(FileDescriptor connection)> take;
    std::function<void()> refused;  // a connection was closed for a limit
  };

  // Accepts on a thread of its own until it is destroyed.
  ConnectionListener(ListeningSockets sockets, const Limits& limits, Callbacks callbacks);
  ~ConnectionListener();

  // Unavailable, with the reason, once no more connections can be accepted. Running out of file descriptors
  // is no such reason: connections are closed then, until there are descriptors again.
  absl::Status Check() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Connections that are not closed yet, silent ones included.
  int connections() ABSL_LOCKS_EXCLUDED(mutex_);
  // Connections that were closed for a limit, silent ones in favour of a new one included.
  int64_t refused() const { return refused_; }

 private:
  // Whoever took a connection closes it without a word: it is there while its descriptor is the same socket.
  struct Connection {
    int descriptor;
    ino_t inode;
    std::string peer;
  };
  struct SilentConnection {
    FileDescriptor connection;
    std::string peer;
    std::chrono::steady_clock::time_point until;
  };
  using Silent = std::list<SilentConnection>;

  void Loop();
  absl::Status Wait();
  // Passes on, or closes, the silent connections of which `polled`, in their order, has news.
  void Hear(absl::Span<const pollfd> polled);
  void CloseSilentTooLong();
  int MillisecondsToNextClose() const;
  absl::Status Accept(int listening);
  // Closes what waits, though there are no descriptors.
  void TurnAway(int listening);
  void CountRefused();
  void Admit(FileDescriptor connection, const std::string& peer);
  // Whether there is room for one more of that peer, once the oldest silent ones are closed.
  bool MakeRoom(const std::string& peer);
  // Closes the oldest silent connection, of that peer if given; false: there is none.
  bool CloseOldestSilent(const std::string* peer);
  Silent::iterator PassOn(Silent::iterator one);
  Silent::iterator Close(Silent::iterator one);
  int CountOf(const std::string& peer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CountOut(const std::string& peer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ForgetClosed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ListeningSockets sockets_;
  const Limits limits_;
  const Callbacks callbacks_;
  FileDescriptor wake_;   // becomes readable at the end
  FileDescriptor spare_;  // given up where there are no others, to accept and close a connection
  std::atomic<int64_t> refused_ = 0;
  // Touched by the thread alone.
  Silent silent_;           // oldest first
  bool forgotten_ = false;  // closed connections were looked for since the last wait
  mutable Mutex mutex_;
  std::vector<Connection> connections_ ABSL_GUARDED_BY(mutex_);
  // All connections, silent ones included, and those of each peer that has one.
  int open_ ABSL_GUARDED_BY(mutex_) = 0;
  std::unordered_map<std::string, int> of_peer_ ABSL_GUARDED_BY(mutex_);
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_FRONT_CONNECTION_LISTENER_H_
