#include "client/connection/credentials.h"

#include <arpa/inet.h>

#include <algorithm>
#include <cstdint>
#include <fstream>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"

namespace spexd::client {
namespace {

constexpr int64_t kMaxFileBytes = 1 << 20;
constexpr size_t kMaxTokenBytes = 4096;

absl::StatusOr<std::string> ReadFile(const char* field, const std::string& path) {
  std::ifstream file(path);
  std::string text(kMaxFileBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.is_open() || file.bad() || file.gcount() == 0) {
    return absl::InvalidArgumentError(absl::StrCat(field, " \"", path, "\" cannot be read, or is empty"));
  }
  if (file.gcount() > kMaxFileBytes) {
    return absl::InvalidArgumentError(
        absl::StrCat(field, " \"", path, "\" has more than ", kMaxFileBytes, " bytes"));
  }
  text.resize(static_cast<size_t>(file.gcount()));
  return text;
}

// Whether the address is a loopback IP address with a port ("127.0.0.1:port"). The host is parsed, because
// names of other machines may also begin with 127.
bool IsLoopbackIp(const std::string& address) {
  const std::string host = address.substr(0, address.rfind(':'));
  in_addr ip = {};
  return absl::StartsWith(host, "127.") && inet_pton(AF_INET, host.c_str(), &ip) == 1;
}

}  // namespace

absl::StatusOr<std::string> ReadToken(const std::string& path) {
  if (path.empty()) return "";
  SPEXD_ASSIGN_OR_RETURN(const std::string text, ReadFile("token file", path));
  const std::string token(absl::StripAsciiWhitespace(text));
  const bool good =
      !token.empty() && token.size() <= kMaxTokenBytes &&
      std::all_of(token.begin(), token.end(), [](unsigned char c) { return absl::ascii_isgraph(c); });
  if (good) return token;
  return absl::InvalidArgumentError(absl::StrCat("token file \"", path, "\" must have one token of 1 to ",
                                                 kMaxTokenBytes, " printable characters"));
}

bool StaysOnThisMachine(const std::string& address) {
  for (const char* prefix : {"unix:", "unix-abstract:", "localhost:", "[::1]:"}) {
    if (absl::StartsWith(address, prefix)) return true;
  }
  return IsLoopbackIp(address);
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> MakeCredentials(const ServerAddress& server) {
  if (server.tls_cert.empty() != server.tls_key.empty()) {
    return absl::InvalidArgumentError("a TLS certificate and its key must be given together");
  }
  if (server.tls_ca.empty()) {
    if (!server.tls_cert.empty()) {
      return absl::InvalidArgumentError("a TLS certificate needs the authorities that signed the server's");
    }
    return grpc::InsecureChannelCredentials();
  }
  grpc::SslCredentialsOptions tls;
  SPEXD_ASSIGN_OR_RETURN(tls.pem_root_certs, ReadFile("TLS authorities", server.tls_ca));
  if (!server.tls_cert.empty()) {
    SPEXD_ASSIGN_OR_RETURN(tls.pem_cert_chain, ReadFile("TLS certificate", server.tls_cert));
    SPEXD_ASSIGN_OR_RETURN(tls.pem_private_key, ReadFile("TLS key", server.tls_key));
  }
  return grpc::SslCredentials(tls);
}

}  // namespace spexd::client
