#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/fits/hdu/cards.h"
#include "core/fits/hdu/fits_builder.h"
#include "core/fits/writers.h"

namespace spexd {
namespace {

// A column of numbers. The list has those of the pipeline's fibermaps, without which its steps do not run.
struct FibermapColumn {
  const char* name;
  const char* form;
  const char* unit;
  double (*value)(const FibermapRow& row);
};
constexpr FibermapColumn kNumberColumns[] = {
    {"FIBER", "1J", "", [](const FibermapRow& row) -> double { return row.fibre; }},
    {"TARGET_RA", "1D", "deg", [](const FibermapRow& row) { return row.target_ra; }},
    {"TARGET_DEC", "1D", "deg", [](const FibermapRow& row) { return row.target_dec; }},
    {"PETAL_LOC", "1I", "", [](const FibermapRow& row) -> double { return row.petal; }},
    {"DEVICE_LOC", "1J", "", [](const FibermapRow& row) -> double { return row.fibre; }},
    {"LOCATION", "1K", "", [](const FibermapRow& row) -> double { return 1000 * row.petal + row.fibre; }},
    {"FIBERSTATUS", "1J", "", [](const FibermapRow&) { return 0.0; }},
    {"TILEID", "1J", "", [](const FibermapRow& row) -> double { return row.tile_id; }},
    {"FIBER_RA", "1D", "deg", [](const FibermapRow& row) { return row.target_ra; }},
    {"FIBER_DEC", "1D", "deg", [](const FibermapRow& row) { return row.target_dec; }},
    {"FIBER_X", "1D", "mm", [](const FibermapRow& row) { return row.focal_x; }},
    {"FIBER_Y", "1D", "mm", [](const FibermapRow& row) { return row.focal_y; }},
    {"FIBERASSIGN_X", "1E", "mm", [](const FibermapRow& row) { return row.focal_x; }},
    {"FIBERASSIGN_Y", "1E", "mm", [](const FibermapRow& row) { return row.focal_y; }},
    {"DELTA_X", "1D", "mm", [](const FibermapRow&) { return 0.0; }},
    {"DELTA_Y", "1D", "mm", [](const FibermapRow&) { return 0.0; }},
    {"GAIA_PHOT_G_MEAN_MAG", "1E", "mag", [](const FibermapRow&) { return 0.0; }},  // 0: unknown
    {"GAIA_PHOT_BP_MEAN_MAG", "1E", "mag", [](const FibermapRow&) { return 0.0; }},
    {"GAIA_PHOT_RP_MEAN_MAG", "1E", "mag", [](const FibermapRow&) { return 0.0; }},
    {"EXPTIME", "1D", "s", [](const FibermapRow& row) { return row.exposure_seconds; }},
};

void WriteFibermap(const std::vector<FibermapRow>& rows, FitsBuilder& fits) {
  size_t width = 3;
  for (const FibermapRow& row : rows) width = std::max(width, row.object_type.size());
  std::vector<std::string> names = {"TARGETID", "OBJTYPE"}, forms = {"1K", absl::StrCat(width, "A")};
  for (const FibermapColumn& column : kNumberColumns) {
    names.push_back(column.name);
    forms.push_back(column.form);
  }
  fits.BeginTable("FIBERMAP", static_cast<int64_t>(rows.size()), names, forms);
  for (size_t k = 0; k < std::size(kNumberColumns); ++k) {
    const FibermapColumn& column = kNumberColumns[k];
    if (*column.unit != '\0') fits.Text(absl::StrCat("TUNIT", k + 3).c_str(), column.unit, "");
  }
  for (size_t k = 0; k < rows.size(); ++k) {
    const int64_t number = static_cast<int64_t>(k) + 1;
    fits.ColumnValues(1, number, absl::MakeConstSpan(&rows[k].target_id, 1));
    fits.ColumnText(2, number, rows[k].object_type);
  }
  std::vector<double> values(rows.size());
  for (size_t k = 0; k < std::size(kNumberColumns); ++k) {
    std::transform(rows.begin(), rows.end(), values.begin(), kNumberColumns[k].value);
    fits.ColumnValues(static_cast<int>(k) + 3, 1, absl::MakeConstSpan(values));
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
  if (rice) fits.CompressMultiplesOf(kIvarStep);
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
