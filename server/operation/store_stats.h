// The numbers of the store of detached jobs, for the metrics.
#ifndef SPEXD_SERVER_OPERATION_STORE_STATS_H_
#define SPEXD_SERVER_OPERATION_STORE_STATS_H_

#include <array>
#include <cstdint>

#include "spexd/v1/jobs.pb.h"

namespace spexd {

struct StoreStats {
  std::array<int64_t, v1::DetachedState_ARRAYSIZE> jobs = {};  // by state
  int64_t disk_bytes = 0, disk_limit_bytes = 0;
  bool disk_full = false;  // new jobs and results are refused
  int64_t expired = 0, recovered = 0, quarantined = 0, disk_errors = 0;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_OPERATION_STORE_STATS_H_
