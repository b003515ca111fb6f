// The amount of memory that a process may use.
#ifndef SPEXD_CORE_BASE_MACHINE_MEMORY_H_
#define SPEXD_CORE_BASE_MACHINE_MEMORY_H_

#include <cstdint>

namespace spexd {

// Bytes of the machine's memory, or the limit of this process's control group if that is lower (see
// GroupLimit).
int64_t MachineMemory();

}  // namespace spexd

#endif  // SPEXD_CORE_BASE_MACHINE_MEMORY_H_
