// TLS of the gRPC port. Certificate, key and authorities are read and checked here, at the start and again
// while the server runs: gRPC sees only a pair that fits, whatever lies in the files while they are renewed.
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

// InvalidArgument, naming the option and the file: it cannot be read, has no certificate or key, has a NUL
// byte or a PEM block that is damaged or cut, or the key is of another certificate. OK without TLS.
absl::Status CheckTlsFiles(const ServerOptions& options);

// Safe to use from many threads.
class TlsCertificates {
 public:
  // Reads the files that the options name. Errors: see CheckTlsFiles. REQUIRES: the options ask for TLS.
  static absl::StatusOr<std::unique_ptr<TlsCertificates>> Read(const ServerOptions& options);

  // Reads the files again, for connections that come later. What was read before stays in force if they are
  // not good; errors as above.
  absl::Status Refresh() ABSL_LOCKS_EXCLUDED(mutex_);
  // When the certificate in force expires, or one of its chain if that is earlier: seconds since 1970.
  int64_t expiry() const ABSL_LOCKS_EXCLUDED(mutex_);
  // How often other files have come into force.
  int64_t renewals() const ABSL_LOCKS_EXCLUDED(mutex_);

  // Credentials of one port: TLS 1.2 at least; client certificates asked for and verified where the options
  // name an authority. This outlives the port.
  std::shared_ptr<grpc::ServerCredentials> MakeCredentials();

 private:
  struct Files {
    std::string certificate, key, client_ca;
    int64_t expiry = 0;  // of the certificate
    bool operator==(const Files&) const = default;
  };
  friend absl::Status CheckTlsFiles(const ServerOptions& options);
  TlsCertificates(const ServerOptions& options, Files files) : options_(options), files_(std::move(files)) {}
  static absl::StatusOr<Files> ReadGood(const ServerOptions& options);
  // gRPC asks at each handshake.
  static grpc_ssl_certificate_config_reload_status Fetch(void* self,
                                                         grpc_ssl_server_certificate_config** config);

  const ServerOptions options_;
  mutable Mutex mutex_;
  Files files_ ABSL_GUARDED_BY(mutex_);
  int64_t renewals_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t given_ ABSL_GUARDED_BY(mutex_) = -1;  // gRPC has the files of this renewal
};

}  // namespace spexd

#endif  // SPEXD_SERVER_FRONT_TLS_H_
