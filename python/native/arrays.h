// Arrays between C++ and numpy.
#ifndef SPEXD_PYTHON_NATIVE_ARRAYS_H_
#define SPEXD_PYTHON_NATIVE_ARRAYS_H_

#include <nanobind/ndarray.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/base/array.h"

namespace spexd::python {

template <typename T, size_t N>
using Numpy = nanobind::ndarray<nanobind::numpy, T, nanobind::ndim<N>>;
template <typename T, size_t N>
using Contiguous = nanobind::ndarray<const T, nanobind::ndim<N>, nanobind::c_contig, nanobind::device::cpu>;

// Returns a view of `array`, which belongs to the Python object that it is requested from
// (rv_policy::reference_internal).
template <typename T, size_t N>
Numpy<T, N> ViewOf(Array<T, N>& array) {
  size_t shape[N];
  for (size_t k = 0; k < N; ++k) shape[k] = static_cast<size_t>(array.shape(k));
  return Numpy<T, N>(array.data(), N, shape, nanobind::handle());
}

template <typename T>
Numpy<T, 1> ViewOf(std::vector<T>& values) {
  return Numpy<T, 1>(values.data(), {values.size()}, nanobind::handle());
}

// Returns a numpy array that takes over the values without a copy.
template <typename T, size_t N>
Numpy<T, N> Given(Array<T, N> array) {
  auto owned = std::make_unique<Array<T, N>>(std::move(array));
  Numpy<T, N> view = ViewOf(*owned);
  size_t shape[N];
  for (size_t k = 0; k < N; ++k) shape[k] = view.shape(k);
  const nanobind::capsule owner(owned.get(),
                                [](void* values) noexcept { delete static_cast<Array<T, N>*>(values); });
  return Numpy<T, N>(owned.release()->data(), N, shape, owner);
}

template <typename T, size_t N>
Array<T, N> CopyOf(const Contiguous<T, N>& values) {
  typename Array<T, N>::Shape shape;
  for (size_t k = 0; k < N; ++k) shape[k] = static_cast<int64_t>(values.shape(k));
  Array<T, N> array;
  array.AssignFrom(shape, values.data());
  return array;
}

}  // namespace spexd::python

#endif  // SPEXD_PYTHON_NATIVE_ARRAYS_H_
