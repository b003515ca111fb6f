#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "core/base/machine/cpus.h"
#include "core/products/coadd/coadd_frames.h"
#include "core/products/sky_pca.h"
#include "python/native/arrays.h"
#include "python/native/bind.h"
#include "python/native/errors.h"

namespace nb = nanobind;

namespace spexd::python {
namespace {

std::string TextOf(const nb::bytes& bytes) { return std::string(bytes.c_str(), bytes.size()); }
int ThreadsOf(int asked) { return asked > 0 ? asked : AvailableCpus(); }

// Calls `make` without the GIL and returns its result.
template <typename Make>
auto WithoutGil(const Make& make) {
  const nb::gil_scoped_release no_gil;
  return make();
}

Numpy<int64_t, 1> Integers(const std::vector<int64_t>& values) {
  Array<int64_t, 1> copy({static_cast<int64_t>(values.size())});
  std::copy(values.begin(), values.end(), copy.flat().begin());
  return Given(std::move(copy));
}

// Returns a coadd's arms (a letter and a frame each), the TARGETIDs of their rows, the number of exposures of
// each, and the table of exposures or None.
nb::tuple Parts(CoaddedFrames coadd) {
  nb::list arms;
  for (CoaddedArm& arm : coadd.arms)
    arms.append(nb::make_tuple(std::string(1, arm.name), std::move(arm.frame)));
  return nb::make_tuple(arms, Integers(coadd.target_ids), Integers(coadd.exposures),
                        std::move(coadd.exposure_table));
}

nb::tuple CoaddShifted(const std::vector<const Frame*>& frames, const std::vector<nb::bytes>& names,
                       const ShiftSource& shifts, int threads) {
  std::vector<std::string> texts;
  for (const nb::bytes& name : names) texts.push_back(TextOf(name));
  return Parts(ValueOrRaise(WithoutGil([&] {
    std::vector<Frame> copies;
    for (const Frame* frame : frames) copies.push_back(*frame);
    return CoaddShiftedFrames(copies, texts, shifts, ThreadsOf(threads));
  })));
}

void WriteCoaddOf(const std::vector<std::string>& names, const std::vector<const Frame*>& frames,
                  const Contiguous<int64_t, 1>& target_ids, const Contiguous<int64_t, 1>& exposures,
                  const std::optional<RawTable>& exposure_table, const nb::bytes& path) {
  CoaddedFrames coadd;
  coadd.target_ids.assign(target_ids.data(), target_ids.data() + target_ids.shape(0));
  coadd.exposures.assign(exposures.data(), exposures.data() + exposures.shape(0));
  coadd.exposure_table = exposure_table;
  for (size_t k = 0; k < frames.size(); ++k) {
    const auto rows = static_cast<size_t>(frames[k]->spectra.flux.shape(0));
    if (coadd.target_ids.size() != rows || coadd.exposures.size() != rows) {
      Raise(absl::InvalidArgumentError(
          absl::StrFormat("target_ids has %d and exposures %d values, must have one for each of %d rows",
                          coadd.target_ids.size(), coadd.exposures.size(), rows)));
    }
    if (names[k].size() != 1) {
      Raise(absl::InvalidArgumentError(
          absl::StrFormat("arms has the key \"%s\", must have B, R or Z", names[k])));
    }
    coadd.arms.push_back({names[k][0], *frames[k]});
  }
  RaiseIfError(WithoutGil([&, name = TextOf(path)] { return WriteCoadd(coadd, name); }));
}

void BindCoadds(nb::module_& module) {
  nb::class_<CoaddFrameSums>(module, "CoaddFrameSums", "Frames, added one after the other.")
      .def(nb::init<>())
      .def("add",
           [](CoaddFrameSums& sums, const Frame& frame, const nb::bytes& name) {
             RaiseIfError(WithoutGil([&, text = TextOf(name)] { return sums.Add(frame, text); }));
           })
      .def("result", [](const CoaddFrameSums& sums) {
        return Parts(ValueOrRaise(WithoutGil([&] { return sums.Result(); })));
      });
  nb::class_<ShiftSource>(module, "ShiftSource", "Where velocities of exposures come from.")
      .def(nb::init<>())
      .def_rw("velocities", &ShiftSource::velocities)
      .def_rw("column", &ShiftSource::column)
      .def_rw("barycentric", &ShiftSource::barycentric);
  module.def("coadd_shifted", &CoaddShifted, nb::arg("frames"), nb::arg("names"), nb::arg("shifts"),
             nb::arg("threads"));
  module.def("write_coadd", &WriteCoaddOf, nb::arg("names"), nb::arg("frames"), nb::arg("target_ids"),
             nb::arg("exposures"), nb::arg("exposure_table").none(), nb::arg("path"));
}

// Sums of the residuals of frames that one fiberflat divides.
struct FlatPcaSums {
  SkyPcaSums sums;
  std::optional<Fiberflat> fiberflat;
  int threads;
};

// Returns [frame, component]: the rms over each frame's spectra.
Numpy<double, 2> AmplitudesOf(const SkyPca& pca) {
  Array<double, 2> amplitudes({static_cast<int64_t>(pca.frames.size()), pca.components.vectors.shape(0)});
  for (size_t f = 0; f < pca.frames.size(); ++f) {
    const std::vector<double>& of_frame = pca.frames[f].amplitudes;
    std::copy(of_frame.begin(), of_frame.end(), amplitudes.Row(static_cast<int64_t>(f)).begin());
  }
  return Given(std::move(amplitudes));
}

Numpy<int64_t, 1> SpectraOf(const SkyPca& pca) {
  std::vector<int64_t> spectra;
  for (const SkyPca::FrameSeries& series : pca.frames) spectra.push_back(series.spectra);
  return Integers(spectra);
}

void BindPca(nb::module_& module) {
  const auto view = nb::rv_policy::reference_internal;
  nb::class_<FlatPcaSums>(module, "SkyPcaSums", "Residuals of sky fibres, added frame by frame.")
      .def(
          "__init__",
          [](FlatPcaSums* made, double forget, double clip, const std::optional<Fiberflat>& fiberflat,
             int threads) {
            new (made)
                FlatPcaSums{SkyPcaSums({.forget = forget, .clip = clip}), fiberflat, ThreadsOf(threads)};
          },
          nb::arg("forget"), nb::arg("clip"), nb::arg("fiberflat").none(), nb::arg("threads"))
      .def("add",
           [](FlatPcaSums& made, const Frame& frame, const nb::bytes& name) {
             RaiseIfError(WithoutGil([&, text = TextOf(name)] {
               return made.sums.Add(frame, text, {made.fiberflat, made.threads});
             }));
           })
      .def("solve", [](const FlatPcaSums& made, int count) {
        return ValueOrRaise(WithoutGil([&] { return made.sums.Solve(count); }));
      });
  nb::class_<SkyPca>(module, "SkyPca", "Components; arrays are views but for amplitudes and spectra.")
      .def_ro("grid", &SkyPca::grid)
      .def_prop_ro(
          "variances", [](SkyPca& pca) { return ViewOf(pca.components.values); }, view)
      .def_prop_ro(
          "vectors", [](SkyPca& pca) { return ViewOf(pca.components.vectors); }, view)
      .def_prop_ro(
          "mean", [](SkyPca& pca) { return ViewOf(pca.components.mean); }, view)
      .def_prop_ro("weight", [](const SkyPca& pca) { return pca.components.snapshots; })
      .def_ro("noise_edge", &SkyPca::noise_edge)
      .def("amplitudes", &AmplitudesOf)
      .def("spectra", &SpectraOf)
      .def("write", [](const SkyPca& pca, const nb::bytes& path) {
        RaiseIfError(WithoutGil([&, name = TextOf(path)] { return WriteSkyPca(pca, name); }));
      });
}

}  // namespace

void BindSums(nb::module_& module) {
  BindCoadds(module);
  BindPca(module);
}

}  // namespace spexd::python
