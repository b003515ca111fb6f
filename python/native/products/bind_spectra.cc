#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/machine/cpus.h"
#include "core/base/status_macros.h"
#include "core/base/threads/guard.h"
#include "core/fits/hdu/fits_file.h"
#include "core/fits/hdu/source.h"
#include "core/fits/hdu/table.h"
#include "core/fits/images/image_hdu.h"
#include "core/fits/readers.h"
#include "core/products/joint/exposure_spectra.h"
#include "core/products/joint/joint_analysis.h"
#include "core/products/joint/joint_files.h"
#include "core/products/joint/row_selection.h"
#include "python/native/arrays.h"
#include "python/native/bind.h"
#include "python/native/call.h"
#include "python/native/errors.h"
#include "python/native/products/columns.h"
#include "python/native/text.h"

namespace nb = nanobind;

namespace spexd::python {
namespace {

using Ranges = std::vector<std::pair<double, double>>;

std::string NameFrom(const nb::bytes& bytes) { return std::string(bytes.c_str(), bytes.size()); }
int ThreadsFor(int asked) { return asked > 0 ? asked : AvailableCpus(); }

absl::StatusOr<TargetSpectra> LoadSpectra(const std::string& path, const Workers& workers) {
  SPEXD_ASSIGN_OR_RETURN(const Source source,
                         Source::FromFile(path, {.stop = workers.stop, .threads = workers.threads}));
  SPEXD_ASSIGN_OR_RETURN(const SpectraKind kind, KindOfSpectra(source));
  if (kind == SpectraKind::kTargets) return ReadTargetSpectra(source, workers);
  return absl::InvalidArgumentError(absl::StrCat(
      source.name(), ": is a frame (HDU FLUX); spexd.Spectra takes the frames of an exposure as a list"));
}

TargetSpectra ReadSpectraOf(const nb::bytes& path, int threads) {
  const std::string name = NameFrom(path);
  return ValueOrRaise(RunWithSignals([&](const std::stop_token& stop) {
    return CatchExceptions([&] { return LoadSpectra(name, {ThreadsFor(threads), stop}); });
  }));
}

TargetSpectra JoinFramesOf(const std::vector<const Frame*>& frames, const std::vector<nb::bytes>& names) {
  std::vector<std::string> texts;
  for (const nb::bytes& name : names) texts.push_back(NameFrom(name));
  return ValueOrRaise(RunWithSignals([&](const std::stop_token&) {
    return CatchExceptions([&] {
      std::vector<NamedFrame> copies;
      for (size_t k = 0; k < frames.size(); ++k) copies.push_back({texts[k], *frames[k]});
      return JoinFrames(std::move(copies));
    });
  }));
}

// Returns the request that all joint products have in common.
JointRequest RequestFor(const TargetSpectra& spectra, const std::vector<int>& rows, bool per_target,
                        int threads) {
  JointRequest request;
  request.targets = ValueOrRaise(GroupRows(spectra, rows, per_target));
  request.threads = ThreadsFor(threads);
  return request;
}

JointProducts AnalyseWithSignals(const TargetSpectra& spectra, JointRequest& request) {
  return ValueOrRaise(RunWithSignals([&](const std::stop_token& stop) {
    request.stop = stop;
    return CatchExceptions([&] { return AnalyseJointly(spectra, request); });
  }));
}

// Adds the models of each arm and the scans, which are images in the files of joint velocities, by their
// names.
void AddModels(const TargetSpectra& spectra, const JointProducts& products, const VelocityOptions& options,
               nb::list* columns) {
  const std::vector<StarVelocity>& stars = *products.velocities;
  for (size_t a = 0; a < spectra.arms.size(); ++a) {
    columns->append(nb::make_tuple(absl::StrCat(spectra.arms[a].name, "_MODEL"),
                                   Given(JointModels(spectra, products, a))));
  }
  const size_t scanned = ScannedVelocities(options).size();
  const auto whole = [](const StarVelocity& star) -> const auto& { return star.scan; };
  columns->append(nb::make_tuple("CHI2", RowsOfStars(stars, scanned, whole)));
  const std::vector<std::string> names = PartNames(products);
  for (size_t part = 0; part < names.size(); ++part) {
    const auto of_part = [part](const StarVelocity& star) -> const auto& { return star.arms[part].scan; };
    columns->append(nb::make_tuple(absl::StrCat(names[part], "_CHI2"), RowsOfStars(stars, scanned, of_part)));
  }
}

nb::list FitJointVelocities(const TargetSpectra& spectra, const TemplateLibrary& templates,
                            const VelocityOptions& options, const std::vector<int>& rows, bool per_target,
                            bool models, int threads) {
  JointRequest request = RequestFor(spectra, rows, per_target, threads);
  request.templates = &templates;
  request.velocity_options = options;
  request.velocity_options.scan_degree = std::min(options.scan_degree, options.degree);
  const JointProducts products = AnalyseWithSignals(spectra, request);
  RaiseIfError(products.velocities.status());
  nb::list columns = ColumnsOf(JointVelocityTable(spectra, products, templates.names, std::nullopt));
  if (models) AddModels(spectra, products, options, &columns);
  return columns;
}

nb::list FindJointRedshifts(const TargetSpectra& spectra, const LineOptions& options,
                            const std::vector<int>& rows, bool per_target, int threads) {
  JointRequest request = RequestFor(spectra, rows, per_target, threads);
  request.lines = true;
  request.line_options = options;
  const JointProducts products = AnalyseWithSignals(spectra, request);
  RaiseIfError(products.lines.status());
  return ColumnsOf(JointLineTable(spectra, products));
}

FitsFile ParseFits(const std::string& name, const nb::bytes& content) {
  const Source source = ValueOrRaise(Source::FromBytes(name, std::string(content.c_str(), content.size())));
  return ValueOrRaise(FitsFile::Parse(source));
}

const Hdu& HduOf(const FitsFile& file, const std::string& name) { return *ValueOrRaise(file.Get({name})); }

// Returns an image [row, column] of floats, which may have no rows.
Array<float, 2> ImageOf(const Hdu& hdu) {
  if (hdu.axes.size() == 2 && hdu.axes[1] == 0) return Array<float, 2>({0, hdu.axes[0]});
  return ValueOrRaise(ReadImage<float, 2>(hdu));
}

void BindFitsFiles(nb::module_& module) {
  nb::class_<FitsFile>(module, "FitsFile", "A FITS file in memory.")
      .def_prop_ro("hdus",
                   [](const FitsFile& file) {
                     std::vector<std::string> names;
                     for (const Hdu& hdu : file.hdus()) names.push_back(hdu.name);
                     return Latin1Of(names);
                   })
      .def("table", [](const FitsFile& file,
                       const std::string& hdu) { return ValueOrRaise(ReadRawTable(HduOf(file, hdu))); })
      .def("image",
           [](const FitsFile& file, const std::string& hdu) { return Given(ImageOf(HduOf(file, hdu))); });
  module.def("parse_fits", &ParseFits, nb::arg("name"), nb::arg("content"));
}

void BindArms(nb::module_& module) {
  const auto view = nb::rv_policy::reference_internal;
  nb::class_<SpectraArm>(module, "SpectraArm", "The spectra of an arm; arrays are views.")
      .def_ro("name", &SpectraArm::name)
      .def_ro("grid", &SpectraArm::grid)
      .def_prop_ro(
          "flux", [](SpectraArm& arm) { return ViewOf(arm.spectra.flux); }, view)
      .def_prop_ro(
          "ivar", [](SpectraArm& arm) { return ViewOf(arm.spectra.ivar); }, view)
      .def_prop_ro(
          "mask", [](SpectraArm& arm) { return ViewOf(arm.spectra.mask); }, view)
      .def_prop_ro(
          "resolution", [](SpectraArm& arm) { return ViewOf(arm.spectra.resolution); }, view);
  nb::class_<TargetSpectra>(module, "TargetSpectra", "Spectra of targets in several arms.")
      .def_prop_ro("cards", [](const TargetSpectra& spectra) { return Latin1Of(spectra.cards); })
      .def_prop_ro("rows", [](const TargetSpectra& spectra) { return spectra.fibermap.rows; })
      .def_prop_ro("fibermap", [](const TargetSpectra& spectra) { return spectra.fibermap; })
      .def_prop_ro("exposures", [](const TargetSpectra& spectra) { return spectra.exposures; })
      .def_prop_ro("scores", [](const TargetSpectra& spectra) { return spectra.scores; })
      .def_prop_ro("arm_count", [](const TargetSpectra& spectra) { return spectra.arms.size(); })
      .def(
          "arm", [](TargetSpectra& spectra, size_t k) -> SpectraArm& { return spectra.arms.at(k); }, view);
}

void BindOptions(nb::module_& module) {
  nb::class_<VelocityOptions>(module, "VelocityOptions", "How joint velocities are fitted.")
      .def(nb::init<>())
      .def_rw("most", &VelocityOptions::most)
      .def_rw("degree", &VelocityOptions::degree)
      .def_rw("rotation", &VelocityOptions::rotation)
      .def("set_exclude", [](VelocityOptions& options, const Ranges& ranges) {
        options.exclude.clear();
        for (const auto& [first, last] : ranges) options.exclude.push_back({first, last});
      });
  nb::class_<LineOptions>(module, "LineOptions", "How joint redshifts are looked for.")
      .def("__init__", [](LineOptions* options) { new (options) LineOptions(JointRequest().line_options); })
      .def_rw("most", &LineOptions::max_redshift)
      .def_rw("sigma", &LineOptions::sigma);
  module.def("excluded_of_targets", [] {
    return Ranges{{kExcludedOfTargets.first, kExcludedOfTargets.last}};
  });
}

}  // namespace

void BindSpectra(nb::module_& module) {
  BindFitsFiles(module);
  BindArms(module);
  BindOptions(module);
  module.def("read_spectra", &ReadSpectraOf, nb::arg("path"), nb::arg("threads"));
  module.def("has_sky",
             [](const Frame& frame, const nb::bytes& name) { return HasSky(frame, NameFrom(name)); });
  module.def("join_frames", &JoinFramesOf, nb::arg("frames"), nb::arg("names"));
  module.def("select_rows",
             [](const TargetSpectra& spectra) { return ValueOrRaise(SelectRows(spectra, {})); });
  module.def("fit_joint_velocities", &FitJointVelocities, nb::arg("spectra"), nb::arg("templates"),
             nb::arg("options"), nb::arg("rows"), nb::arg("per_target"), nb::arg("models"),
             nb::arg("threads"));
  module.def("find_joint_redshifts", &FindJointRedshifts, nb::arg("spectra"), nb::arg("options"),
             nb::arg("rows"), nb::arg("per_target"), nb::arg("threads"));
}

}  // namespace spexd::python
