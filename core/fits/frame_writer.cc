#include <algorithm>

#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/fits/cards.h"
#include "core/fits/fits_builder.h"
#include "core/fits/frame_header.h"
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
  if (frame.scores &&
      (frame.scores->sum_counts.size() != fibres || frame.scores->median_counts.size() != fibres ||
       frame.scores->median_snr.size() != fibres)) {
    return absl::InvalidArgumentError(
        absl::StrFormat("frame: the scores are not those of %d fibres", fibres));
  }
  if (frame.origin.fibermap && frame.origin.fibermap->rows != shape[0]) {
    return absl::InvalidArgumentError(
        absl::StrFormat("frame: FIBERMAP has %d rows for %d fibres", frame.origin.fibermap->rows, fibres));
  }
  return absl::OkStatus();
}

// Wavelengths as a reader expects them: the rounding of numpy's grids is left to HDU WAVELENGTH.
double Tidy(double value) { return std::stod(absl::StrFormat("%.12g", value)); }

void WriteFluxCards(const Frame& frame, FitsBuilder& fits) {
  WriteOrigin(frame.origin, false, fits);
  fits.Text("BUNIT", "electron/Angstrom", "unit of FLUX");
  fits.Integer("NSPEC", frame.fibres.count, "number of spectra");
  fits.Integer("SPECMIN", frame.fibres.first, "row of the first spectrum in the PSF");
  if (!frame.origin.fibermap) fits.Integer("FIBERMIN", frame.fibres.first, "first fibre");
  fits.Number("WAVEMIN", Tidy(frame.grid.first), "first wavelength [Angstrom]");
  fits.Number("WAVEMAX", Tidy(frame.grid.last()), "last wavelength [Angstrom]");
  fits.Number("WAVESTEP", Tidy(frame.grid.step), "wavelength bin [Angstrom]");
}

void WriteScores(const Scores& scores, FitsBuilder& fits) {
  std::vector<std::string> names;
  for (const char* stem : {"SUM_RAW_COUNT", "MEDIAN_RAW_COUNT", "MEDIAN_RAW_SNR"}) {
    names.push_back(absl::StrFormat("%s_%c", stem, scores.band));
  }
  fits.BeginTable("SCORES", static_cast<int64_t>(scores.sum_counts.size()), names, {"1D", "1D", "1D"});
  int column = 0;
  for (const std::vector<double>* values : {&scores.sum_counts, &scores.median_counts, &scores.median_snr}) {
    fits.ColumnValues(++column, 1, absl::MakeConstSpan(*values));
  }
}

}  // namespace

absl::Status WriteFrame(const Frame& frame, const std::string& path) {
  SPEXD_RETURN_IF_ERROR(CheckFrame(frame));
  const Spectra& spectra = frame.spectra;
  const int64_t fibres = frame.fibres.count, bins = frame.grid.count;
  FitsBuilder fits(4 * (4 * spectra.flux.size() + spectra.resolution.size()) + 8 * bins + (4 << 20));
  fits.BeginImage("FLUX", FLOAT_IMG, {fibres, bins});
  WriteFluxCards(frame, fits);
  fits.Pixels(spectra.flux.flat());
  fits.BeginImage("IVAR", FLOAT_IMG, {fibres, bins});
  fits.Pixels(spectra.ivar.flat());
  fits.BeginImage("MASK", ULONG_IMG, {fibres, bins});
  fits.Pixels(spectra.mask.flat());
  fits.BeginImage("WAVELENGTH", DOUBLE_IMG, {bins});
  fits.Text("BUNIT", "Angstrom", "vacuum");
  fits.Pixels(absl::MakeConstSpan(frame.grid.Values()));
  fits.BeginImage("RESOLUTION", FLOAT_IMG, {fibres, spectra.resolution.shape(1), bins});
  fits.Pixels(spectra.resolution.flat());
  if (frame.origin.fibermap) fits.AddRawTable(*frame.origin.fibermap);
  fits.BeginImage("CHI2PIX", FLOAT_IMG, {fibres, bins});
  fits.Pixels(spectra.chi2pix.flat());
  if (frame.scores) WriteScores(*frame.scores, fits);
  return fits.Write(path);
}

absl::Status WriteModel(const Array<float, 2>& model, const FrameOrigin& origin, const std::string& path) {
  if (model.empty()) return absl::InvalidArgumentError("model image: has no pixels");
  FitsBuilder fits(4 * model.size() + (1 << 20));
  fits.BeginImage("MODEL", FLOAT_IMG, {model.shape(0), model.shape(1)});
  WriteOrigin(origin, true, fits);
  fits.Text("BUNIT", "electron", "unit of the model");
  fits.Pixels(model.flat());
  return fits.Write(path);
}

}  // namespace spexd
