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
  mallopt(M_MMAP_THRESHOLD, 32 * kMiB);  // the largest value that glibc accepts
  mallopt(M_TRIM_THRESHOLD, 512 * kMiB);
  mallopt(M_TOP_PAD, 64 * kMiB);  // keeps the heaps of threads, too, when they are empty
  // Each arena keeps its peak size, so all threads share a few.
  mallopt(M_ARENA_MAX, std::clamp(AvailableCpus(), 2, 4));
}

void ReturnFreedMemory() { malloc_trim(0); }

}  // namespace spexd
