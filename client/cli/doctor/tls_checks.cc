#include "client/cli/doctor/tls_checks.h"

#include <ctime>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"

namespace spexd::cli {
namespace {

constexpr std::time_t kDay = 24 * 3600, kSoon = 14 * kDay;

std::string Date(std::time_t time) {
  return absl::FormatTime("%Y-%m-%d %H:%M UTC", absl::FromTimeT(time), absl::UTCTimeZone());
}

// Returns the finding of a problem: what is wrong, and what to do.
Finding Problem(const TlsReport& tls, const std::string& name, const client::ServerAddress& files) {
  const auto bad = [](const std::string& found, std::string next) {
    return Bad("tls", absl::FailedPreconditionError(found), std::move(next));
  };
  switch (tls.problem) {
    case TlsProblem::kNoTls:
      return bad("the server does not use TLS", "leave out --tls-ca (and SPEXD_TLS_CA), or check the port");
    case TlsProblem::kUntrusted:
      return bad(absl::StrCat("no authority in ", files.tls_ca, " signed the server's certificate (",
                              tls.detail, ")"),
                 "ask the server's operator for the file of its authorities, for --tls-ca");
    case TlsProblem::kExpired:
      return bad(absl::StrCat("the server's certificate expired on ", Date(tls.expires)),
                 "the server's operator must renew it (--tls-certificate); check this machine's clock, too");
    case TlsProblem::kNotYetValid:
      return bad("the server's certificate is not valid yet",
                 "check the clocks of this machine and of the authority");
    case TlsProblem::kWrongName:
      return bad(absl::StrCat("the server's certificate is not for ", name, "; its names are ", tls.names),
                 "use one of these names in --server, or have a certificate with this name made");
    case TlsProblem::kAsksForCertificate:
      return bad("the server asks for a client certificate, and none is given",
                 "give --tls-cert and --tls-key, signed by an authority of the server's --tls-client-ca");
    case TlsProblem::kCertificateRefused:
      return bad(absl::StrCat("the server refuses the client's certificate ", files.tls_cert),
                 "it must be signed by an authority of the server's --tls-client-ca, and be valid now");
    case TlsProblem::kNoAnswer:
      return Bad("tls", absl::UnavailableError("the server does not answer the handshake in time"),
                 "check that the port is a spexd's, and that the server is not overloaded");
    default:
      return Bad("tls",
                 absl::UnavailableError(
                     absl::StrCat("the handshake failed", tls.detail.empty() ? "" : ": ", tls.detail)),
                 "check that the port is that of a spexd with TLS, without TLS leave out --tls-ca");
  }
}

Finding Expiry(const char* whose, const std::string& names, std::time_t expires, const char* next) {
  const std::string found =
      absl::StrCat("the ", whose, " certificate ", names, " is valid until ", Date(expires));
  return expires - std::time(nullptr) < kSoon ? Doubtful("certificate", found, next)
                                              : Good("certificate", found);
}

// Checks the client's own certificate. The server will refuse an expired one.
Finding OwnCertificate(const std::string& file) {
  const absl::StatusOr<std::time_t> expires = ExpiryOf(file);
  if (!expires.ok()) return Bad("certificate", expires.status(), "check --tls-cert and SPEXD_TLS_CERT");
  if (*expires < std::time(nullptr)) {
    return Bad("certificate",
               absl::FailedPreconditionError(
                   absl::StrCat("the client's certificate ", file, " expired on ", Date(*expires))),
               "have it renewed, or give another one (--tls-cert); check this machine's clock, too");
  }
  return Expiry("client's", file, *expires, "have it renewed soon");
}

}  // namespace

FindingList CheckTls(int socket, const std::string& name, const client::ServerAddress& files,
                     std::chrono::milliseconds limit) {
  FindingList findings;
  if (!files.tls_cert.empty()) {
    findings.push_back(OwnCertificate(files.tls_cert));
    if (findings.back().state == FindingState::kError) return findings;
  }
  const absl::StatusOr<TlsReport> tls = ProbeTls(socket, name, files, limit);
  if (!tls.ok()) {
    findings.push_back(Bad("tls", tls.status(), "check --tls-ca, --tls-cert and --tls-key"));
    return findings;
  }
  if (tls->problem != TlsProblem::kNone) {
    findings.push_back(Problem(*tls, name, files));
    return findings;
  }
  findings.push_back(Good(
      "tls", absl::StrCat(tls->version,
                          tls->asks_for_certificate ? ", the server asked for a client certificate" : "")));
  findings.push_back(Expiry("server's", absl::StrCat("(", tls->names, ")"), tls->expires,
                            "the server's operator must renew it soon (--tls-certificate)"));
  return findings;
}

}  // namespace spexd::cli
