// The addresses of servers as a user writes them.
#ifndef SPEXD_CLIENT_CONNECTION_SERVER_ADDRESS_H_
#define SPEXD_CLIENT_CONNECTION_SERVER_ADDRESS_H_

#include <functional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace spexd::client {

// The address of one or several servers, and the files with the client's credentials.
struct ServerAddress {
  // "host:port", "unix:/path", any other gRPC target, "dns:///name:port" for all addresses of a name, or
  // several of them, separated by commas.
  std::string address;
  std::string tls_ca = {};                  // PEM file of trusted authorities; "": plain text
  std::string tls_cert = {}, tls_key = {};  // PEM files of the client's certificate, both or neither
  std::string token_file = {};              // file with a bearer token for every call; "": none
  // The W3C traceparent of the calls, which is sent with each; an invalid one is not sent.
  std::string traceparent = {};
};

// One server.
struct Endpoint {
  std::string target;    // gRPC target
  std::string tls_name;  // the name that its certificate must have; "": that of the target
};

// Returns the addresses of a name, as "192.0.2.1:port" or "[2001:db8::1]:port". Unavailable: it has none at
// present.
using Resolver =
    std::function<absl::StatusOr<std::vector<std::string>>(const std::string& host, const std::string& port)>;
absl::StatusOr<std::vector<std::string>> ResolveByDns(const std::string& host, const std::string& port);

// Returns the servers of an address, each once, in its order. Names after "dns:///" are looked up, and their
// addresses are sorted. InvalidArgument: the address is empty or has no port.
absl::StatusOr<std::vector<Endpoint>> FindServers(const std::string& address,
                                                  const Resolver& resolve = ResolveByDns);

}  // namespace spexd::client

#endif  // SPEXD_CLIENT_CONNECTION_SERVER_ADDRESS_H_
