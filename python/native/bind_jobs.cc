#include <nanobind/ndarray.h>
#include <nanobind/stl/array.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <array>
#include <iterator>
#include <stop_token>
#include <utility>
#include <variant>

#include "core/base/status_macros.h"
#include "core/fits/readers.h"
#include "core/frame/job_options.h"
#include "python/native/bind.h"
#include "python/native/call.h"
#include "python/native/errors.h"
#include "python/native/job.h"
#include "python/native/text.h"

namespace nb = nanobind;

namespace spexd::python {
namespace {

template <typename T>
using Plane = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

absl::StatusOr<LoadedPsf> LoadPsf(const std::string& path, const std::stop_token& stop) {
  SPEXD_ASSIGN_OR_RETURN(const Source source, Source::FromFile(path, {.stop = stop}));
  SPEXD_ASSIGN_OR_RETURN(Psf psf, ReadPsf(source, stop));
  return LoadedPsf{path, std::make_shared<const Psf>(std::move(psf))};
}

void BindPsfs(nb::module_& module) {
  nb::class_<LoadedPsf>(module, "Psf")
      .def_prop_ro("name", [](const LoadedPsf& psf) { return TextOf(psf.name); })
      .def_prop_ro("content_hash", [](const LoadedPsf& psf) { return psf.psf->content_hash; })
      .def_prop_ro("fibres", [](const LoadedPsf& psf) { return psf.psf->fibres; })
      .def_prop_ro("rows", [](const LoadedPsf& psf) { return psf.psf->rows; })
      .def_prop_ro("columns", [](const LoadedPsf& psf) { return psf.psf->columns; })
      .def_prop_ro("wave_min", [](const LoadedPsf& psf) { return psf.psf->wave_min; })
      .def_prop_ro("wave_max", [](const LoadedPsf& psf) { return psf.psf->wave_max; });
  module.def("load_psf", [](const nb::bytes& path) {
    const std::string name(path.c_str(), path.size());
    return ValueOrRaise(RunWithSignals([&](const std::stop_token& stop) { return LoadPsf(name, stop); }));
  });
}

// Sets the arrays, which must outlive the job's run; the Python side keeps them alive.
void SetArrays(Job& job, const Plane<float>& pixels, const Plane<float>& ivar,
               const std::optional<Plane<int32_t>>& mask, const nb::list& cards) {
  ImageArrays arrays;
  arrays.planes.rows = static_cast<int>(pixels.shape(0));
  arrays.planes.columns = static_cast<int>(pixels.shape(1));
  arrays.planes.pixels = reinterpret_cast<const char*>(pixels.data());
  arrays.planes.ivar = reinterpret_cast<const char*>(ivar.data());
  if (mask.has_value()) arrays.planes.mask = reinterpret_cast<const char*>(mask->data());
  arrays.cards = CardsOf(cards);
  job.files.arrays = std::move(arrays);
}

// Names of the types of JobOption::Member, in the same order.
constexpr const char* kKinds[] = {"int", "int", "float", "float", "bool", "grid", "axes", "degrees"};
static_assert(std::size(kKinds) == std::variant_size_v<JobOption::Member>);

void BindOptions(nb::module_& module) {
  nb::class_<JobOption>(module, "JobOption", "An option of a job, by its names (core/frame/job_options.h).")
      .def_prop_ro("name", [](const JobOption& option) { return option.name; })
      .def_prop_ro("field", [](const JobOption& option) { return option.field; })
      .def_prop_ro("flag", [](const JobOption& option) { return option.flag; })
      .def_prop_ro("short_flag", [](const JobOption& option) { return option.short_flag; })
      .def_prop_ro("help", [](const JobOption& option) { return option.help; })
      .def_prop_ro(
          "kind", [](const JobOption& option) { return kKinds[option.value.index()]; },
          "Either of bool, int, float, grid, axes and degrees.")
      .def_ro("negated", &JobOption::negated)
      .def_ro("for_server_only", &JobOption::for_server_only)
      .def(
          "check", [](const JobOption& option, double number) { RaiseIfError(option.Check(number)); },
          "Raises InvalidArgumentError for a number beyond the limits.");
  module.def("job_options",
             [] { return std::vector<JobOption>(std::begin(kJobOptions), std::end(kJobOptions)); });
}

template <typename T>
void BindOption(const char* name, T JobSpec::*member, nb::class_<JobSpec>& spec) {
  spec.def_rw(name, member, nb::arg().none());
}

void BindOption(const char* name, TraceAxes JobSpec::*member, nb::class_<JobSpec>& spec) {
  spec.def_prop_rw(
      name, [member](const JobSpec& self) { return kTraceAxesNames[static_cast<size_t>(self.*member)]; },
      [member](JobSpec& self, const std::string& axes) {
        self.*member = ValueOrRaise(ParseTraceAxes(axes));
      });
}

// Binds the degrees of x over fibres and over wavelength, and those of y.
void BindOption(const char* name, TraceDegrees JobSpec::*member, nb::class_<JobSpec>& spec) {
  spec.def_prop_rw(
      name,
      [member](const JobSpec& self) {
        const TraceDegrees& degrees = self.*member;
        return nb::make_tuple(degrees.x[0], degrees.x[1], degrees.y[0], degrees.y[1]);
      },
      [member](JobSpec& self, const std::array<int, 4>& given) {
        const TraceDegrees degrees = {.x = {given[0], given[1]}, .y = {given[2], given[3]}};
        RaiseIfError(CheckTraceDegrees(degrees));
        self.*member = degrees;
      });
}

// Binds the options by their names, and the fields that are not options of a job on a server.
void BindSpec(nb::module_& module) {
  nb::class_<JobSpec> spec(module, "Spec");
  spec.def(nb::init<>())
      .def_rw("keep_on_device", &JobSpec::keep_on_device)
      .def(
          "check",
          [](const JobSpec& self, bool trace_reference) {
            RaiseIfError(CheckJobOptions(self, trace_reference));
          },
          "Raises InvalidArgumentError as CheckJobOptions (core/frame/job_options.h).");
  for (const JobOption& option : kJobOptions)
    std::visit([&](auto member) { BindOption(option.name, member, spec); }, option.value);
}

}  // namespace

void BindJobs(nb::module_& module) {
  BindPsfs(module);
  BindOptions(module);
  BindSpec(module);
  const auto path_of = [](const nb::bytes& path) { return std::string(path.c_str(), path.size()); };
  nb::class_<Job>(module, "Job", "What a call of extract asks for.")
      .def(nb::init<>())
      .def_rw("spec", &Job::spec)
      .def_rw("timeout", &Job::timeout, nb::arg().none())
      .def("set_image", [path_of](Job& job, const nb::bytes& path) { job.files.image = path_of(path); })
      .def("set_psf", [path_of](Job& job, const nb::bytes& path) { job.files.psf = path_of(path); })
      .def("set_psf",
           [](Job& job, const LoadedPsf& psf) {
             job.files.psf = psf.name;
             job.files.load_psf = [loaded = psf.psf] { return loaded; };
           })
      .def("set_fibermap", [path_of](Job& job, const nb::bytes& path) { job.files.fibermap = path_of(path); })
      .def("set_trace_reference",
           [path_of](Job& job, const nb::bytes& path) { job.files.trace_reference = path_of(path); })
      .def("set_arrays", &SetArrays, nb::arg("pixels"), nb::arg("ivar"), nb::arg("mask").none(),
           nb::arg("cards"));
}

}  // namespace spexd::python
