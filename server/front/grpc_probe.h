// Probes of the gRPC port.
#ifndef SPEXD_SERVER_FRONT_GRPC_PROBE_H_
#define SPEXD_SERVER_FRONT_GRPC_PROBE_H_

#include <chrono>
#include <string>

#include "absl/status/status.h"

namespace spexd {

// Connects to `address` (host:port or unix:path) and waits for gRPC's greeting. Unavailable: none comes in
// `patience`. (A connection alone proves nothing, because the kernel queues connections for a listener that
// does not accept any.)
absl::Status ProbeGrpc(const std::string& address, std::chrono::milliseconds patience);

// Does the same for a port with TLS, which greets with its certificate. The certificate is not verified, and
// no client certificate is sent.
absl::Status ProbeTls(const std::string& address, std::chrono::milliseconds patience);

}  // namespace spexd

#endif  // SPEXD_SERVER_FRONT_GRPC_PROBE_H_
