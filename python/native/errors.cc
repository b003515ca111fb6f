#include "python/native/errors.h"

#include <nanobind/nanobind.h>

#include "python/native/text.h"

namespace nb = nanobind;

namespace spexd::python {

void Raise(const absl::Status& status) {
  const nb::object error =
      nb::module_::import_("spexd.errors")
          .attr("error_of")(static_cast<int>(status.code()), TextOf(std::string(status.message())));
  PyErr_SetObject(error.type().ptr(), error.ptr());
  throw nb::python_error();
}

}  // namespace spexd::python
