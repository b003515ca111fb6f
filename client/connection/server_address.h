// Which servers to use, as a user writes them.
#ifndef SPEXD_CLIENT_CONNECTION_SERVER_ADDRESS_H_
#define SPEXD_CLIENT_CONNECTION_SERVER_ADDRESS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace spexd::client {

// Servers, and files that say whom this side trusts and who it is.
struct ServerAddress {
  // "host:port", "unix:/path", any other gRPC target, "dns:///name:port" for all addresses of a name, or
  // several of them, separated by commas.
  std::string address;
  std::string tls_ca = {};                  // PEM file of authorities; "": plain text
  std::string tls_cert = {}, tls_key = {};  // PEM files of this side's certificate, both or neither
  std::string token_file = {};              // with a bearer token, sent with every call; "": none
  // W3C traceparent of the trace that the calls belong to, sent with each; one that is not valid is not sent.
  std::string traceparent = {};
};

// One server.
struct Endpoint {
  std::string target;    // for gRPC
  std::string tls_name;  // name that its certificate must have; "": the target's own
};

// The addresses of a name, as "192.0.2.1:port" or "[2001:db8::1]:port". Unavailable if it has none now.
using Resolver =
    std::function<absl::StatusOr<std::vector<std::string>>(const std::string& host, const std::string& port)>;
absl::StatusOr<std::vector<std::string>> ResolveByDns(const std::string& host, const std::string& port);

// The servers of an address, each once, in its order. Names after "dns:///" are looked up now; their
// addresses are sorted.
// InvalidArgument for an address that is empty or has no port.
absl::StatusOr<std::vector<Endpoint>> FindServers(const std::string& address,
                                                  const Resolver& resolve = ResolveByDns);

}  // namespace spexd::client

#endif  // SPEXD_CLIENT_CONNECTION_SERVER_ADDRESS_H_
