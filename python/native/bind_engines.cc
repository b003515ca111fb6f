#include <nanobind/ndarray.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <initializer_list>
#include <utility>

#include "python/native/bind.h"
#include "python/native/call.h"
#include "python/native/engine.h"
#include "python/native/errors.h"
#include "python/native/text.h"

namespace nb = nanobind;

namespace spexd::python {
namespace {

std::unique_ptr<WarmEngine> MakeEngine(const std::string& device, const std::vector<int>& devices,
                                       int threads, int64_t psf_bytes) {
  EngineChoice choice;
  choice.device = device;
  choice.devices = devices;
  choice.threads = threads;
  choice.one_job = true;  // takes device memory when jobs need it, because a library shares the device
  absl::StatusOr<std::unique_ptr<WarmEngine>> engine = absl::InternalError("");
  {
    const nb::gil_scoped_release no_gil;  // a GPU takes a third of a second to start
    engine = WarmEngine::Make(choice, psf_bytes);
  }
  return ValueOrRaise(std::move(engine));
}

template <typename T>
nb::object Exported(T* values, std::initializer_list<size_t> shape, int device, nb::handle owner) {
  return nb::cast(nb::ndarray<T>(values, shape, owner, {}, nb::dtype<T>(), nb::device::cuda::value, device));
}

// Returns an array as a DLPack capsule; its consumer keeps the spectra alive. Raises KeyError for unknown
// names.
nb::object DlpackOf(const nb::handle& self, const std::string& name) {
  const auto& spectra = nb::cast<const DeviceSpectra&>(self);
  const DeviceArrays& at = spectra.arrays();
  const size_t fibres = static_cast<size_t>(at.fibres), bins = static_cast<size_t>(at.bins);
  const int device = spectra.device();
  if (name == "mask") return Exported(at.mask, {fibres, bins}, device, self);
  if (name == "resolution")
    return Exported(at.resolution, {fibres, kResolutionDiagonals, bins}, device, self);
  if (name == "flux") return Exported(at.flux, {fibres, bins}, device, self);
  if (name == "ivar") return Exported(at.ivar, {fibres, bins}, device, self);
  if (name == "chi2pix") return Exported(at.chi2pix, {fibres, bins}, device, self);
  throw nb::key_error(name.c_str());
}

void BindDeviceSpectra(nb::module_& module) {
  nb::class_<DeviceSpectra>(module, "DeviceSpectra")
      .def_prop_ro("device", &DeviceSpectra::device)
      .def_prop_ro("fibres", [](const DeviceSpectra& spectra) { return spectra.arrays().fibres; })
      .def_prop_ro("bins", [](const DeviceSpectra& spectra) { return spectra.arrays().bins; })
      .def("dlpack", &DlpackOf);
}

void BindOutcome(nb::module_& module) {
  nb::class_<Outcome>(module, "Outcome")
      .def_ro("frame", &Outcome::frame)
      .def_ro("on_device", &Outcome::on_device)
      .def_prop_ro(
          "model",
          [](Outcome& outcome) {
            Array<float, 2>& model = outcome.model;
            return nb::ndarray<nb::numpy, float, nb::ndim<2>>(
                model.data(), {static_cast<size_t>(model.shape(0)), static_cast<size_t>(model.shape(1))});
          },
          nb::rv_policy::reference_internal)
      .def_prop_ro("failed_bundles", [](const Outcome& o) { return o.result.summary.failed_bundles; })
      .def_prop_ro("warnings",
                   [](const Outcome& outcome) {
                     nb::list warnings;
                     for (const std::string& text : outcome.result.summary.warnings) {
                       warnings.append(TextOf(text));
                     }
                     return warnings;
                   })
      .def_prop_ro("stages",
                   [](const Outcome& outcome) {
                     nb::dict stages;
                     for (const StageSeconds& stage : outcome.result.stages) {
                       stages[stage.stage.c_str()] = stage.seconds;
                     }
                     return stages;
                   })
      .def_prop_ro("run_seconds", [](const Outcome& outcome) { return outcome.result.run_seconds; })
      .def_prop_ro("engine_seconds", [](const Outcome& outcome) { return outcome.result.engine_seconds; })
      .def_prop_ro("engine", [](const Outcome& outcome) { return outcome.result.engine; })
      .def_prop_ro("psf_hash", [](const Outcome& outcome) { return outcome.result.psf_hash; });
}

}  // namespace

void BindEngines(nb::module_& module) {
  BindDeviceSpectra(module);
  BindOutcome(module);
  nb::class_<WarmEngine>(module, "Engine")
      .def_prop_ro("note", [](const WarmEngine& engine) { return TextOf(engine.note()); })
      .def_prop_ro("kind", [](const WarmEngine& engine) { return engine.Info().kind; })
      .def_prop_ro("device", [](const WarmEngine& engine) { return TextOf(engine.Info().device); })
      .def_prop_ro("threads", [](const WarmEngine& engine) { return engine.Info().threads; })
      .def("run", &CallEngine, nb::arg("job"), nb::arg("on_bundle").none());
  module.def("make_engine", &MakeEngine, nb::arg("device"), nb::arg("devices"), nb::arg("threads"),
             nb::arg("psf_bytes"));
}

}  // namespace spexd::python
