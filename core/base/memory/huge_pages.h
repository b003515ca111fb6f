// Huge pages for large blocks of memory.
#ifndef SPEXD_CORE_BASE_MEMORY_HUGE_PAGES_H_
#define SPEXD_CORE_BASE_MEMORY_HUGE_PAGES_H_

#include <cstddef>

namespace spexd {

// The least size of a block that gets huge pages. glibc maps each block of at least this size separately.
// Smaller blocks may come from its heap and be used again.
inline constexpr size_t kHugePagesFrom = size_t{32} << 20;

// Asks the kernel to back memory with huge pages, if there are at least kHugePagesFrom bytes of it. The
// memory must be untouched. A frame's 200 MB in pages of 4 kB would cause page faults that cost more than
// decoding the frame. This is only advice and cannot fail.
void AdviseHugePages(void* memory, size_t bytes);

}  // namespace spexd

#endif  // SPEXD_CORE_BASE_MEMORY_HUGE_PAGES_H_
