// A TLS handshake that reports more than gRPC's: the server's certificate, and which side refused which.
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
  kNoTls,               // the server does not use TLS
  kUntrusted,           // no authority of --tls-ca signed the server's certificate
  kExpired,             // the server's certificate, or one of its chain, has expired
  kNotYetValid,         // the server's certificate, or one of its chain, is not valid yet
  kWrongName,           // the server's certificate has other names
  kAsksForCertificate,  // the server asks for a client certificate, and there is none
  kCertificateRefused,  // the server refuses the client's certificate
  kNoAnswer,            // the server does not answer within the time limit
  kOther,
};

struct TlsReport {
  TlsProblem problem = TlsProblem::kNone;
  std::string detail;                 // kUntrusted, kOther: the message of OpenSSL
  std::string version;                // "TLSv1.3"; "": there was no handshake
  std::string names;                  // names in the server's certificate: "localhost, 127.0.0.1"
  std::time_t expires = 0;            // when the server's certificate expires
  bool asks_for_certificate = false;  // the server asks for a client certificate
};

// Makes a handshake on a connected, nonblocking socket and leaves it open. `name`: the name that the
// certificate must have; "": any. `credentials`: files of authorities, certificate and key; without
// authorities the certificate is not verified. InvalidArgument names a file that cannot be used.
absl::StatusOr<TlsReport> ProbeTls(int socket, const std::string& name,
                                   const client::ServerAddress& credentials, std::chrono::milliseconds limit);

// Returns when the certificate in a PEM file expires. InvalidArgument: it cannot be read.
absl::StatusOr<std::time_t> ExpiryOf(const std::string& pem_file);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_DOCTOR_TLS_PROBE_H_
