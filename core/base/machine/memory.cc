#include "core/base/machine/memory.h"

#include <unistd.h>

#include <algorithm>

#include "core/base/machine/group_limits.h"

namespace spexd {

int64_t MachineMemory() {
  const int64_t memory = static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  const double limit = GroupLimit("memory.max").value_or(memory);
  return limit < memory ? static_cast<int64_t>(limit) : memory;
}

}  // namespace spexd
