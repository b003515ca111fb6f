#include "core/base/machine/cpus.h"

#include <sched.h>

#include <algorithm>
#include <cmath>
#include <thread>

#include "core/base/machine/group_limits.h"

namespace spexd {

int AvailableCpus() {
  cpu_set_t set;
  const int allowed = sched_getaffinity(0, sizeof(set), &set) == 0
                          ? CPU_COUNT(&set)
                          : static_cast<int>(std::thread::hardware_concurrency());
  const double limit = std::ceil(GroupLimit("cpu.max").value_or(allowed));
  return std::max(limit < allowed ? static_cast<int>(limit) : allowed, 1);
}

}  // namespace spexd
