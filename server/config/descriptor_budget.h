// The division of the process's file descriptors between its two ports and everything else.
#ifndef SPEXD_SERVER_CONFIG_DESCRIPTOR_BUDGET_H_
#define SPEXD_SERVER_CONFIG_DESCRIPTOR_BUDGET_H_

#include <cstdint>

namespace spexd {

// Connections that each port may hold at once.
struct PortShares {
  int grpc = 0, http = 0;
};

// Returns the shares for a limit of `descriptors`. A reserve is kept for everything but connections: 128
// descriptors for devices, libraries and the jobs folder, and 8 for the files of each running job, but at
// most half of all. The HTTP port gets a quarter of the rest, at most 256, and the gRPC port what is left.
PortShares ShareDescriptors(int64_t descriptors, int max_running_jobs);

// The process's limit of file descriptors (RLIMIT_NOFILE), at most a million.
int64_t DescriptorLimit();

}  // namespace spexd

#endif  // SPEXD_SERVER_CONFIG_DESCRIPTOR_BUDGET_H_
