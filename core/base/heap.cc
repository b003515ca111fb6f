#include "core/base/heap.h"

#include <malloc.h>

#include <algorithm>

#include "core/base/cpus.h"

namespace spexd {

void KeepFreedMemory() {
  constexpr int kMiB = 1 << 20;
  mallopt(M_MMAP_THRESHOLD, 32 * kMiB);  // the most that glibc takes
  mallopt(M_TRIM_THRESHOLD, 512 * kMiB);
  mallopt(M_TOP_PAD, 64 * kMiB);  // a thread's heap, too, stays when it is empty
  // Each arena keeps the most that it ever had, so a few must do for all threads.
  mallopt(M_ARENA_MAX, std::clamp(AvailableCpus(), 2, 4));
}

}  // namespace spexd
