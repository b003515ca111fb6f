// The allocator of Array, which leaves new elements unwritten.
#ifndef SPEXD_CORE_BASE_MEMORY_ARRAY_ALLOCATOR_H_
#define SPEXD_CORE_BASE_MEMORY_ARRAY_ALLOCATOR_H_

#include <cstddef>
#include <cstdlib>
#include <new>
#include <utility>

#include "core/base/memory/huge_pages.h"

namespace spexd {

// An allocator for std::vector whose `resize` does not initialise new elements. Blocks of at least
// kZeroedBytes are zero, because the kernel provides them so. Smaller blocks hold anything.
template <typename T>
struct ArrayAllocator {
  using value_type = T;
  static constexpr size_t kZeroedBytes = kHugePagesFrom;

  ArrayAllocator() = default;
  template <typename U>
  ArrayAllocator(const ArrayAllocator<U>&) {}

  T* allocate(size_t count) {
    const size_t bytes = count * sizeof(T);
    void* const memory = bytes >= kZeroedBytes ? std::calloc(1, bytes) : std::malloc(bytes);
    if (memory == nullptr) throw std::bad_alloc();
    AdviseHugePages(memory, bytes);
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, size_t) { std::free(memory); }

  template <typename U>
  void construct(U*) noexcept {}
  template <typename U, typename... Arguments>
  void construct(U* at, Arguments&&... arguments) {
    ::new (static_cast<void*>(at)) U(std::forward<Arguments>(arguments)...);
  }

  friend bool operator==(const ArrayAllocator&, const ArrayAllocator&) { return true; }
};

}  // namespace spexd

#endif  // SPEXD_CORE_BASE_MEMORY_ARRAY_ALLOCATOR_H_
