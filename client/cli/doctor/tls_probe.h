// A TLS handshake that tells more than gRPC's: the server's certificate, and which side refused which.
#ifndef SPEXD_CLIENT_CLI_DOCTOR_TLS_PROBE_H_
#define SPEXD_CLIENT_CLI_DOCTOR_TLS_PROBE_H_

#include <chrono>
#include <ctime>
#include <string>

#include "absl/status/statusor.h"
#include "client/connection/server_address.h"

namespace spexd::cli {

enum class TlsProblem {
  kNone,
  kNoTls,               // what listens there speaks something else
  kUntrusted,           // no authority of --tls-ca signed the server's certificate
  kExpired,             // the server's certificate, or one of its chain
  kNotYetValid,         // likewise
  kWrongName,           // the certificate has other names
  kAsksForCertificate,  // the server wants one of the client, which has none
  kCertificateRefused,  // the server does not accept the client's
  kNoAnswer,            // in the time allowed
  kOther,
};

struct TlsReport {
  TlsProblem problem = TlsProblem::kNone;
  std::string detail;                 // what TLS itself says, of kUntrusted, kOther
  std::string version;                // "TLSv1.3"; "" without a handshake
  std::string names;                  // of the server's certificate: "localhost, 127.0.0.1"
  std::time_t expires = 0;            // of the same
  bool asks_for_certificate = false;  // of the client
};

// Handshakes on a connected socket that does not block, and leaves it open. `name`: that the certificate must
// have; "": any. `credentials`: files of authorities, certificate and key; without authorities the
// certificate is not verified. InvalidArgument names a file that cannot be used.
absl::StatusOr<TlsReport> ProbeTls(int socket, const std::string& name,
                                   const client::ServerAddress& credentials, std::chrono::milliseconds limit);

// When a certificate in a PEM file expires. InvalidArgument if it cannot be read.
absl::StatusOr<std::time_t> ExpiryOf(const std::string& pem_file);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_DOCTOR_TLS_PROBE_H_
