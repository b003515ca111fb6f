// Connections to spexd through gRPC.
#ifndef SPEXD_CLIENT_CONNECTION_GRPC_CONNECTION_H_
#define SPEXD_CLIENT_CONNECTION_GRPC_CONNECTION_H_

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "client/connection/connection.h"
#include "client/connection/server_address.h"
#include "client/connection/server_directory.h"

namespace spexd::client {

// The times of pings on a connection with a call. If the server becomes unreachable, the call ends with
// Unavailable after interval + timeout. A server accepts a ping every 10 s and closes connections that send
// more (server/server.cc).
struct PingTimes {
  std::chrono::milliseconds interval{20000};
  std::chrono::milliseconds timeout{10000};
};

// Makes a connection in plain text, for loopback, a Unix socket or a trusted network. `address`: "host:port",
// "unix:/path" or another gRPC target. Returns at once; if nobody answers at the address, the first call ends
// with Unavailable.
std::unique_ptr<Connection> MakeGrpcConnection(const std::string& address, const PingTimes& pings = {});

// Makes a connection to each server that `server` names, with its TLS and credentials, if any. The files are
// read once. A token is sent in plain text only to loopback and to Unix sockets. InvalidArgument names a file
// that cannot be read, or fields that contradict each other. Other errors are those of FindServers.
absl::StatusOr<std::vector<std::unique_ptr<Connection>>> ConnectAll(const ServerAddress& server);

// Returns a directory of the servers that `server` names, which may be replaced by others while it is used.
// Its Find looks names up; errors are those of FindServers and of the token.
absl::StatusOr<std::unique_ptr<ServerDirectory>> OpenDirectory(const ServerAddress& server,
                                                               Resolver resolve = ResolveByDns);

std::vector<Connection*> Pointers(const std::vector<std::unique_ptr<Connection>>& connections);

// Makes a connection to one server. InvalidArgument: `server` names several. Other errors as in ConnectAll.
absl::StatusOr<std::unique_ptr<Connection>> Connect(const ServerAddress& server);

}  // namespace spexd::client

#endif  // SPEXD_CLIENT_CONNECTION_GRPC_CONNECTION_H_
