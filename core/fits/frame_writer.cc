#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/fits/frame_header.h"
#include "core/fits/hdu/cards.h"
#include "core/fits/hdu/fits_builder.h"
#include "core/fits/hdu/table_file.h"
#include "core/fits/score_columns.h"
#include "core/fits/traces/trace_table.h"
#include "core/fits/writers.h"

namespace spexd {
namespace {

absl::Status CheckFrame(const Frame& frame) {
  const Array<float, 2>::Shape shape{frame.fibres.count, frame.grid.count};
  const Spectra& s = frame.spectra;
  const bool alike = s.flux.shape() == shape && s.ivar.shape() == shape && s.mask.shape() == shape &&
                     s.chi2pix.shape() == shape && s.resolution.shape(0) == shape[0] &&
                     s.resolution.shape(2) == shape[1] && s.resolution.shape(1) > 0;
  if (!alike || shape[0] <= 0 || shape[1] <= 0) {
    return absl::InvalidArgumentError(
        absl::StrFormat("frame: the arrays do not all have %d fibres x %d wavelengths", shape[0], shape[1]));
  }
  const size_t fibres = static_cast<size_t>(shape[0]);
  for (const ScoreColumn& column : kScoreColumns) {
    if (!frame.scores) break;
    const std::vector<double>& values = (*frame.scores).*column.values;
    if (values.size() == fibres || (column.optional && values.empty())) continue;
    return absl::InvalidArgumentError(
        absl::StrFormat("frame: the scores are not those of %d fibres", fibres));
  }
  if (frame.origin.fibermap && frame.origin.fibermap->rows != shape[0]) {
    return absl::InvalidArgumentError(
        absl::StrFormat("frame: FIBERMAP has %d rows for %d fibres", frame.origin.fibermap->rows, fibres));
  }
  if (frame.origin.traces && frame.origin.traces->u.size() != fibres) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "frame: the trace shifts are those of %d fibres, not of %d", frame.origin.traces->u.size(), fibres));
  }
  return absl::OkStatus();
}

// Rounds wavelengths for header cards. HDU WAVELENGTH keeps the rounding errors of numpy's grids.
double Tidy(double value) { return std::stod(absl::StrFormat("%.12g", value)); }

// The numbers in FIBERMAP's column FIBER, or the rows of the PSF if there is none.
std::vector<int64_t> FibreNumbers(FibreRange fibres, const FrameOrigin& origin) {
  if (origin.fibermap) {
    absl::StatusOr<std::vector<int64_t>> numbers = IntegerColumn(*origin.fibermap, "FIBER");
    if (numbers.ok() && !numbers->empty()) return *std::move(numbers);
  }
  std::vector<int64_t> rows(static_cast<size_t>(fibres.count));
  std::iota(rows.begin(), rows.end(), fibres.first);
  return rows;
}

void BeginFlux(const WavelengthGrid& grid, FibreRange fibres, const FrameOrigin& origin, FitsBuilder& fits) {
  fits.BeginImage("FLUX", FLOAT_IMG, {fibres.count, grid.count});
  WriteOrigin(origin, false, fits);
  fits.Text("BUNIT", "electron/Angstrom", "unit of FLUX");
  fits.Integer("NSPEC", fibres.count, "number of spectra");
  fits.Integer("SPECMIN", fibres.first, "row of the first spectrum in the PSF");
  const std::vector<int64_t> numbers = FibreNumbers(fibres, origin);
  fits.Integer("FIBERMIN", numbers.empty() ? fibres.first : *std::min_element(numbers.begin(), numbers.end()),
               "first fibre");
  fits.Number("WAVEMIN", Tidy(grid.first), "first wavelength [Angstrom]");
  fits.Number("WAVEMAX", Tidy(grid.last()), "last wavelength [Angstrom]");
  fits.Number("WAVESTEP", Tidy(grid.step), "wavelength bin [Angstrom]");
}

void WriteScores(const Scores& scores, FitsBuilder& fits) {
  std::vector<ScoreColumn> columns;
  std::vector<std::string> names;
  for (const ScoreColumn& column : kScoreColumns) {
    if ((scores.*column.values).empty()) continue;
    columns.push_back(column);
    names.push_back(absl::StrFormat("%s_%c", column.stem, scores.band));
  }
  fits.BeginTable("SCORES", static_cast<int64_t>(scores.sum_counts.size()), names,
                  std::vector<std::string>(names.size(), "1D"));
  for (size_t k = 0; k < columns.size(); ++k)
    fits.Comment(absl::StrCat("TTYPE", k + 1).c_str(), columns[k].comment);
  int number = 0;
  for (const ScoreColumn& column : columns)
    fits.ColumnValues(++number, 1, absl::MakeConstSpan(scores.*column.values));
}

}  // namespace

absl::Status WriteFrame(const Frame& frame, const std::string& path, int threads) {
  SPEXD_RETURN_IF_ERROR(CheckFrame(frame));
  const Spectra& spectra = frame.spectra;
  const int64_t fibres = frame.fibres.count, bins = frame.grid.count;
  FitsBuilder fits(8 * bins + (1 << 20));
  BeginFlux(frame.grid, frame.fibres, frame.origin, fits);
  fits.LatePixels(spectra.flux.flat());
  fits.BeginImage("IVAR", FLOAT_IMG, {fibres, bins});
  fits.LatePixels(spectra.ivar.flat());
  fits.BeginImage("MASK", ULONG_IMG, {fibres, bins});
  fits.LatePixels(spectra.mask.flat());
  fits.BeginImage("WAVELENGTH", DOUBLE_IMG, {bins});
  fits.Text("BUNIT", "Angstrom", "vacuum");
  fits.Pixels(absl::MakeConstSpan(frame.grid.Values()));
  fits.BeginImage("RESOLUTION", FLOAT_IMG, {fibres, spectra.resolution.shape(1), bins});
  fits.LatePixels(spectra.resolution.flat());
  if (frame.origin.fibermap) fits.AddRawTable(*frame.origin.fibermap);
  fits.BeginImage("CHI2PIX", FLOAT_IMG, {fibres, bins});
  fits.LatePixels(spectra.chi2pix.flat());
  if (frame.scores) WriteScores(*frame.scores, fits);
  if (frame.origin.traces)
    WriteTraceTable(*frame.origin.traces, FibreNumbers(frame.fibres, frame.origin), fits);
  return fits.Write(path, threads);
}

absl::StatusOr<std::vector<std::string>> FrameCards(const WavelengthGrid& grid, FibreRange fibres,
                                                    const FrameOrigin& origin) {
  FitsBuilder fits(0);
  BeginFlux(grid, fibres, origin, fits);
  return fits.HeaderCards();
}

absl::Status WriteModel(const Array<float, 2>& model, const FrameOrigin& origin, const std::string& path,
                        int threads) {
  if (model.empty()) return absl::InvalidArgumentError("model image: has no pixels");
  FitsBuilder fits(0);
  fits.BeginImage("MODEL", FLOAT_IMG, {model.shape(0), model.shape(1)});
  WriteOrigin(origin, true, fits);
  fits.Text("BUNIT", "electron", "unit of the model");
  fits.LatePixels(model.flat());
  return fits.Write(path, threads);
}

}  // namespace spexd
