#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "core/base/machine/cpus.h"
#include "core/base/status_macros.h"
#include "core/fits/hdu/cards.h"
#include "core/fits/readers.h"
#include "core/fits/writers.h"
#include "core/frame/fit_quality.h"
#include "core/frame/summary.h"
#include "python/native/arrays.h"
#include "python/native/bind.h"
#include "python/native/errors.h"
#include "python/native/text.h"

namespace nb = nanobind;

namespace spexd::python {
namespace {

// Returns the value of a card, None if it has none.
nb::object ValueOf(const std::vector<std::string>& cards, size_t index) {
  const absl::string_view card = cards[index];
  if (const auto logical = CardLogical(card)) return nb::bool_(*logical);
  if (const auto text = CardString(cards, index)) return Latin1Of(*text);
  const auto number = CardNumber(card);
  if (!number.has_value()) return nb::none();
  int64_t integer = 0;
  const absl::string_view value = card.substr(10, card.find('/', 10) - 10);
  if (absl::SimpleAtoi(absl::StripAsciiWhitespace(value), &integer)) return nb::int_(integer);
  return nb::float_(*number);
}

// Returns the text of a COMMENT or HISTORY card.
std::string TextOfCard(absl::string_view card) {
  return std::string(absl::StripTrailingAsciiWhitespace(card.substr(std::min<size_t>(8, card.size()))));
}

nb::list ParseCards(const nb::list& latin1) {
  const std::vector<std::string> cards = CardsOf(latin1);
  nb::list pairs;
  for (size_t k = 0; k < cards.size(); ++k) {
    const std::string keyword(CardKeyword(cards[k]));
    if (keyword.empty() || keyword == "CONTINUE") continue;
    const bool text = keyword == "COMMENT" || keyword == "HISTORY";
    const nb::object value = text ? Latin1Of(TextOfCard(cards[k])) : ValueOf(cards, k);
    pairs.append(nb::make_tuple(Latin1Of(keyword), value));
  }
  return pairs;
}

void BindTables(nb::module_& module) {
  nb::class_<RawTable>(module, "RawTable", "A FITS binary table as it is on disk.")
      .def(nb::init<>())
      .def_prop_rw(
          "cards", [](const RawTable& table) { return Latin1Of(table.cards); },
          [](RawTable& table, const nb::list& cards) { table.cards = CardsOf(cards); })
      .def_rw("rows", &RawTable::rows)
      .def_rw("row_bytes", &RawTable::row_bytes)
      .def_prop_rw(
          "data", [](const RawTable& table) { return nb::bytes(table.data.data(), table.data.size()); },
          [](RawTable& table, const nb::bytes& data) { table.data.assign(data.c_str(), data.size()); });
  nb::class_<Scores>(module, "Scores")
      .def(nb::init<>())
      .def_prop_rw(
          "band", [](const Scores& scores) { return std::string(1, scores.band); },
          [](Scores& scores, const std::string& band) { scores.band = band.at(0); })
      .def_rw("sum_counts", &Scores::sum_counts)
      .def_rw("median_counts", &Scores::median_counts)
      .def_rw("median_snr", &Scores::median_snr)
      .def_rw("median_chi2pix", &Scores::median_chi2pix)
      .def_rw("outliers_chi2pix", &Scores::outliers_chi2pix);
}

void BindOrigin(nb::module_& module) {
  nb::class_<FrameOrigin>(module, "Origin", "Where a frame comes from.")
      .def(nb::init<>())
      .def(nb::init<const FrameOrigin&>())
      .def_prop_rw(
          "image_cards", [](const FrameOrigin& origin) { return Latin1Of(origin.image_cards); },
          [](FrameOrigin& origin, const nb::list& cards) { origin.image_cards = CardsOf(cards); })
      .def_prop_rw(
          "original_psf", [](const FrameOrigin& origin) { return Latin1Of(origin.original_psf); },
          [](FrameOrigin& origin, const nb::str& name) { origin.original_psf = BytesOf(name); })
      .def_rw("input_image", &FrameOrigin::input_image)
      .def_rw("input_psf", &FrameOrigin::input_psf)
      .def_rw("heliocentric_factor", &FrameOrigin::heliocentric_factor, nb::arg().none())
      .def_rw("psferr", &FrameOrigin::psferr)
      .def_rw("flux_residual", &FrameOrigin::flux_residual, nb::arg().none())
      .def_rw("root_error", &FrameOrigin::root_error, nb::arg().none())
      .def_rw("chi2pix_median", &FrameOrigin::chi2pix_median, nb::arg().none())
      .def_rw("chi2pix_outliers", &FrameOrigin::chi2pix_outliers, nb::arg().none())
      .def_rw("fine_grid_prior", &FrameOrigin::fine_grid_prior)
      .def_rw("version", &FrameOrigin::version)
      .def_prop_rw(
          "traces", [](const FrameOrigin& origin) { return origin.traces; },
          [](FrameOrigin& origin, const TraceReport& report) { origin.traces = report; })
      .def_prop_rw(
          "fibermap", [](const FrameOrigin& origin) { return origin.fibermap; },
          [](FrameOrigin& origin, const RawTable& table) { origin.fibermap = table; });
}

void BindGrid(nb::module_& module) {
  nb::class_<WavelengthGrid>(module, "Grid", "A uniform grid of wavelengths, in Angstrom.")
      .def(
          "__init__",
          [](WavelengthGrid* grid, double first, double step, int count) {
            new (grid) WavelengthGrid{first, step, count};
          },
          nb::arg("first"), nb::arg("step"), nb::arg("count"))
      .def_ro("first", &WavelengthGrid::first)
      .def_ro("step", &WavelengthGrid::step)
      .def_ro("count", &WavelengthGrid::count)
      .def("values", &WavelengthGrid::Values);
  module.def("make_grid", [](double wmin, double wmax, double dw) {
    return ValueOrRaise(MakeWavelengthGrid(wmin, wmax, dw));
  });
  module.def("parse_grid", [](const std::string& text) { return ValueOrRaise(ParseWavelengthGrid(text)); });
}

// Computes what depends on all fibres of a merged frame. REQUIRES: no mask has BAD2DFIT.
void Summarise(Frame& frame, bool scores) {
  const nb::gil_scoped_release no_gil;
  const std::vector<int64_t> bad2dfit = FindBad2dFit(frame.spectra);
  for (const int64_t index : bad2dfit) frame.spectra.mask.data()[index] |= kMaskBad2dFit;
  frame.scores = scores ? ComputeScores(frame.grid, frame.spectra) : std::nullopt;
  AddFit(MeasureFit(frame.spectra, bad2dfit), &frame);
}

void BindFrameClass(nb::module_& module) {
  const auto view = nb::rv_policy::reference_internal;
  nb::class_<Frame>(module, "Frame", "Spectra in memory; arrays are views.")
      .def(nb::init<>())
      .def_rw("grid", &Frame::grid)
      .def_prop_rw(
          "first_fibre", [](const Frame& frame) { return frame.fibres.first; },
          [](Frame& frame, int first) { frame.fibres.first = first; })
      .def_rw("origin", &Frame::origin)
      .def_rw("scores", &Frame::scores, nb::arg().none())
      .def_prop_ro(
          "flux", [](Frame& frame) { return ViewOf(frame.spectra.flux); }, view)
      .def_prop_ro(
          "ivar", [](Frame& frame) { return ViewOf(frame.spectra.ivar); }, view)
      .def_prop_ro(
          "mask", [](Frame& frame) { return ViewOf(frame.spectra.mask); }, view)
      .def_prop_ro(
          "resolution", [](Frame& frame) { return ViewOf(frame.spectra.resolution); }, view)
      .def_prop_ro(
          "chi2pix", [](Frame& frame) { return ViewOf(frame.spectra.chi2pix); }, view)
      .def("set_spectra",
           [](Frame& frame, const Contiguous<float, 2>& flux, const Contiguous<float, 2>& ivar,
              const Contiguous<uint32_t, 2>& mask, const Contiguous<float, 3>& resolution,
              const Contiguous<float, 2>& chi2pix) {
             frame.fibres.count = static_cast<int>(flux.shape(0));
             frame.spectra.flux = CopyOf<float, 2>(flux);
             frame.spectra.ivar = CopyOf<float, 2>(ivar);
             frame.spectra.mask = CopyOf<uint32_t, 2>(mask);
             frame.spectra.resolution = CopyOf<float, 3>(resolution);
             frame.spectra.chi2pix = CopyOf<float, 2>(chi2pix);
           })
      .def("summarise", &Summarise, nb::arg("scores"));
}

absl::StatusOr<std::pair<Frame, std::vector<std::string>>> ReadFrameAndCards(const std::string& path) {
  SPEXD_ASSIGN_OR_RETURN(const Source source, Source::FromFile(path));
  SPEXD_ASSIGN_OR_RETURN(Frame frame, ReadFrame(source));
  SPEXD_ASSIGN_OR_RETURN(std::vector<std::string> cards, ReadFrameCards(source));
  return std::make_pair(std::move(frame), std::move(cards));
}

void BindFiles(nb::module_& module) {
  module.def("write_frame", [](const Frame& frame, const nb::bytes& path) {
    const std::string name(path.c_str(), path.size());
    absl::Status status;
    {
      const nb::gil_scoped_release no_gil;
      status = WriteFrame(frame, name, AvailableCpus());
    }
    RaiseIfError(status);
  });
  module.def("write_model",
             [](const Contiguous<float, 2>& model, const FrameOrigin& origin, const nb::bytes& path) {
               RaiseIfError(WriteModel(CopyOf<float, 2>(model), origin,
                                       std::string(path.c_str(), path.size()), AvailableCpus()));
             });
  module.def("read_frame", [](const nb::bytes& path) {
    const std::string name(path.c_str(), path.size());
    absl::StatusOr<std::pair<Frame, std::vector<std::string>>> read = absl::InternalError("");
    {
      const nb::gil_scoped_release no_gil;
      read = ReadFrameAndCards(name);
    }
    auto [frame, cards] = ValueOrRaise(std::move(read));
    return nb::make_tuple(std::move(frame), Latin1Of(cards));
  });
  module.def("frame_cards",
             [](const WavelengthGrid& grid, int first_fibre, int fibres, const FrameOrigin& origin) {
               return Latin1Of(ValueOrRaise(FrameCards(grid, {first_fibre, fibres}, origin)));
             });
  module.def("parse_cards", &ParseCards, "Keywords and values of header cards, in their order.");
}

}  // namespace

void BindFrames(nb::module_& module) {
  BindTables(module);
  BindOrigin(module);
  BindGrid(module);
  BindFrameClass(module);
  BindFiles(module);
}

}  // namespace spexd::python
