// Who this side is, and whom it trusts.
#ifndef SPEXD_CLIENT_CONNECTION_CREDENTIALS_H_
#define SPEXD_CLIENT_CONNECTION_CREDENTIALS_H_

#include <grpcpp/security/credentials.h>

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/connection/server_address.h"

namespace spexd::client {

// TLS where `server` names authorities, else plain text. InvalidArgument names a file that cannot be read or
// the fields that do not fit together.
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeCredentials(const ServerAddress& server);

// The token in a file; "" for no file. InvalidArgument names the file.
absl::StatusOr<std::string> ReadToken(const std::string& path);

// Whether what is sent to `address` can be read on this machine alone.
bool StaysOnThisMachine(const std::string& address);

}  // namespace spexd::client

#endif  // SPEXD_CLIENT_CONNECTION_CREDENTIALS_H_
