// The file of a coadd.
#include <cmath>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/median.h"
#include "core/base/status_macros.h"
#include "core/fits/frame_header.h"
#include "core/fits/hdu/cards.h"
#include "core/fits/hdu/fits_builder.h"
#include "core/fits/hdu/output_file.h"
#include "core/products/coadd/coadd_frames.h"
#include "core/products/number_table.h"

namespace spexd {
namespace {

absl::Status CheckCoaddedArms(const CoaddedFrames& coadd) {
  if (coadd.arms.empty()) return absl::InvalidArgumentError("coadd: has no arms");
  std::set<char> names;
  for (const CoaddedArm& arm : coadd.arms) {
    if (arm.name != 'B' && arm.name != 'R' && arm.name != 'Z')
      return absl::InvalidArgumentError(absl::StrFormat("coadd: arm '%c', must be B, R or Z", arm.name));
    if (!names.insert(arm.name).second)
      return absl::InvalidArgumentError(absl::StrFormat("coadd: has two arms %c, must have one", arm.name));
    const int64_t rows = arm.frame.spectra.flux.shape(0);
    if (static_cast<size_t>(rows) != coadd.target_ids.size()) {
      return absl::InvalidArgumentError(
          absl::StrFormat("coadd: arm %c has %d rows, must have one for each of the %d targets", arm.name,
                          rows, coadd.target_ids.size()));
    }
  }
  if (!coadd.arms[0].frame.origin.fibermap.has_value())
    return absl::InvalidArgumentError("coadd: has no FIBERMAP, which names its targets");
  return absl::OkStatus();
}

// The origin in the first header: that of the first arm.
FrameOrigin OriginOfCoadd(const CoaddedFrames& coadd) {
  FrameOrigin origin = coadd.arms[0].frame.origin;
  if (coadd.arms.size() > 1) {
    origin.image_cards =
        FilterCards(origin.image_cards, [](absl::string_view card) { return CardKeyword(card) != "CAMERA"; });
  }
  return origin;
}

void AddCoaddedArm(const CoaddedArm& arm, FitsBuilder* fits) {
  const Spectra& spectra = arm.frame.spectra;
  const int64_t rows = spectra.flux.shape(0), bins = spectra.flux.shape(1);
  const std::string name(1, arm.name);
  fits->BeginImage(name + "_WAVELENGTH", DOUBLE_IMG, {bins});
  fits->Text("BUNIT", "Angstrom", "vacuum");
  fits->Pixels(absl::MakeConstSpan(arm.frame.grid.Values()));
  fits->BeginImage(name + "_FLUX", FLOAT_IMG, {rows, bins});
  fits->Text("BUNIT", "electron/Angstrom", "unit of the flux");
  fits->Pixels(spectra.flux.flat());
  fits->BeginImage(name + "_IVAR", FLOAT_IMG, {rows, bins});
  fits->Pixels(spectra.ivar.flat());
  fits->BeginImage(name + "_MASK", ULONG_IMG, {rows, bins});
  fits->Pixels(spectra.mask.flat());
  fits->BeginImage(name + "_RESOLUTION", FLOAT_IMG, {rows, kResolutionDiagonals, bins});
  fits->Pixels(spectra.resolution.flat());
}

// Medians over the bins of each row with finite values, ivar > 0 and mask 0; 0 if there are no such bins.
struct RowMedians {
  std::vector<double> flux, snr;
};

RowMedians CoaddMediansOf(const Spectra& spectra) {
  RowMedians medians;
  std::vector<double> flux, snr;  // values of a row's bins
  for (int64_t row = 0; row < spectra.flux.shape(0); ++row) {
    flux.clear();
    snr.clear();
    for (int64_t j = 0; j < spectra.flux.shape(1); ++j) {
      const double value = spectra.flux(row, j), ivar = spectra.ivar(row, j);
      if (!(ivar > 0) || !std::isfinite(ivar) || !std::isfinite(value) || spectra.mask(row, j) != 0) continue;
      flux.push_back(value);
      snr.push_back(value * std::sqrt(ivar));
    }
    medians.flux.push_back(Median(flux));
    medians.snr.push_back(Median(snr));
  }
  return medians;
}

void AddCoaddScores(const CoaddedFrames& coadd, FitsBuilder* fits) {
  NumberTable table(static_cast<int64_t>(coadd.target_ids.size()));
  table.Add("TARGETID", coadd.target_ids);
  for (const CoaddedArm& arm : coadd.arms) {
    RowMedians medians = CoaddMediansOf(arm.frame.spectra);
    table.Add(absl::StrFormat("MEDIAN_COADD_FLUX_%c", arm.name), std::move(medians.flux),
              "electron/Angstrom");
    table.Add(absl::StrFormat("MEDIAN_COADD_SNR_%c", arm.name), std::move(medians.snr));
  }
  table.Write("SCORES", fits);
}

}  // namespace

absl::StatusOr<std::string> CoaddFile(const CoaddedFrames& coadd) {
  SPEXD_RETURN_IF_ERROR(CheckCoaddedArms(coadd));
  int64_t bytes = 1 << 20;
  for (const CoaddedArm& arm : coadd.arms)
    bytes += 4 * (3 * arm.frame.spectra.flux.size() + arm.frame.spectra.resolution.size());
  FitsBuilder fits(bytes);
  fits.BeginImage("PRIMARY", FLOAT_IMG, {});
  WriteOrigin(OriginOfCoadd(coadd), false, fits);
  fits.AddRawTable(*coadd.arms[0].frame.origin.fibermap);
  for (const CoaddedArm& arm : coadd.arms) AddCoaddedArm(arm, &fits);
  if (coadd.exposure_table.has_value()) fits.AddRawTable(*coadd.exposure_table);
  AddCoaddScores(coadd, &fits);
  return fits.Bytes();
}

absl::Status WriteCoadd(const CoaddedFrames& coadd, const std::string& path) {
  SPEXD_ASSIGN_OR_RETURN(const std::string bytes, CoaddFile(coadd));
  return WriteFileAtomically(path, bytes);
}

}  // namespace spexd
