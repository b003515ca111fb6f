#include "core/base/memory/heap.h"

#include <malloc.h>

#include <algorithm>

#include "core/base/machine/cpus.h"

namespace spexd {

OutsizeWork::~OutsizeWork() {
  if (bytes_ > usual_bytes_) ReturnFreedMemory();
}

void KeepFreedMemory() {
  constexpr int kMiB = 1 << 20;
  mallopt(M_MMAP_THRESHOLD, 32 * kMiB);  // the most that glibc takes
  mallopt(M_TRIM_THRESHOLD, 512 * kMiB);
  mallopt(M_TOP_PAD, 64 * kMiB);  // a thread's heap, too, stays when it is empty
  // Each arena keeps the most that it ever had, so a few must do for all threads.
  mallopt(M_ARENA_MAX, std::clamp(AvailableCpus(), 2, 4));
}

void ReturnFreedMemory() { malloc_trim(0); }

}  // namespace spexd
