// The first steps to a server, each within a time: the addresses of its name, and its port or socket.
#ifndef SPEXD_CLIENT_CLI_DOCTOR_REACH_H_
#define SPEXD_CLIENT_CLI_DOCTOR_REACH_H_

#include <chrono>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/file_descriptor.h"

namespace spexd::cli {

// As client::ResolveByDns, but Unavailable if the name servers take longer than `limit`; the look-up is then
// left to itself.
absl::StatusOr<std::vector<std::string>> ResolveWithin(std::chrono::milliseconds limit,
                                                       const std::string& host, const std::string& port);

// Where a target of gRPC leads.
struct Place {
  enum class Kind { kTcp, kUnixSocket, kOther };
  Kind kind = Kind::kOther;
  std::string host, port;  // kTcp; the host without the brackets of IPv6
  std::string path;        // kUnixSocket
};
Place PlaceOf(const std::string& target);

struct Reached {
  FileDescriptor socket;  // connected, does not block
  std::string address;    // "192.0.2.1:50051", or the path
};

// The addresses of a TCP place, as ResolveWithin; of a socket its path.
absl::StatusOr<std::vector<std::string>> AddressesOf(const Place& place, std::chrono::milliseconds limit);

// Connects to the first of the place's addresses that answers. Unavailable, or PermissionDenied for a socket,
// tells why none does. REQUIRES: a place that is not kOther, and its addresses.
absl::StatusOr<Reached> Reach(const Place& place, const std::vector<std::string>& addresses,
                              std::chrono::milliseconds limit);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_CLI_DOCTOR_REACH_H_
