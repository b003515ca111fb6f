// How the process's heap treats freed memory.
#ifndef SPEXD_CORE_BASE_HEAP_H_
#define SPEXD_CORE_BASE_HEAP_H_

namespace spexd {

// Keeps blocks below 32 MiB for the next frame instead of returning them to the kernel: in a virtual machine
// taking them again, a fault for each 4 kB, costs several times what is done with them. What stays is at most
// four times what was in use at once: each of glibc's arenas, four here, keeps the most that it had. For
// main(), before other threads start.
void KeepFreedMemory();

}  // namespace spexd

#endif  // SPEXD_CORE_BASE_HEAP_H_
