// The listener of the gRPC port. It accepts connections and limits their number. gRPC's own listener has no
// limit and does not recover when it has run out of file descriptors.
//
// A connection is silent until its client has sent something. (In HTTP/2 and in TLS the client sends first.)
// The listener keeps silent connections and gives a connection to gRPC when it is no longer silent. Silent
// connections count towards the limits. A new connection for which there is no room replaces the oldest
// silent one.
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
    int connections = 0, of_a_peer = 0;  // silent connections and those that gRPC has
    // The time for which sent data may be unacknowledged before the kernel ends the connection.
    std::chrono::milliseconds unacknowledged = std::chrono::minutes(15);
    std::chrono::milliseconds silent = std::chrono::seconds(10);  // the time limit of silence
  };
  struct Callbacks {
    // Takes a connection on which there is something to read. It is nonblocking.
    std::function<void(FileDescriptor connection)> take;
    std::function<void()> refused;  // called when a connection was closed because of a limit
  };

  // Accepts connections on a thread of its own until the listener is destroyed.
  ConnectionListener(ListeningSockets sockets, const Limits& limits, Callbacks callbacks);
  ~ConnectionListener();

  // Unavailable, with the reason: no more connections can be accepted. A lack of file descriptors is no such
  // reason; connections are then closed until there are descriptors.
  absl::Status Check() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the number of open connections, including silent ones.
  int connections() ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the number of connections that were closed because of a limit, including silent ones that were
  // replaced.
  int64_t refused() const { return refused_; }

 private:
  // A connection that was given to gRPC, which does not report when it closes it. The connection is open
  // while its descriptor refers to the same inode.
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
  // Passes on or closes silent connections, by the results of poll, which are in the order of silent_.
  void Hear(absl::Span<const pollfd> polled);
  void CloseSilentTooLong();
  int MillisecondsToNextClose() const;
  absl::Status Accept(int listening);
  // Accepts and closes a waiting connection by means of the spare descriptor.
  void TurnAway(int listening);
  void CountRefused();
  void Admit(FileDescriptor connection, const std::string& peer);
  // Makes room for one more connection of the peer by closing the oldest silent ones. Returns false if it
  // cannot.
  bool MakeRoom(const std::string& peer);
  // Closes the oldest silent connection, of `peer` if given. Returns false if there is none.
  bool CloseOldestSilent(const std::string* peer);
  Silent::iterator PassOn(Silent::iterator one);
  Silent::iterator Close(Silent::iterator one);
  int CountOf(const std::string& peer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CountOut(const std::string& peer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void ForgetClosed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const ListeningSockets sockets_;
  const Limits limits_;
  const Callbacks callbacks_;
  FileDescriptor wake_;   // becomes readable when the listener is destroyed
  FileDescriptor spare_;  // given up when there are no others, to accept and close a connection
  std::atomic<int64_t> refused_ = 0;
  // Only the thread uses these.
  Silent silent_;           // oldest first
  bool forgotten_ = false;  // ForgetClosed was called since the last wait
  mutable Mutex mutex_;
  std::vector<Connection> connections_ ABSL_GUARDED_BY(mutex_);
  // The number of all connections, including silent ones, and that of each peer that has any.
  int open_ ABSL_GUARDED_BY(mutex_) = 0;
  std::unordered_map<std::string, int> of_peer_ ABSL_GUARDED_BY(mutex_);
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_FRONT_CONNECTION_LISTENER_H_
