// Lays out arrays one after the other in a block of memory: first without a block, to get its size, then with
// it.
#ifndef SPEXD_CUDA_MEMORY_CARVER_H_
#define SPEXD_CUDA_MEMORY_CARVER_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace spexd::cuda {

inline constexpr int64_t kArrayAlignment = 256;

class Carver {
 public:
  // `block`: null to count sizes only; the arrays are then also null.
  explicit Carver(std::byte* block) : block_(block) {}

  template <typename T>
  T* Take(int64_t count) {
    T* const array = block_ == nullptr ? nullptr : reinterpret_cast<T*>(block_ + end_);
    end_ +=
        (count * static_cast<int64_t>(sizeof(T)) + kArrayAlignment - 1) / kArrayAlignment * kArrayAlignment;
    most_ = std::max(most_, end_);
    return array;
  }
  // End of the last array, in bytes.
  int64_t end() const { return end_; }
  // Size of the block, in bytes.
  int64_t bytes() const { return most_; }
  // Goes back to `end`, an earlier end(). The next arrays overwrite those behind it.
  void Rewind(int64_t end) { end_ = end; }

 private:
  std::byte* const block_;
  int64_t end_ = 0, most_ = 0;
};

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_MEMORY_CARVER_H_
