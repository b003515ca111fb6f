// TLS of the gRPC port: files checked at the start, read again by gRPC when they change.
#ifndef SPEXD_SERVER_FRONT_TLS_H_
#define SPEXD_SERVER_FRONT_TLS_H_

#include <memory>

#include "absl/status/status.h"
#include "grpcpp/security/server_credentials.h"
#include "server/config/options.h"

namespace spexd {

// InvalidArgument, naming the option and the file: it cannot be read, has no certificate or key, or the key
// is of another certificate. OK without TLS.
absl::Status CheckTlsFiles(const ServerOptions& options);

// Credentials of a port without TLS, or with it: 1.2 at least, the certificate and key as the files have them
// when a client connects, client certificates asked for and verified where the options name an authority.
std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(const ServerOptions& options);

}  // namespace spexd

#endif  // SPEXD_SERVER_FRONT_TLS_H_
