#include "server/front/tls.h"

#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "absl/strings/str_format.h"

namespace spexd {
namespace {

constexpr unsigned kSecondsBetweenLooks = 1;

absl::Status Wrong(const char* flag, const std::string& file) {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  ERR_clear_error();
  return absl::InvalidArgumentError(
      absl::StrFormat("%s \"%s\": %s", flag, file, reason == nullptr ? "no PEM file" : reason));
}

}  // namespace

absl::Status CheckTlsFiles(const ServerOptions& options) {
  if (options.tls_certificate.empty()) return absl::OkStatus();
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_server_method()),
                                                                  &SSL_CTX_free);
  ERR_clear_error();
  if (context == nullptr) return absl::InternalError("OpenSSL makes no context");
  if (SSL_CTX_use_certificate_chain_file(context.get(), options.tls_certificate.c_str()) != 1)
    return Wrong("--tls-certificate", options.tls_certificate);
  if (SSL_CTX_use_PrivateKey_file(context.get(), options.tls_private_key.c_str(), SSL_FILETYPE_PEM) != 1)
    return Wrong("--tls-private-key", options.tls_private_key);
  if (!options.tls_client_ca.empty() &&
      SSL_CTX_load_verify_file(context.get(), options.tls_client_ca.c_str()) != 1)
    return Wrong("--tls-client-ca", options.tls_client_ca);
  return absl::OkStatus();
}

std::shared_ptr<grpc::ServerCredentials> MakeServerCredentials(const ServerOptions& options) {
  if (options.tls_certificate.empty()) return grpc::InsecureServerCredentials();
  const auto files = std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(
      options.tls_private_key, options.tls_certificate, options.tls_client_ca, kSecondsBetweenLooks);
  grpc::experimental::TlsServerCredentialsOptions tls(files);
  tls.watch_identity_key_cert_pairs();
  if (!options.tls_client_ca.empty()) {
    tls.watch_root_certs();
    tls.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  }
  return grpc::experimental::TlsServerCredentials(tls);
}

}  // namespace spexd
