// A connection to spexd through gRPC.
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

// Pings of a connection that has a call: a server that cannot be reached any more ends the call as
// Unavailable after ping_interval + ping_timeout. A server takes pings every 10 s, and breaks connections
// that send more (see server/server.cc).
struct PingTimes {
  std::chrono::milliseconds interval{20000};
  std::chrono::milliseconds timeout{10000};
};

// `address`: "host:port", "unix:/path" or any other gRPC target. Returns at once: an address that nobody
// answers shows as Unavailable in the first call. Plain text, for loopback, a Unix socket or a trusted
// network.
std::unique_ptr<Connection> MakeGrpcConnection(const std::string& address, const PingTimes& pings = {});

// A connection to each server that `server` names, by TLS and with credentials where it has them. The files
// are read once. InvalidArgument names a file that cannot be read or the fields that do not fit together;
// otherwise the errors of FindServers. A token goes in plain text only to loopback and to Unix sockets.
absl::StatusOr<std::vector<std::unique_ptr<Connection>>> ConnectAll(const ServerAddress& server);

// The same for servers that are replaced by others while it is used. Names are looked up by its Find, whose
// errors are those of FindServers and of a token.
absl::StatusOr<std::unique_ptr<ServerDirectory>> OpenDirectory(const ServerAddress& server,
                                                               Resolver resolve = ResolveByDns);

std::vector<Connection*> Pointers(const std::vector<std::unique_ptr<Connection>>& connections);

// The same for one server: InvalidArgument if `server` names several.
absl::StatusOr<std::unique_ptr<Connection>> Connect(const ServerAddress& server);

}  // namespace spexd::client

#endif  // SPEXD_CLIENT_CONNECTION_GRPC_CONNECTION_H_
