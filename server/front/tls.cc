#include "server/front/tls.h"

#include <grpc/grpc.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>

#include <algorithm>
#include <ctime>
#include <limits>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "core/base/status_macros.h"
#include "core/base/threads/guard.h"
#include "server/config/small_file.h"

namespace spexd {
namespace {

constexpr char kCertificate[] = "--tls-certificate", kKey[] = "--tls-private-key",
               kClientCa[] = "--tls-client-ca";

using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;
using Text = std::unique_ptr<BIO, decltype(&BIO_free_all)>;

Text TextOf(const std::string& pem) {
  return Text(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), &BIO_free_all);
}

absl::Status Wrong(const char* flag, const std::string& file, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrFormat("%s \"%s\": %s", flag, file, why));
}

// Returns the error for a file with OpenSSL's reason.
absl::Status Wrong(const char* flag, const std::string& file) {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  absl::Status wrong = Wrong(flag, file, reason == nullptr ? "a PEM block is damaged" : reason);
  ERR_clear_error();
  return wrong;
}

// Returns the number of PEM blocks of any kind; nullopt: one cannot be read.
std::optional<int> CountBlocks(const std::string& pem) {
  const Text text = TextOf(pem);
  for (int blocks = 0;; ++blocks) {
    char *name = nullptr, *header = nullptr;
    unsigned char* content = nullptr;
    long bytes = 0;
    if (PEM_read_bio(text.get(), &name, &header, &content, &bytes) != 1) {
      if (ERR_GET_REASON(ERR_peek_last_error()) != PEM_R_NO_START_LINE) return std::nullopt;
      ERR_clear_error();
      return blocks;
    }
    OPENSSL_free(name);
    OPENSSL_free(header);
    OPENSSL_clear_free(content, static_cast<size_t>(bytes));
  }
}

// Reads a file and checks that gRPC and OpenSSL will use all of it. gRPC reads only up to a NUL byte. OpenSSL
// skips a block whose first line is damaged, and a chain would then lack a certificate.
absl::StatusOr<std::string> ReadPem(const char* flag, const std::string& file) {
  SPEXD_ASSIGN_OR_RETURN(std::string pem, ReadSmallFile(flag, file));
  if (pem.find('\0') != std::string::npos) return Wrong(flag, file, "contains a NUL byte");
  ERR_clear_error();
  const std::optional<int> blocks = CountBlocks(pem);
  if (!blocks.has_value()) return Wrong(flag, file);
  int marks = 0;
  for (const absl::string_view line : absl::StrSplit(pem, '\n')) {
    if (absl::StartsWith(absl::StripLeadingAsciiWhitespace(line), "-----")) ++marks;
  }
  if (marks == 2 * *blocks) return pem;
  return Wrong(flag, file,
               absl::StrFormat("a PEM block is damaged or cut: %d lines begin with \"-----\", but only %d of "
                               "them begin or end a block that can be read",
                               marks, 2 * *blocks));
}

// Refuses keys with a pass phrase, because nobody could enter it.
int NoPassPhrase(char*, int, int, void*) { return 0; }

// Returns when the first of the certificates expires, in seconds since 1970; nullopt: there is none, or one
// is damaged. Gives the first certificate to `context` as the server's, unless `context` is null.
std::optional<int64_t> ExpiryOfCertificates(const std::string& pem, SSL_CTX* context) {
  const Text text = TextOf(pem);
  int64_t expiry = std::numeric_limits<int64_t>::max();
  for (int count = 0;; ++count) {
    const Certificate one(PEM_read_bio_X509(text.get(), nullptr, &NoPassPhrase, nullptr), &X509_free);
    if (one == nullptr && count > 0 && ERR_GET_REASON(ERR_peek_last_error()) == PEM_R_NO_START_LINE)
      return expiry;
    std::tm end = {};
    if (one == nullptr || ASN1_TIME_to_tm(X509_get0_notAfter(one.get()), &end) != 1) return std::nullopt;
    if (count == 0 && context != nullptr && SSL_CTX_use_certificate(context, one.get()) != 1)
      return std::nullopt;
    expiry = std::min<int64_t>(expiry, timegm(&end));
  }
}

// Whether the text has the key of the context's certificate.
bool HasKey(const std::string& pem, SSL_CTX* context) {
  const Text text = TextOf(pem);
  const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
      PEM_read_bio_PrivateKey(text.get(), nullptr, &NoPassPhrase, nullptr), &EVP_PKEY_free);
  return key != nullptr && SSL_CTX_use_PrivateKey(context, key.get()) == 1;
}

// A port's credentials by gRPC's C interface. Those of the C++ interface read the files themselves or never
// read them again.
class Credentials final : public grpc::ServerCredentials {
 public:
  explicit Credentials(grpc_server_credentials* credentials) : credentials_(credentials) {}
  ~Credentials() override { grpc_server_credentials_release(credentials_); }
  void SetAuthMetadataProcessor(const std::shared_ptr<grpc::AuthMetadataProcessor>&) override {}

 private:
  int AddPortToServer(const std::string& address, grpc_server* server) override {
    return grpc_server_add_http2_port(server, address.c_str(), credentials_);
  }

  grpc_server_credentials* const credentials_;
};

}  // namespace

absl::StatusOr<TlsCertificates::Files> TlsCertificates::ReadGood(const ServerOptions& options) {
  Files files;
  SPEXD_ASSIGN_OR_RETURN(files.certificate, ReadPem(kCertificate, options.tls_certificate));
  SPEXD_ASSIGN_OR_RETURN(files.key, ReadPem(kKey, options.tls_private_key));
  if (!options.tls_client_ca.empty()) {
    SPEXD_ASSIGN_OR_RETURN(files.client_ca, ReadPem(kClientCa, options.tls_client_ca));
  }
  const std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)> context(SSL_CTX_new(TLS_server_method()),
                                                                  &SSL_CTX_free);
  ERR_clear_error();
  if (context == nullptr) return absl::InternalError("OpenSSL makes no context");
  const std::optional<int64_t> expiry = ExpiryOfCertificates(files.certificate, context.get());
  if (!expiry.has_value()) return Wrong(kCertificate, options.tls_certificate);
  files.expiry = *expiry;
  if (!HasKey(files.key, context.get())) return Wrong(kKey, options.tls_private_key);
  if (!options.tls_client_ca.empty() && !ExpiryOfCertificates(files.client_ca, nullptr).has_value())
    return Wrong(kClientCa, options.tls_client_ca);
  ERR_clear_error();
  return files;
}

absl::Status CheckTlsFiles(const ServerOptions& options) {
  if (options.tls_certificate.empty()) return absl::OkStatus();
  return TlsCertificates::ReadGood(options).status();
}

absl::StatusOr<std::unique_ptr<TlsCertificates>> TlsCertificates::Read(const ServerOptions& options) {
  SPEXD_ASSIGN_OR_RETURN(Files files, ReadGood(options));
  return std::unique_ptr<TlsCertificates>(new TlsCertificates(options, std::move(files)));
}

absl::Status TlsCertificates::Refresh() {
  return CatchExceptions([this]() -> absl::Status {
    SPEXD_ASSIGN_OR_RETURN(Files files, ReadGood(options_));
    MutexLock lock(&mutex_);
    if (files == files_) return absl::OkStatus();
    files_ = std::move(files);
    ++renewals_;
    return absl::OkStatus();
  });
}

int64_t TlsCertificates::expiry() const {
  MutexLock lock(&mutex_);
  return files_.expiry;
}

int64_t TlsCertificates::renewals() const {
  MutexLock lock(&mutex_);
  return renewals_;
}

grpc_ssl_certificate_config_reload_status TlsCertificates::Fetch(
    void* self, grpc_ssl_server_certificate_config** config) {
  TlsCertificates& own = *static_cast<TlsCertificates*>(self);
  MutexLock lock(&own.mutex_);
  if (own.given_ == own.renewals_) return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_UNCHANGED;
  const grpc_ssl_pem_key_cert_pair pair = {own.files_.key.c_str(), own.files_.certificate.c_str()};
  // gRPC aborts without authorities, even if it asks for no client certificate and does not use them.
  const std::string& authorities =
      own.files_.client_ca.empty() ? own.files_.certificate : own.files_.client_ca;
  *config = grpc_ssl_server_certificate_config_create(authorities.c_str(), &pair, 1);
  own.given_ = own.renewals_;
  return GRPC_SSL_CERTIFICATE_CONFIG_RELOAD_NEW;
}

std::shared_ptr<grpc::ServerCredentials> TlsCertificates::MakeCredentials() {
  const auto request = options_.tls_client_ca.empty()
                           ? GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE
                           : GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY;
  return std::make_shared<Credentials>(grpc_ssl_server_credentials_create_with_options(
      grpc_ssl_server_credentials_create_options_using_config_fetcher(request, &TlsCertificates::Fetch,
                                                                      this)));
}

}  // namespace spexd
