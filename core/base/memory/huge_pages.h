// Large memory in large pages.
#ifndef SPEXD_CORE_BASE_MEMORY_HUGE_PAGES_H_
#define SPEXD_CORE_BASE_MEMORY_HUGE_PAGES_H_

#include <cstddef>

namespace spexd {

// glibc maps each block of at least this size separately. Smaller blocks may come from its heap and be used
// again.
inline constexpr size_t kHugePagesFrom = size_t{32} << 20;

// Asks the kernel to back memory that nobody has touched yet with huge pages, if there are kHugePagesFrom
// bytes of it. A frame's 200 MB in pages of 4 kB cost more than decoding them: a fault for each. Only advice:
// nothing fails.
void AdviseHugePages(void* memory, size_t bytes);

}  // namespace spexd

#endif  // SPEXD_CORE_BASE_MEMORY_HUGE_PAGES_H_
