#include "client/cli/doctor/tls_probe.h"

#include <arpa/inet.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <functional>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "core/base/status_macros.h"

namespace spexd::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;
using Context = std::unique_ptr<SSL_CTX, decltype(&SSL_CTX_free)>;
using Session = std::unique_ptr<SSL, decltype(&SSL_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;

constexpr unsigned char kHttp2[] = {2, 'h', '2'};
// The preface of an HTTP/2 client with an empty SETTINGS frame. A server answers with its own.
constexpr char kPreface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

std::string Reason() {
  const char* reason = ERR_reason_error_string(ERR_peek_last_error());
  return reason == nullptr ? "" : reason;
}

absl::Status Unusable(const char* field, const std::string& file) {
  return absl::InvalidArgumentError(absl::StrCat(field, " \"", file, "\" cannot be used: ", Reason()));
}

std::time_t TimeOf(const ASN1_TIME* time) {
  std::tm parts{};
  return time != nullptr && ASN1_TIME_to_tm(time, &parts) == 1 ? timegm(&parts) : 0;
}

std::string AsnText(const ASN1_STRING* text) {
  return {reinterpret_cast<const char*>(ASN1_STRING_get0_data(text)),
          static_cast<size_t>(ASN1_STRING_length(text))};
}

// Returns the names in a certificate: host names and addresses.
std::string NamesOf(X509* certificate) {
  std::vector<std::string> names;
  auto* const general =
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr));
  for (int k = 0; k < sk_GENERAL_NAME_num(general); ++k) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(general, k);
    if (name->type == GEN_DNS) names.push_back(AsnText(name->d.dNSName));
    if (name->type != GEN_IPADD) continue;
    const std::string bytes = AsnText(name->d.iPAddress);
    std::array<char, 64> address{};
    const int family = bytes.size() == 4 ? AF_INET : AF_INET6;
    if (inet_ntop(family, bytes.data(), address.data(), address.size()) != nullptr)
      names.emplace_back(address.data());
  }
  GENERAL_NAMES_free(general);
  return names.empty() ? "none" : absl::StrJoin(names, ", ");
}

bool IsAddress(const std::string& name) {
  std::array<char, sizeof(in6_addr)> address{};
  return inet_pton(AF_INET, name.c_str(), address.data()) == 1 ||
         inet_pton(AF_INET6, name.c_str(), address.data()) == 1;
}

bool HasName(X509* certificate, const std::string& name) {
  return name.empty() || X509_check_host(certificate, name.data(), name.size(), 0, nullptr) == 1 ||
         X509_check_ip_asc(certificate, name.c_str(), 0) == 1;
}

absl::Status UseFiles(SSL_CTX* context, const client::ServerAddress& files) {
  if (!files.tls_ca.empty() && SSL_CTX_load_verify_locations(context, files.tls_ca.c_str(), nullptr) != 1)
    return Unusable("TLS authorities", files.tls_ca);
  if (files.tls_cert.empty()) return absl::OkStatus();
  if (SSL_CTX_use_certificate_chain_file(context, files.tls_cert.c_str()) != 1)
    return Unusable("TLS certificate", files.tls_cert);
  if (SSL_CTX_use_PrivateKey_file(context, files.tls_key.c_str(), SSL_FILETYPE_PEM) != 1)
    return Unusable("TLS key", files.tls_key);
  if (SSL_CTX_check_private_key(context) != 1) return Unusable("TLS key", files.tls_key);
  return absl::OkStatus();
}

// The result of Wait, which calls `step` until it is done or fails and waits for the socket in between: the
// last value, and SSL_get_error.
struct StepResult {
  int value = 0, error = SSL_ERROR_NONE;
  bool late = false;
};
StepResult Wait(SSL* session, int socket, steady_clock::time_point end, const std::function<int()>& step) {
  for (;;) {
    ERR_clear_error();
    errno = 0;
    StepResult result;
    result.value = step();
    if (result.value > 0) return result;
    result.error = SSL_get_error(session, result.value);
    if (result.error != SSL_ERROR_WANT_READ && result.error != SSL_ERROR_WANT_WRITE) return result;
    const auto left = std::chrono::duration_cast<milliseconds>(end - steady_clock::now());
    pollfd ready{.fd = socket,
                 .events = static_cast<short>(result.error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT),
                 .revents = 0};
    if (left.count() > 0 && poll(&ready, 1, static_cast<int>(left.count())) == 1) continue;
    result.late = true;
    return result;
  }
}

// Returns why the server ended the session: its alert or, without one, the certificate for which it had
// asked.
TlsProblem RefusalOf(const StepResult& result, bool asked, bool shown) {
  if (result.late) return TlsProblem::kNoAnswer;
  switch (ERR_GET_REASON(ERR_peek_last_error())) {
    case SSL_R_WRONG_VERSION_NUMBER:
    case SSL_R_HTTP_REQUEST:
    case SSL_R_PACKET_LENGTH_TOO_LONG:
      return TlsProblem::kNoTls;
    case SSL_R_TLSV13_ALERT_CERTIFICATE_REQUIRED:
      return TlsProblem::kAsksForCertificate;
    case SSL_R_SSLV3_ALERT_CERTIFICATE_EXPIRED:
    case SSL_R_SSLV3_ALERT_BAD_CERTIFICATE:
    case SSL_R_SSLV3_ALERT_CERTIFICATE_UNKNOWN:
    case SSL_R_SSLV3_ALERT_UNSUPPORTED_CERTIFICATE:
    case SSL_R_TLSV1_ALERT_UNKNOWN_CA:
      return TlsProblem::kCertificateRefused;
    default:
      break;
  }
  if (!asked) return TlsProblem::kOther;
  return shown ? TlsProblem::kCertificateRefused : TlsProblem::kAsksForCertificate;
}

TlsProblem ProblemOf(long verified) {
  switch (verified) {
    case X509_V_OK:
      return TlsProblem::kNone;
    case X509_V_ERR_CERT_HAS_EXPIRED:
      return TlsProblem::kExpired;
    case X509_V_ERR_CERT_NOT_YET_VALID:
      return TlsProblem::kNotYetValid;
    default:
      return TlsProblem::kUntrusted;
  }
}

// Notes that the server asks for a certificate, also if the client has one.
int NoteRequest(SSL* session, void* asked) {
  static_cast<void>(session);
  *static_cast<bool*>(asked) = true;
  return 1;
}

}  // namespace

absl::StatusOr<TlsReport> ProbeTls(int socket, const std::string& name, const client::ServerAddress& files,
                                   milliseconds limit) {
  const steady_clock::time_point end = steady_clock::now() + limit;
  ERR_clear_error();
  const Context context(SSL_CTX_new(TLS_client_method()), &SSL_CTX_free);
  SPEXD_RETURN_IF_ERROR(UseFiles(context.get(), files));
  TlsReport report;
  const bool shown = !files.tls_cert.empty();
  SSL_CTX_set_cert_cb(context.get(), &NoteRequest, &report.asks_for_certificate);
  SSL_CTX_set_alpn_protos(context.get(), kHttp2, sizeof(kHttp2));
  const Session session(SSL_new(context.get()), &SSL_free);
  SSL_set_fd(session.get(), socket);
  // Intermediate authorities in the file are trusted, too.
  X509_VERIFY_PARAM_set_flags(SSL_get0_param(session.get()), X509_V_FLAG_PARTIAL_CHAIN);
  // Servers with several names choose their certificate by the name.
  if (!name.empty() && !IsAddress(name)) SSL_set_tlsext_host_name(session.get(), name.c_str());
  StepResult result = Wait(session.get(), socket, end, [&session] { return SSL_connect(session.get()); });
  const auto refused = [&] {
    report.problem = RefusalOf(result, report.asks_for_certificate, shown);
    report.detail = Reason();
    return report;
  };
  const Certificate certificate(SSL_get1_peer_certificate(session.get()), &X509_free);
  if (certificate != nullptr) {
    report.names = NamesOf(certificate.get());
    report.expires = TimeOf(X509_get0_notAfter(certificate.get()));
    if (!files.tls_ca.empty()) {
      const long verified = SSL_get_verify_result(session.get());
      report.problem = ProblemOf(verified);
      if (report.problem != TlsProblem::kNone) report.detail = X509_verify_cert_error_string(verified);
      if (report.problem == TlsProblem::kNone && !HasName(certificate.get(), name))
        report.problem = TlsProblem::kWrongName;
      if (report.problem != TlsProblem::kNone) return report;
    }
  }
  if (result.value <= 0) return refused();
  report.version = SSL_get_version(session.get());
  // In TLS 1.3 the server checks the client's certificate after the client's side of the handshake has ended.
  result = Wait(session.get(), socket, end,
                [&session] { return SSL_write(session.get(), kPreface, sizeof(kPreface) - 1); });
  char answer = 0;
  if (result.value > 0)
    result =
        Wait(session.get(), socket, end, [&session, &answer] { return SSL_read(session.get(), &answer, 1); });
  return result.value > 0 ? report : refused();
}

absl::StatusOr<std::time_t> ExpiryOf(const std::string& pem_file) {
  const std::unique_ptr<BIO, decltype(&BIO_free_all)> file(BIO_new_file(pem_file.c_str(), "r"),
                                                           &BIO_free_all);
  const Certificate certificate(
      file == nullptr ? nullptr : PEM_read_bio_X509(file.get(), nullptr, nullptr, nullptr), &X509_free);
  if (certificate == nullptr) return Unusable("TLS certificate", pem_file);
  return TimeOf(X509_get0_notAfter(certificate.get()));
}

}  // namespace spexd::cli
