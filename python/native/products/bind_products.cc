#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <memory>
#include <stop_token>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/analysis/analyser/analyser.h"
#include "core/base/machine/cpus.h"
#include "core/base/status_macros.h"
#include "core/base/threads/guard.h"
#include "core/extract/device_spectra.h"
#include "core/fits/hdu/source.h"
#include "core/products/analyse.h"
#include "core/products/product_files.h"
#include "core/products/template_file.h"
#include "cuda/loader/load_cuda_module.h"
#include "python/native/arrays.h"
#include "python/native/bind.h"
#include "python/native/call.h"
#include "python/native/errors.h"
#include "python/native/products/columns.h"

namespace nb = nanobind;

namespace spexd::python {
namespace {

std::string PathOf(const nb::bytes& path) { return std::string(path.c_str(), path.size()); }

// Calls `make` without the GIL and returns its result.
template <typename Make>
auto WithoutGil(const Make& make) {
  const nb::gil_scoped_release no_gil;
  return make();
}

absl::StatusOr<std::shared_ptr<TemplateLibrary>> LoadTemplates(const std::string& path,
                                                               const std::stop_token& stop) {
  SPEXD_ASSIGN_OR_RETURN(const Source source, Source::FromFile(path, {.stop = stop}));
  SPEXD_ASSIGN_OR_RETURN(TemplateLibrary library, ReadTemplates(source, stop));
  return std::make_shared<TemplateLibrary>(std::move(library));
}

absl::StatusOr<Fiberflat> LoadFiberflat(const std::string& path, const std::stop_token& stop) {
  SPEXD_ASSIGN_OR_RETURN(const Source source, Source::FromFile(path, {.stop = stop}));
  SPEXD_ASSIGN_OR_RETURN(Fiberflat fiberflat, ReadFiberflat(source, stop));
  fiberflat.name = path;
  return fiberflat;
}

// The request for products, and the objects to which it refers.
struct Request {
  AnalysisRequest request;
  std::shared_ptr<Sky> sky;
  std::shared_ptr<Fiberflat> fiberflat;
  std::shared_ptr<TemplateLibrary> templates;
  std::shared_ptr<Analyser> analyser;
  std::shared_ptr<DeviceSpectra> resident;

  // `where`: the frame on a device, or null.
  void SetAnalyser(std::shared_ptr<Analyser> maker, std::shared_ptr<DeviceSpectra> where) {
    analyser = std::move(maker);
    resident = std::move(where);
    request.analyser = analyser.get();
    request.resident = resident.get();
  }
  void SetSky(std::shared_ptr<Sky> made) {
    sky = std::move(made);
    request.sky = sky.get();
  }
};

std::shared_ptr<Analyser> MakeAnalyser(int device) {
  return ValueOrRaise(WithoutGil([device]() -> absl::StatusOr<std::shared_ptr<Analyser>> {
    return LoadCudaAnalyser({.device = device});
  }));
}

FrameProducts AnalyseWithSignals(const Frame& frame, AnalysisRequest& request) {
  return ValueOrRaise(RunWithSignals([&](const std::stop_token& stop) {
    request.stop = stop;
    return CatchExceptions([&] { return Analyse(frame, request); });
  }));
}

std::shared_ptr<Sky> FitSkyOf(const Frame& frame, Request& request) {
  return std::make_shared<Sky>(ValueOrRaise(AnalyseWithSignals(frame, request.request).sky));
}

nb::list FitVelocitiesOf(const Frame& frame, Request& request, bool models) {
  request.request.velocities = true;
  const FrameProducts products = AnalyseWithSignals(frame, request.request);
  const std::vector<StarVelocity> stars = ValueOrRaise(products.velocities);
  nb::list columns =
      ColumnsOf(VelocityTable(frame, products.targets, stars, request.request.templates->names));
  if (models) {
    const size_t scanned = ScannedVelocities(request.request.velocity_options).size();
    const auto bins = static_cast<size_t>(frame.grid.count);
    const auto add = [&](const char* name, size_t size, const auto& values) {
      columns.append(nb::make_tuple(name, RowsOfStars(stars, size, values)));
    };
    add(
        "MODEL", bins, [](const StarVelocity& star) -> auto& { return star.arms[0].model; });
    add(
        "CONTINUUM", bins, [](const StarVelocity& star) -> auto& { return star.arms[0].continuum; });
    add(
        "CHI2", scanned, [](const StarVelocity& star) -> auto& { return star.scan; });
  }
  return columns;
}

nb::list FindRedshiftsOf(const Frame& frame, Request& request) {
  request.request.lines = true;
  const FrameProducts products = AnalyseWithSignals(frame, request.request);
  return ColumnsOf(RedshiftTable(frame, products.targets, ValueOrRaise(products.lines)));
}

template <typename T, size_t N>
Array<T, N> ArrayOf(const nb::dict& arrays, const char* name) {
  return CopyOf<T, N>(nb::cast<Contiguous<T, N>>(arrays[name]));
}

template <typename T>
std::vector<T> ValuesOf(const nb::dict& arrays, const char* name) {
  const Array<T, 1> values = ArrayOf<T, 1>(arrays, name);
  return {values.flat().begin(), values.flat().end()};
}

std::vector<int> NumbersOf(const nb::dict& arrays, const char* name) {
  const Array<int64_t, 1> values = ArrayOf<int64_t, 1>(arrays, name);
  return {values.flat().begin(), values.flat().end()};
}

Array<double, 2> DoublesOf(const nb::dict& arrays, const char* name) {
  const Array<float, 2> values = ArrayOf<float, 2>(arrays, name);
  Array<double, 2> doubles(values.shape());
  std::copy(values.flat().begin(), values.flat().end(), doubles.flat().begin());
  return doubles;
}

// Returns a sky made from arrays that a server sent. _product_parts.py has checked them.
std::shared_ptr<Sky> ReceivedSky(const nb::dict& arrays) {
  auto sky = std::make_shared<Sky>();
  sky->model = DoublesOf(arrays, "model");
  sky->model_variance = DoublesOf(arrays, "model_ivar");
  for (double& variance : sky->model_variance.flat()) variance = 1 / variance;
  sky->statistical_ivar = DoublesOf(arrays, "statistical_ivar");
  sky->flux = DoublesOf(arrays, "flux");
  sky->ivar = DoublesOf(arrays, "ivar");
  sky->mask = ArrayOf<uint32_t, 2>(arrays, "mask");
  sky->throughput = ValuesOf<double>(arrays, "throughput");
  sky->deconvolved = ValuesOf<double>(arrays, "deconvolved");
  sky->sky_fibres = NumbersOf(arrays, "rows");
  sky->rounds = nb::cast<int>(arrays["rounds"]);
  sky->rejected = nb::cast<int64_t>(arrays["rejected"]);
  return sky;
}

nb::list ReceivedVelocities(const Frame& frame, const nb::dict& arrays,
                            const std::vector<std::string>& parameters) {
  const std::vector<int> rows = NumbersOf(arrays, "rows");
  std::vector<StarVelocity> stars(rows.size());
  const auto column = [&](const char* name, double StarVelocity::*field) {
    const std::vector<double> values = ValuesOf<double>(arrays, name);
    for (size_t k = 0; k < stars.size(); ++k) stars[k].*field = values[k];
  };
  column("velocity", &StarVelocity::v);
  column("error", &StarVelocity::error);
  column("conditional_error", &StarVelocity::conditional_error);
  column("vsini", &StarVelocity::vsini);
  column("chi2", &StarVelocity::chi2);
  column("continuum_chi2", &StarVelocity::continuum_chi2);
  column("dchi2", &StarVelocity::dchi2);
  column("second_velocity", &StarVelocity::v2);
  const Array<double, 2> values = ArrayOf<double, 2>(arrays, "parameter_values"),
                         errors = ArrayOf<double, 2>(arrays, "parameter_errors");
  const std::vector<uint32_t> bins = ValuesOf<uint32_t>(arrays, "bins_used"),
                              flags = ValuesOf<uint32_t>(arrays, "flag");
  for (size_t k = 0; k < stars.size(); ++k) {
    const auto row = static_cast<int64_t>(k);
    stars[k].parameters.assign(values.Row(row).begin(), values.Row(row).end());
    stars[k].parameter_errors.assign(errors.Row(row).begin(), errors.Row(row).end());
    stars[k].bins = static_cast<int>(bins[k]);
    stars[k].flag = static_cast<int>(flags[k]);
  }
  return ColumnsOf(VelocityTable(frame, rows, stars, parameters));
}

nb::list ReceivedRedshifts(const Frame& frame, const nb::dict& arrays) {
  const std::vector<int> rows = NumbersOf(arrays, "rows");
  const std::vector<double> z = ValuesOf<double>(arrays, "redshift"),
                            dchi2 = ValuesOf<double>(arrays, "dchi2"), gap = ValuesOf<double>(arrays, "gap"),
                            z2 = ValuesOf<double>(arrays, "second_redshift"),
                            error = ValuesOf<double>(arrays, "error");
  const std::vector<uint32_t> lines = ValuesOf<uint32_t>(arrays, "lines"),
                              warning = ValuesOf<uint32_t>(arrays, "warning");
  std::vector<LineRedshift> targets;
  for (size_t k = 0; k < rows.size(); ++k)
    targets.push_back(
        {z[k], dchi2[k], gap[k], z2[k], static_cast<int>(lines[k]), error[k], static_cast<int>(warning[k])});
  return ColumnsOf(RedshiftTable(frame, rows, targets));
}

void BindNames(nb::module_& module) {
  nb::class_<ProductInfo>(module, "Product", "A product by its names (core/products/analyse.h).")
      .def_prop_ro("number", [](const ProductInfo& info) { return static_cast<int>(info.product); })
      .def_prop_ro("request", [](const ProductInfo& info) { return info.request; })
      .def_prop_ro("keyword", [](const ProductInfo& info) { return info.keyword; });
  module.def("products", [] { return std::vector<ProductInfo>(std::begin(kProducts), std::end(kProducts)); });
}

void BindReceived(nb::module_& module) {
  module.def("received_sky", &ReceivedSky);
  module.def("velocity_table", &ReceivedVelocities);
  module.def("redshift_table", &ReceivedRedshifts);
}

void BindTemplates(nb::module_& module) {
  nb::class_<TemplateLibrary>(module, "Templates")
      .def_ro("names", &TemplateLibrary::names)
      .def_ro("axes", &TemplateLibrary::axes)
      .def_prop_ro("count", &TemplateLibrary::templates)
      .def_prop_ro("wavelength", [](const TemplateLibrary& library) {
        const double last =
            library.first_log_wave + library.step * static_cast<double>(library.samples() - 1);
        return std::make_pair(std::exp(library.first_log_wave), std::exp(last));
      });
  module.def("load_templates", [](const nb::bytes& path) {
    const std::string name = PathOf(path);
    return ValueOrRaise(
        RunWithSignals([&](const std::stop_token& stop) { return LoadTemplates(name, stop); }));
  });
  module.def("read_fiberflat", [](const nb::bytes& path) {
    const std::string name = PathOf(path);
    return ValueOrRaise(
        RunWithSignals([&](const std::stop_token& stop) { return LoadFiberflat(name, stop); }));
  });
  nb::class_<Fiberflat>(module, "Fiberflat", "What divides spectra first; see read_fiberflat.")
      .def("__init__", [](Fiberflat* fiberflat, const Contiguous<double, 2>& values) {
        new (fiberflat) Fiberflat{.values = CopyOf<double, 2>(values)};
      });
}

void BindSky(nb::module_& module) {
  const auto view = nb::rv_policy::reference_internal;
  nb::class_<Sky>(module, "Sky", "The sky of a frame; arrays are views but for ivar and mask.")
      .def_prop_ro(
          "deconvolved", [](Sky& sky) { return ViewOf(sky.deconvolved); }, view)
      .def_prop_ro(
          "model", [](Sky& sky) { return ViewOf(sky.model); }, view)
      .def("ivar", [](const Sky& sky) { return Given(SkyModelIvar(sky)); })
      .def_prop_ro(
          "statistical_ivar", [](Sky& sky) { return ViewOf(sky.statistical_ivar); }, view)
      .def("mask", [](const Sky& sky) { return Given(SkyModelMask(sky)); })
      .def_prop_ro(
          "throughput", [](Sky& sky) { return ViewOf(sky.throughput); }, view)
      .def_ro("sky_fibres", &Sky::sky_fibres)
      .def_ro("rounds", &Sky::rounds)
      .def_ro("rejected", &Sky::rejected)
      .def("write", [](const Sky& sky, const Frame& frame, const nb::bytes& path) {
        RaiseIfError(WithoutGil([&, name = PathOf(path)] { return WriteSky(frame, sky, name); }));
      });
  module.def("sky_subtracted", [](const Frame& frame, const Sky& sky) {
    return WithoutGil([&] { return SkySubtracted(frame, sky); });
  });
}

// Sets a field of one of the request's structs.
template <auto options, auto field>
void Set(Request& request,
         const std::decay_t<decltype(((std::declval<AnalysisRequest>()).*options).*field)>& value) {
  (request.request.*options).*field = value;
}

void BindRequest(nb::module_& module) {
  nb::class_<Analyser>(module, "Analyser", "Makes products on a GPU.");
  module.def("make_analyser", &MakeAnalyser, nb::arg("device"));
  nb::class_<Request>(module, "AnalysisRequest", "Which products are made, and from what; see _products.py.")
      .def(
          "__init__",
          [](Request* request, int threads) {
            new (request) Request{};
            request->request.threads = threads > 0 ? threads : AvailableCpus();
          },
          nb::arg("threads"))
      .def("set_analyser", &Request::SetAnalyser, nb::arg("analyser"), nb::arg("resident").none())
      .def("set_sky", &Request::SetSky)
      .def("set_sky_subtracted", [](Request& request) { request.request.sky_subtracted = true; })
      .def("set_fiberflat",
           [](Request& request, std::shared_ptr<Fiberflat> fiberflat) {
             request.fiberflat = std::move(fiberflat);
             request.request.fiberflat = request.fiberflat.get();
           })
      .def("set_templates",
           [](Request& request, std::shared_ptr<TemplateLibrary> library) {
             request.templates = std::move(library);
             request.request.templates = request.templates.get();
           })
      .def("set_most_velocity", &Set<&AnalysisRequest::velocity_options, &VelocityOptions::most>)
      .def("set_degree", &Set<&AnalysisRequest::velocity_options, &VelocityOptions::degree>)
      .def("set_rotation", &Set<&AnalysisRequest::velocity_options, &VelocityOptions::rotation>)
      .def("set_most_redshift", &Set<&AnalysisRequest::line_options, &LineOptions::max_redshift>)
      .def("set_line_sigma", &Set<&AnalysisRequest::line_options, &LineOptions::sigma>)
      .def("scanned_velocities",
           [](const Request& request) { return ScannedVelocities(request.request.velocity_options); });
}

}  // namespace

void BindProducts(nb::module_& module) {
  BindNames(module);
  BindTemplates(module);
  BindSky(module);
  BindRequest(module);
  BindReceived(module);
  module.def("fit_sky", &FitSkyOf);
  module.def("fit_velocities", &FitVelocitiesOf, nb::arg("frame"), nb::arg("request"), nb::arg("models"));
  module.def("find_redshifts", &FindRedshiftsOf);
}

}  // namespace spexd::python
