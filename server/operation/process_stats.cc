#include "server/operation/process_stats.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <system_error>

namespace spexd {
namespace {

double ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  double total = 0, resident = 0;
  statm >> total >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Returns the number of entries of a folder; 0 if there is no descriptor to open it.
int EntriesOf(const char* folder) {
  std::error_code error;
  std::filesystem::directory_iterator entries(folder, error);
  int count = 0;
  for (; !error && entries != std::filesystem::directory_iterator(); entries.increment(error)) ++count;
  return count;
}

}  // namespace

ProcessStats ReadProcessStats() {
  rlimit limit{};
  getrlimit(RLIMIT_NOFILE, &limit);
  return {.resident_bytes = ResidentBytes(),
          .cpu_seconds = CpuSeconds(),
          .threads = EntriesOf("/proc/self/task"),
          .open_descriptors = EntriesOf("/proc/self/fd"),
          .max_descriptors = static_cast<double>(limit.rlim_cur)};
}

}  // namespace spexd
