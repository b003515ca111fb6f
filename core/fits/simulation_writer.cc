#include <algorithm>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/fits/cards.h"
#include "core/fits/fits_builder.h"
#include "core/fits/writers.h"

namespace spexd {
namespace {

void WriteFibermap(const std::vector<FibermapRow>& rows, FitsBuilder& fits) {
  size_t width = 3;
  for (const FibermapRow& row : rows) width = std::max(width, row.object_type.size());
  fits.BeginTable("FIBERMAP", static_cast<int64_t>(rows.size()),
                  {"TARGETID", "FIBER", "OBJTYPE", "TARGET_RA", "TARGET_DEC"},
                  {"1K", "1J", absl::StrCat(width, "A"), "1D", "1D"});
  for (size_t k = 0; k < rows.size(); ++k) {
    const FibermapRow& row = rows[k];
    const int64_t number = static_cast<int64_t>(k) + 1, fibre = row.fibre;
    fits.ColumnValues(1, number, absl::MakeConstSpan(&row.target_id, 1));
    fits.ColumnValues(2, number, absl::MakeConstSpan(&fibre, 1));
    fits.ColumnText(3, number, row.object_type);
    fits.ColumnValues(4, number, absl::MakeConstSpan(&row.target_ra, 1));
    fits.ColumnValues(5, number, absl::MakeConstSpan(&row.target_dec, 1));
  }
}

}  // namespace

absl::Status WritePreproc(const PreprocFile& preproc, const std::string& path, bool rice) {
  const Array<float, 2>::Shape shape = preproc.pixels.shape();
  if (preproc.pixels.empty() || preproc.ivar.shape() != shape || preproc.mask.shape() != shape ||
      preproc.readnoise.shape() != shape) {
    return absl::InvalidArgumentError("preproc: IMAGE, IVAR, MASK and READNOISE must have one shape");
  }
  const std::vector<int64_t> axes(shape.begin(), shape.end());
  FitsBuilder fits(4 * 4 * preproc.pixels.size() + (1 << 20));
  fits.CompressImages(rice);
  fits.BeginImage("IMAGE", FLOAT_IMG, axes);
  fits.Cards(FilterCards(preproc.extra_cards, [](absl::string_view card) {
    return !IsStructuralCard(card) && CardKeyword(card) != "BUNIT";
  }));
  fits.Text("BUNIT", "electron", "unit of IMAGE");
  fits.Pixels(preproc.pixels.flat());
  fits.BeginImage("IVAR", FLOAT_IMG, axes);
  fits.Pixels(preproc.ivar.flat());
  fits.CompressImages(true);
  fits.BeginImage("MASK", LONG_IMG, axes);
  fits.Pixels(preproc.mask.flat());
  fits.CompressImages(rice);
  fits.BeginImage("READNOISE", FLOAT_IMG, axes);
  fits.Pixels(preproc.readnoise.flat());
  if (!preproc.fibermap.empty()) WriteFibermap(preproc.fibermap, fits);
  return fits.Write(path);
}

absl::Status WriteTruth(const Truth& truth, const std::string& path) {
  const int64_t spectra = static_cast<int64_t>(truth.fibres.size()),
                bins = static_cast<int64_t>(truth.wave.size());
  if (spectra == 0 || bins == 0 || truth.flux.shape(0) != spectra || truth.flux.shape(1) != bins) {
    return absl::InvalidArgumentError(
        absl::StrFormat("truth: FLUX does not have %d spectra x %d wavelengths", spectra, bins));
  }
  FitsBuilder fits(4 * truth.flux.size() + (1 << 20));
  fits.BeginImage("FLUX", FLOAT_IMG, {spectra, bins});
  fits.Text("BUNIT", "electron/Angstrom", "unit of FLUX");
  fits.Pixels(truth.flux.flat());
  fits.BeginImage("WAVELENGTH", DOUBLE_IMG, {bins});
  fits.Text("BUNIT", "Angstrom", "vacuum");
  fits.Pixels(absl::MakeConstSpan(truth.wave));
  fits.BeginImage("FIBER", LONG_IMG, {spectra});
  const std::vector<int32_t> fibres(truth.fibres.begin(), truth.fibres.end());
  fits.Pixels(absl::MakeConstSpan(fibres));
  return fits.Write(path);
}

}  // namespace spexd
