// Scratch memory for vector code. It is aligned to a cache line, only grows and is not initialised.
#ifndef SPEXD_CORE_BASE_MEMORY_ALIGNED_BUFFER_H_
#define SPEXD_CORE_BASE_MEMORY_ALIGNED_BUFFER_H_

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <new>
#include <type_traits>

namespace spexd {

template <typename T>
class AlignedBuffer {
  static_assert(std::is_trivial_v<T>);

 public:
  // Makes room for `count` elements. The contents are lost when the memory grows.
  T* Reserve(size_t count) {
    if (count > capacity_) {
      memory_.reset();
      capacity_ = 0;
      const size_t bytes = (count * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment;
      memory_.reset(static_cast<T*>(std::aligned_alloc(kAlignment, bytes)));
      if (memory_ == nullptr) throw std::bad_alloc();
      capacity_ = count;
    }
    return memory_.get();
  }
  T* data() { return memory_.get(); }
  const T* data() const { return memory_.get(); }
  size_t bytes() const { return capacity_ * sizeof(T); }

 private:
  static constexpr size_t kAlignment = 64;
  struct Free {
    void operator()(T* memory) const { std::free(memory); }
  };
  std::unique_ptr<T, Free> memory_;
  size_t capacity_ = 0;
};

}  // namespace spexd

#endif  // SPEXD_CORE_BASE_MEMORY_ALIGNED_BUFFER_H_
