// Memory for std::vector that is zero before anybody writes it: large blocks come so from the kernel.
#ifndef SPEXD_CORE_BASE_ZEROED_ALLOCATOR_H_
#define SPEXD_CORE_BASE_ZEROED_ALLOCATOR_H_

#include <cstddef>
#include <cstdlib>
#include <new>
#include <utility>

#include "core/base/huge_pages.h"

namespace spexd {

// Elements made without a value stay as the memory is, so a vector may grow by `resize(count)` only into
// memory that it has not used before.
template <typename T>
struct ZeroedAllocator {
  using value_type = T;

  ZeroedAllocator() = default;
  template <typename U>
  ZeroedAllocator(const ZeroedAllocator<U>&) {}

  T* allocate(size_t count) {
    void* const memory = std::calloc(count, sizeof(T));
    if (memory == nullptr) throw std::bad_alloc();
    AdviseHugePages(memory, count * sizeof(T));
    return static_cast<T*>(memory);
  }
  void deallocate(T* memory, size_t) { std::free(memory); }

  template <typename U>
  void construct(U*) noexcept {}
  template <typename U, typename... Arguments>
  void construct(U* at, Arguments&&... arguments) {
    ::new (static_cast<void*>(at)) U(std::forward<Arguments>(arguments)...);
  }

  friend bool operator==(const ZeroedAllocator&, const ZeroedAllocator&) { return true; }
};

}  // namespace spexd

#endif  // SPEXD_CORE_BASE_ZEROED_ALLOCATOR_H_
