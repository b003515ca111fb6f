// The client's credentials, and the authorities that it trusts.
#ifndef SPEXD_CLIENT_CONNECTION_CREDENTIALS_H_
#define SPEXD_CLIENT_CONNECTION_CREDENTIALS_H_

#include <grpcpp/security/credentials.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/connection/server_address.h"

namespace spexd::client {

// Returns credentials for TLS if `server` names authorities, otherwise for plain text. InvalidArgument names
// a file that cannot be read, or fields that contradict each other.
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeCredentials(const ServerAddress& server);

// Returns the token in a file; "" if `path` is "". InvalidArgument names the file.
absl::StatusOr<std::string> ReadToken(const std::string& path);

// Whether data sent to `address` stay on this machine.
bool StaysOnThisMachine(const std::string& address);

}  // namespace spexd::client

#endif  // SPEXD_CLIENT_CONNECTION_CREDENTIALS_H_
