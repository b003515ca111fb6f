// Whether a gRPC port is served.
#ifndef SPEXD_SERVER_FRONT_GRPC_PROBE_H_
#define SPEXD_SERVER_FRONT_GRPC_PROBE_H_

#include <chrono>
#include <string>

#include "absl/status/status.h"

namespace spexd {

// Makes a connection of its own to `address` (host:port or unix:path) and waits for gRPC's greeting there.
// Unavailable if none comes in time: a listener that no longer accepts still takes connections into its
// queue.
absl::Status ProbeGrpc(const std::string& address, std::chrono::milliseconds patience);

// The same of a port with TLS, which greets with its certificate. Nothing is verified, and no certificate is
// shown.
absl::Status ProbeTls(const std::string& address, std::chrono::milliseconds patience);

}  // namespace spexd

#endif  // SPEXD_SERVER_FRONT_GRPC_PROBE_H_
