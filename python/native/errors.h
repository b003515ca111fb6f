// Statuses as Python exceptions.
#ifndef SPEXD_PYTHON_NATIVE_ERRORS_H_
#define SPEXD_PYTHON_NATIVE_ERRORS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace spexd::python {

// Throws the exception of spexd.errors for the status's code. REQUIRES: an error; the GIL.
[[noreturn]] void Raise(const absl::Status& status);

inline void RaiseIfError(const absl::Status& status) {
  if (!status.ok()) Raise(status);
}

template <typename T>
T ValueOrRaise(absl::StatusOr<T> value) {
  if (!value.ok()) Raise(value.status());
  return *std::move(value);
}

}  // namespace spexd::python

#endif  // SPEXD_PYTHON_NATIVE_ERRORS_H_
