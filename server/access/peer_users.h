// Which user is at the other end of a Unix socket. gRPC 1.51 does not report the user, but the system does
// when a connection is accepted: each user's connections are handed to gRPC with credentials of that user.
#ifndef SPEXD_SERVER_ACCESS_PEER_USERS_H_
#define SPEXD_SERVER_ACCESS_PEER_USERS_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "core/base/file_descriptor.h"
#include "grpcpp/server_builder.h"

namespace spexd {

// The property of a call's AuthContext that holds the user id of the process that connected.
inline constexpr char kPeerUidProperty[] = "spexd_peer_uid";

class PeerUsers {
 public:
  // gRPC wants its acceptors made before the server starts.
  static constexpr int kMaxUsers = 64;

  // Call it before BuildAndStart.
  void AddTo(grpc::ServerBuilder* builder);

  // Gives an accepted connection of a Unix socket to the server, once that has started. ResourceExhausted,
  // and the connection is closed: it is of a further user. Call it from one thread.
  absl::Status Take(FileDescriptor connection);

 private:
  // Connections of one user.
  struct Slot {
    std::shared_ptr<std::atomic<int64_t>> uid;  // -1: free
    std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor;
  };
  Slot* SlotOf(int64_t uid);

  std::array<Slot, kMaxUsers> slots_;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_ACCESS_PEER_USERS_H_
