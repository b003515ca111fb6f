// An immutable array that is shared by its copies.
#ifndef SPEXD_CORE_BASE_SHARED_ARRAY_H_
#define SPEXD_CORE_BASE_SHARED_ARRAY_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/types/span.h"
#include "core/base/array.h"

namespace spexd {

// Has the reading members of Array. A default-constructed one is empty.
template <typename T, size_t N>
class SharedArray {
 public:
  SharedArray() : SharedArray(Array<T, N>()) {}
  explicit SharedArray(Array<T, N> array) : array_(std::make_shared<const Array<T, N>>(std::move(array))) {}
  operator const Array<T, N>&() const { return *array_; }  // NOLINT(google-explicit-constructor)

  const typename Array<T, N>::Shape& shape() const { return array_->shape(); }
  int64_t shape(size_t axis) const { return array_->shape(axis); }
  int64_t size() const { return array_->size(); }
  const T* data() const { return array_->data(); }
  absl::Span<const T> flat() const { return array_->flat(); }
  template <typename... Index>
  const T& operator()(Index... index) const {
    return (*array_)(index...);
  }
  template <typename... Index>
  absl::Span<const T> Row(Index... index) const {
    return array_->Row(index...);
  }

  // Whether both are copies of one array. Arrays that are not may still be equal.
  bool IsOneWith(const SharedArray& other) const { return array_ == other.array_; }

 private:
  std::shared_ptr<const Array<T, N>> array_;
};

}  // namespace spexd

#endif  // SPEXD_CORE_BASE_SHARED_ARRAY_H_
