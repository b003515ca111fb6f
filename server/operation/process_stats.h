// The kernel's statistics of this process.
#ifndef SPEXD_SERVER_OPERATION_PROCESS_STATS_H_
#define SPEXD_SERVER_OPERATION_PROCESS_STATS_H_

namespace spexd {

struct ProcessStats {
  double resident_bytes = 0;
  double cpu_seconds = 0;  // user and system, of all threads since the start
  int threads = 0;
  int open_descriptors = 0;
  double max_descriptors = 0;  // the limit of open_descriptors
};

ProcessStats ReadProcessStats();

}  // namespace spexd

#endif  // SPEXD_SERVER_OPERATION_PROCESS_STATS_H_
