#include "client/connection/connection_error.h"

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"

namespace spexd::client {
namespace {

struct Explanation {
  const char* part;  // part of gRPC's message, in lower case; in kEnded the whole message
  const char* words;
};

constexpr char kNoGrpc[] =
    "what listens there does not speak gRPC; check the port, which must be that of spexd's --listen (50051 by "
    "default), not that of --http";
constexpr char kNoAnswer[] = "the machine does not answer; check the host, and whether a firewall lies between";
constexpr char kClosed[] =
    "the server closed the connection at once; it may use TLS (give --tls-ca), ask for a client certificate "
    "(--tls-cert and --tls-key) or have too many connections";

// Explanations for connections that could not be made. The first one that matches counts.
constexpr Explanation kFailed[] = {
    {"certificate verify failed",
     "the server's certificate is expired, or no authority in the file of --tls-ca signed it; check both"},
    {"is not in peer certificate",
     "the server's certificate is not for this name; use a name in --server that the certificate has"},
    {"wrong version number",
     "the server does not use TLS; leave out --tls-ca (and SPEXD_TLS_CA), or check the port"},
    {"handshake failed",
     "the TLS handshake failed; check that the server uses TLS, and the files of --tls-ca, --tls-cert and "
     "--tls-key"},
    {"http1.x server", kNoGrpc},
    {"parsing http/2", kNoGrpc},
    {"connection refused", "nothing listens there; check the address and its port, and that spexd runs"},
    {"no such file or directory", "there is no such socket; check its path, and that spexd runs"},
    {"permission denied", "the socket may not be opened; ask its owner for access"},
    {"timed out", kNoAnswer},
    {"no route to host", kNoAnswer},
    {"network is unreachable", kNoAnswer},
    {"socket closed", kClosed},
    {"connection reset", kClosed},
    {"broken pipe", kClosed},
};

// Explanations for connections that ended, by whole messages.
constexpr Explanation kEnded[] = {
    {"Socket closed", "the connection ended; the server was stopped or restarted, or a proxy closed it"},
    {"recvmsg:Connection reset by peer", "the connection was cut; the server was killed, or a proxy cut it"},
    {"Connection reset by peer", "the connection was cut; the server was killed, or a proxy cut it"},
    {"keepalive watchdog timeout",
     "the connection is dead: no answer to a ping; check the network and whether the server's machine runs"},
    {"Deadline Exceeded", "no answer in the time allowed; check that the address is a spexd's, and that it runs"},
};

}  // namespace

std::string ExplainConnectionError(absl::string_view message) {
  for (const Explanation& ended : kEnded) {
    if (message == ended.part) return ended.words;
  }
  if (absl::StrContains(message, "resolution failed") || absl::StrContains(message, "C-ares")) {
    return "this host name is not known; check its spelling, and the name servers of this machine";
  }
  constexpr char kAll[] = "failed to connect to all addresses";
  if (!absl::StartsWith(message, kAll)) return std::string(message);
  // TLS libraries write reasons as "wrong version number" or as "WRONG_VERSION_NUMBER".
  const std::string text = absl::StrReplaceAll(absl::AsciiStrToLower(message), {{"_", " "}});
  for (const Explanation& failed : kFailed) {
    if (absl::StrContains(text, failed.part)) return failed.words;
  }
  return absl::StrCat("cannot connect", message.substr(sizeof(kAll) - 1));
}

}  // namespace spexd::client
