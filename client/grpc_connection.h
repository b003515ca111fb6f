// A connection to spexd through gRPC.
#ifndef SPEXD_CLIENT_GRPC_CONNECTION_H_
#define SPEXD_CLIENT_GRPC_CONNECTION_H_

#include <memory>
#include <string>

#include "client/connection.h"

namespace spexd::client {

// `address`: "host:port", "unix:/path" or any other gRPC target. Returns at once: an address that nobody
// answers shows as Unavailable in the first call. Plain text, for loopback, a Unix socket or a trusted
// network.
std::unique_ptr<Connection> MakeGrpcConnection(const std::string& address);

}  // namespace spexd::client

#endif  // SPEXD_CLIENT_GRPC_CONNECTION_H_
