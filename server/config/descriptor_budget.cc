#include "server/config/descriptor_budget.h"

#include <sys/resource.h>

#include <algorithm>

namespace spexd {
namespace {

constexpr int64_t kMaxDescriptors = 1000000;
constexpr int64_t kUnknownLimit = 1024;  // the usual soft limit
constexpr int64_t kReserve = 128, kReserveOfAJob = 8;
constexpr int64_t kMaxHttpConnections = 256;

}  // namespace

PortShares ShareDescriptors(int64_t descriptors, int max_running_jobs) {
  const int64_t reserve = std::min(descriptors / 2, kReserve + kReserveOfAJob * max_running_jobs);
  const int64_t connections = descriptors - reserve;
  const int64_t http = std::clamp(connections / 4, int64_t{1}, kMaxHttpConnections);
  return {.grpc = static_cast<int>(std::max(connections - http, int64_t{1})), .http = static_cast<int>(http)};
}

int64_t DescriptorLimit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return kUnknownLimit;
  return static_cast<int64_t>(std::min<rlim_t>(limit.rlim_cur, kMaxDescriptors));
}

}  // namespace spexd
