// spexd._native: the engine and the files of core/ for Python. It is private to the package, whose modules
// provide the documented interface.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string_view.h>

#include "core/base/build_version.h"
#include "core/base/digest/crc32c.h"
#include "core/base/version.h"
#include "python/native/bind.h"

namespace nb = nanobind;

NB_MODULE(_native, module) {
  module.attr("version") = spexd::kVersion;
  module.def(
      "crc32c",
      [](const nb::bytes& bytes, uint32_t crc) {
        return spexd::ExtendCrc32c(crc, {bytes.c_str(), bytes.size()});
      },
      nb::arg("bytes"), nb::arg("crc") = 0, "CRC-32C of what crc covers followed by bytes.");
  spexd::python::BindFrames(module);
  spexd::python::BindJobs(module);
  spexd::python::BindTraces(module);
  spexd::python::BindEngines(module);
  spexd::python::BindProducts(module);
  spexd::python::BindSpectra(module);
  spexd::python::BindSums(module);
}
