// The first steps to a server, each with a time limit: looking up its name, and connecting to its port or
// socket.
#ifndef SPEXD_CLIENT_CLI_DOCTOR_REACH_H_
#define SPEXD_CLIENT_CLI_DOCTOR_REACH_H_

#include <chrono>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/file_descriptor.h"

namespace spexd::cli {

// Does what client::ResolveByDns does. Unavailable also if the name servers take longer than `limit`; the
// look-up then continues unattended.
absl::StatusOr<std::vector<std::string>> ResolveWithin(std::chrono::milliseconds limit,
                                                       const std::string& host, const std::string& port);

// The place to which a gRPC target leads.
struct Place {
  enum class Kind { kTcp, kUnixSocket, kOther };
  Kind kind = Kind::kOther;
  std::string host, port;  // kTcp; the host has no brackets of IPv6
  std::string path;        // kUnixSocket
};
Place PlaceOf(const std::string& target);

struct Reached {
  FileDescriptor socket;  // connected, nonblocking
  std::string address;    // "192.0.2.1:50051", or the path
};

// Returns the addresses of a TCP place, as ResolveWithin does, or the path of a Unix socket.
absl::StatusOr<std::vector<std::string>> AddressesOf(const Place& place, std::chrono::milliseconds limit);

// Connects to the first of the addresses that answers. Unavailable, or PermissionDenied for a socket: none
// answers; the message says why. REQUIRES: the place is not kOther, and the addresses are its own.
absl::StatusOr<Reached> Reach(const Place& place, const std::vector<std::string>& addresses,
                              std::chrono::milliseconds limit);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_DOCTOR_REACH_H_
