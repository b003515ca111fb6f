#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <utility>

#include "absl/strings/str_format.h"
#include "core/base/machine/cpus.h"
#include "core/base/status_macros.h"
#include "core/fits/hdu/source.h"
#include "core/fits/moved_psf_writer.h"
#include "core/model/traces/trace_shifts.h"
#include "python/native/arrays.h"
#include "python/native/bind.h"
#include "python/native/call.h"
#include "python/native/errors.h"
#include "python/native/traces/measure.h"

namespace nb = nanobind;

namespace spexd::python {
namespace {

using Coefficients = Contiguous<double, 2>;

std::string PathFrom(const nb::bytes& bytes) { return std::string(bytes.c_str(), bytes.size()); }

// Returns a copy, None for an empty array.
nb::object ArrayOrNone(const Array<double, 2>& values) {
  return values.empty() ? nb::none() : nb::cast(Given(Array<double, 2>(values)));
}

void BindAxis(nb::module_& module) {
  nb::class_<AxisShifts>(module, "AxisShifts")
      .def(nb::init<>())
      .def_prop_rw(
          "status", [](const AxisShifts& axis) { return ShiftStatusName(axis.status); },
          [](AxisShifts& axis, const std::string& name) {
            axis.status = ValueOrRaise(ParseShiftStatus(name));
          })
      .def_prop_rw(
          "series", [](const AxisShifts& axis) { return ArrayOrNone(axis.series); },
          [](AxisShifts& axis, const Coefficients& series) { axis.series = CopyOf<double, 2>(series); })
      .def_prop_rw(
          "covariance", [](const AxisShifts& axis) { return ArrayOrNone(axis.covariance); },
          [](AxisShifts& axis, const Coefficients& given) { axis.covariance = CopyOf<double, 2>(given); })
      .def_rw("corner_error", &AxisShifts::corner_error)
      .def_rw("mean", &AxisShifts::mean)
      .def_rw("min", &AxisShifts::min)
      .def_rw("max", &AxisShifts::max)
      .def_rw("used", &AxisShifts::used)
      .def_rw("clipped", &AxisShifts::clipped);
}

void BindReport(nb::module_& module) {
  nb::class_<TraceReport>(module, "TraceReport")
      .def(nb::init<>())
      .def_prop_rw(
          "x", [](const TraceReport& report) { return report.shifts.x; },
          [](TraceReport& report, const AxisShifts& axis) { report.shifts.x = axis; })
      .def_prop_rw(
          "y", [](const TraceReport& report) { return report.shifts.y; },
          [](TraceReport& report, const AxisShifts& axis) { report.shifts.y = axis; })
      .def_prop_rw(
          "reason", [](const TraceReport& report) { return report.shifts.reason; },
          [](TraceReport& report, const std::string& reason) { report.shifts.reason = reason; })
      .def_prop_rw(
          "passes", [](const TraceReport& report) { return report.shifts.passes; },
          [](TraceReport& report, int passes) { report.shifts.passes = passes; })
      .def_prop_rw(
          "lines", [](const TraceReport& report) { return report.shifts.lines; },
          [](TraceReport& report, int lines) { report.shifts.lines = lines; })
      .def_rw("moved", &TraceReport::moved)
      .def_rw("reference", &TraceReport::reference)
      .def_rw("wave_min", &TraceReport::wave_min)
      .def_rw("wave_max", &TraceReport::wave_max)
      .def_rw("u", &TraceReport::u);
}

absl::Status WriteMoved(const std::string& psf, const TraceReport& report, const std::string& path,
                        const std::string& image, const std::stop_token& stop) {
  SPEXD_ASSIGN_OR_RETURN(const Source source, Source::FromFile(psf, {.stop = stop}));
  return WriteMovedPsf(source, report, path, stop, image);
}

}  // namespace

void BindTraces(nb::module_& module) {
  BindAxis(module);
  BindReport(module);
  module.def(
      "measure_traces",
      [](const Job& job, int threads) {
        return ValueOrRaise(RunWithSignals([&](const std::stop_token& stop) {
          return MeasureJobTraces(job, threads > 0 ? threads : AvailableCpus(), stop);
        }));
      },
      nb::arg("job"), nb::arg("threads"));
  module.def(
      "shift_psf",
      [](const LoadedPsf& psf, const Coefficients& x, const Coefficients& y) {
        return ValueOrRaise(ShiftPsf(psf, CopyOf<double, 2>(x), CopyOf<double, 2>(y)));
      },
      nb::arg("psf"), nb::arg("x"), nb::arg("y"));
  module.def(
      "write_moved_psf",
      [](const nb::bytes& psf, const TraceReport& report, const nb::bytes& path, const std::string& image) {
        RaiseIfError(
            RunWithSignals([&, from = PathFrom(psf), to = PathFrom(path)](const std::stop_token& stop) {
              return WriteMoved(from, report, to, image, stop);
            }));
      },
      nb::arg("psf"), nb::arg("report"), nb::arg("path"), nb::arg("image"));
}

}  // namespace spexd::python
