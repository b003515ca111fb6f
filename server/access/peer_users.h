// The user at the other end of a Unix socket. gRPC 1.51 does not report it, but the system does when a
// connection is accepted. The connections of each user are therefore given to gRPC with credentials of that
// user.
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
  // The number of users that may have connections at once. gRPC needs one acceptor for each, made before the
  // server starts.
  static constexpr int kMaxUsers = 64;

  // Adds the acceptors. Call it before BuildAndStart.
  void AddTo(grpc::ServerBuilder* builder);

  // Gives an accepted connection of a Unix socket to the server. Call it from one thread, after the server
  // has started. ResourceExhausted: kMaxUsers other users have connections; the connection is closed.
  absl::Status Take(FileDescriptor connection);

 private:
  // An acceptor and the user whose connections it takes.
  struct Slot {
    std::shared_ptr<std::atomic<int64_t>> uid;  // -1: free
    std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor;
  };
  Slot* SlotOf(int64_t uid);

  std::array<Slot, kMaxUsers> slots_;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_ACCESS_PEER_USERS_H_
