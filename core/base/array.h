// Owning, row-major, bounds-unchecked N-dimensional arrays.
#ifndef SPEXD_CORE_BASE_ARRAY_H_
#define SPEXD_CORE_BASE_ARRAY_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "core/base/memory/array_allocator.h"

namespace spexd {

// Array<double, 2> a({rows, columns}); a(r, c) = 1. The last index runs fastest.
template <typename T, size_t N>
class Array {
 public:
  using Shape = std::array<int64_t, N>;

  Array() = default;
  explicit Array(const Shape& shape, T fill = T()) { Assign(shape, fill); }
  Array(const Array& other) { AssignFrom(other.shape_, other.data()); }
  Array(Array&& other) noexcept { *this = std::move(other); }
  Array& operator=(const Array& other) { return *this = Array(other); }
  Array& operator=(Array&& other) noexcept {
    shape_ = std::exchange(other.shape_, {});
    values_ = std::exchange(other.values_, {});
    return *this;
  }

  // Reshapes and fills. Keeps the memory if it suffices.
  void Assign(const Shape& shape, T fill = T()) {
    static_assert(std::is_arithmetic_v<T>);
    constexpr T kZero = T();
    const bool zeroed = Reshape(shape);
    if (std::memcmp(&fill, &kZero, sizeof(T)) != 0) {
      std::fill(values_.begin(), values_.end(), fill);
    } else if (!zeroed && !values_.empty()) {
      std::memset(values_.data(), 0, values_.size() * sizeof(T));
    }
  }
  // Reshapes and copies as many elements from `values`.
  void AssignFrom(const Shape& shape, const T* values) {
    Reshape(shape);
    std::copy_n(values, values_.size(), values_.data());
  }
  // Reshapes without initialising: the caller must write all elements. Returns true if all are 0.
  bool Reshape(const Shape& shape) {
    const size_t count = Count(shape);
    const bool fresh = count > values_.capacity();
    if (fresh) *this = Array();  // frees the old memory first
    values_.resize(count);
    shape_ = shape;
    return fresh && count * sizeof(T) >= ArrayAllocator<T>::kZeroedBytes;
  }

  const Shape& shape() const { return shape_; }
  int64_t shape(size_t axis) const { return shape_[axis]; }
  int64_t size() const { return static_cast<int64_t>(values_.size()); }
  bool empty() const { return values_.empty(); }

  template <typename... Index>
  T& operator()(Index... index) {
    return values_[Offset(index...)];
  }
  template <typename... Index>
  const T& operator()(Index... index) const {
    return values_[Offset(index...)];
  }

  T* data() { return values_.data(); }
  const T* data() const { return values_.data(); }
  absl::Span<T> flat() { return absl::MakeSpan(values_); }
  absl::Span<const T> flat() const { return values_; }

  // The contiguous stretch along the last axis at the given leading indices.
  template <typename... Index>
  absl::Span<T> Row(Index... index) {
    static_assert(sizeof...(Index) + 1 == N);
    return absl::MakeSpan(values_.data() + Offset(index..., 0), static_cast<size_t>(shape_[N - 1]));
  }
  template <typename... Index>
  absl::Span<const T> Row(Index... index) const {
    static_assert(sizeof...(Index) + 1 == N);
    return absl::MakeConstSpan(values_.data() + Offset(index..., 0), static_cast<size_t>(shape_[N - 1]));
  }

  friend bool operator==(const Array& a, const Array& b) {
    return a.shape_ == b.shape_ && a.values_ == b.values_;
  }

 private:
  static size_t Count(const Shape& shape) {
    size_t count = 1;
    for (int64_t extent : shape) count *= static_cast<size_t>(extent);
    return count;
  }
  template <typename... Index>
  size_t Offset(Index... index) const {
    static_assert(sizeof...(Index) == N);
    size_t offset = 0, axis = 0;
    ((offset = offset * static_cast<size_t>(shape_[axis++]) + static_cast<size_t>(index)), ...);
    return offset;
  }

  Shape shape_{};
  std::vector<T, ArrayAllocator<T>> values_;
};

}  // namespace spexd

#endif  // SPEXD_CORE_BASE_ARRAY_H_
