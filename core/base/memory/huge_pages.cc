#include "core/base/memory/huge_pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace spexd {

void AdviseHugePages(void* memory, size_t bytes) {
  if (bytes < kHugePagesFrom) return;
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const size_t before = (page - reinterpret_cast<uintptr_t>(memory) % page) % page;
  madvise(static_cast<char*>(memory) + before, (bytes - before) / page * page, MADV_HUGEPAGE);
}

}  // namespace spexd
