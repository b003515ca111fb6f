#include "core/base/threads/cpus.h"

#include <sched.h>

#include <algorithm>
#include <thread>

namespace spexd {

int AvailableCpus() {
  cpu_set_t set;
  if (sched_getaffinity(0, sizeof(set), &set) == 0) return std::max(CPU_COUNT(&set), 1);
  return static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
}

}  // namespace spexd
