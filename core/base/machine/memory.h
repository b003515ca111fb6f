// Size of the memory that a process can use.
#ifndef SPEXD_CORE_BASE_MACHINE_MEMORY_H_
#define SPEXD_CORE_BASE_MACHINE_MEMORY_H_

#include <cstdint>

namespace spexd {

// Bytes of memory of the machine, or of this process's control group if that has fewer: see GroupLimit.
int64_t MachineMemory();

}  // namespace spexd

#endif  // SPEXD_CORE_BASE_MACHINE_MEMORY_H_
