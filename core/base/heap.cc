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
  // Threads come and go with jobs: those that follow find what the former left.
  mallopt(M_ARENA_MAX, std::max(2, AvailableCpus()));
}

}  // namespace spexd
