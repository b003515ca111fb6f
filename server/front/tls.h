// TLS of the gRPC port. Certificate, key and authorities are read and checked here, at the start and again
// while the server runs. gRPC therefore gets only matching files, even in the middle of their renewal.
#ifndef SPEXD_SERVER_FRONT_TLS_H_
#define SPEXD_SERVER_FRONT_TLS_H_

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/threads/mutex.h"
#include "grpc/grpc_security.h"
#include "grpcpp/security/server_credentials.h"
#include "server/config/options.h"

namespace spexd {

// Checks the files; OK without TLS. InvalidArgument names the option and the file: it cannot be read, has no
// certificate or key, has a NUL byte or a damaged or incomplete PEM block, or the key belongs to another
// certificate.
absl::Status CheckTlsFiles(const ServerOptions& options);

// Safe to use from many threads.
class TlsCertificates {
 public:
  // Reads the files that the options name. Errors as in CheckTlsFiles. REQUIRES: the options ask for TLS.
  static absl::StatusOr<std::unique_ptr<TlsCertificates>> Read(const ServerOptions& options);

  // Reads the files again, for later connections. If they are not good, the previous ones stay in force, and
  // the error is as in CheckTlsFiles.
  absl::Status Refresh() ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns when the certificate in force, or an earlier one of its chain, expires, in seconds since 1970.
  int64_t expiry() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns how often other files came into force.
  int64_t renewals() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Makes the credentials of a port. They require TLS 1.2 or later, and, if the options name an authority, a
  // client certificate that it signed. This object outlives the port.
  std::shared_ptr<grpc::ServerCredentials> MakeCredentials();

 private:
  struct Files {
    std::string certificate, key, client_ca;
    int64_t expiry = 0;  // seconds since 1970
    bool operator==(const Files&) const = default;
  };
  friend absl::Status CheckTlsFiles(const ServerOptions& options);
  TlsCertificates(const ServerOptions& options, Files files) : options_(options), files_(std::move(files)) {}
  static absl::StatusOr<Files> ReadGood(const ServerOptions& options);
  // Called by gRPC at each handshake.
  static grpc_ssl_certificate_config_reload_status Fetch(void* self,
                                                         grpc_ssl_server_certificate_config** config);

  const ServerOptions options_;
  mutable Mutex mutex_;
  Files files_ ABSL_GUARDED_BY(mutex_);
  int64_t renewals_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t given_ ABSL_GUARDED_BY(mutex_) = -1;  // the renewal whose files gRPC has
};

}  // namespace spexd

#endif  // SPEXD_SERVER_FRONT_TLS_H_
