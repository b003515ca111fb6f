#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"
#include "core/fits/frame_header.h"
#include "core/fits/hdu/cards.h"
#include "core/fits/hdu/fits_file.h"
#include "core/fits/hdu/table.h"
#include "core/fits/readers.h"
#include "core/fits/spectra_hdus.h"

namespace spexd {
namespace {

constexpr absl::string_view kFluxEnd = "_FLUX";
constexpr size_t kMaxArmName = 8, kMaxArms = 16;

// The arm whose flux an HDU with this name holds; "" for other HDUs.
std::string ArmOfHdu(absl::string_view name) {
  if (!absl::EndsWith(name, kFluxEnd)) return "";
  const absl::string_view arm = name.substr(0, name.size() - kFluxEnd.size());
  const bool is_name = arm.size() <= kMaxArmName && std::all_of(arm.begin(), arm.end(), absl::ascii_isalnum);
  return is_name ? std::string(arm) : "";
}

// The arms in the order of their HDUs.
std::vector<std::string> ArmsOf(const FitsFile& file) {
  std::vector<std::string> arms;
  for (const Hdu& hdu : file.hdus()) {
    std::string arm = ArmOfHdu(hdu.name);
    if (!arm.empty()) arms.push_back(std::move(arm));
  }
  return arms;
}

absl::Status NoSpectra(const FitsFile& file) {
  return absl::InvalidArgumentError(
      absl::StrCat(file.name(), ": neither a frame (HDU FLUX) nor spectra (B_FLUX ..)"));
}

// Reads a table that has a row for each spectrum of the file.
absl::StatusOr<RawTable> ReadRowsTable(const Hdu& hdu, const SpectraArm& arm) {
  SPEXD_ASSIGN_OR_RETURN(RawTable table, ReadRawTable(hdu));
  const int64_t rows = arm.spectra.flux.shape(0);
  if (table.rows == rows) return table;
  return hdu.Error(absl::StrFormat("has %d rows, must have one for each of the %d spectra of %s_FLUX",
                                   table.rows, rows, arm.name));
}

absl::StatusOr<std::vector<SpectraArm>> ReadArms(const FitsFile& file, const Workers& workers) {
  SPEXD_ASSIGN_OR_RETURN(const std::vector<std::string> names, ArmsOfSpectra(file));
  std::vector<SpectraArm> arms;
  for (const std::string& name : names) {
    SPEXD_ASSIGN_OR_RETURN(
        CameraSpectra camera,
        ReadCameraSpectra(file, {.prefix = name + "_", .max_rows = kMaxTargetRows, .chi2pix = false},
                          workers));
    const int64_t rows = camera.spectra.flux.shape(0);
    if (!arms.empty() && rows != arms[0].spectra.flux.shape(0)) {
      return absl::InvalidArgumentError(
          absl::StrFormat("%s: %s_FLUX has %d rows, %s_FLUX has %d; all arms must have the rows of FIBERMAP",
                          file.name(), name, rows, arms[0].name, arms[0].spectra.flux.shape(0)));
    }
    arms.push_back({name, camera.grid, std::move(camera.spectra)});
  }
  return arms;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> ArmsOfSpectra(const FitsFile& file) {
  std::vector<std::string> names = ArmsOf(file);
  if (names.empty()) return NoSpectra(file);
  if (names.size() > kMaxArms) {
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: has spectra of %d arms, the limit is %d", file.name(), names.size(), kMaxArms));
  }
  for (auto name = names.begin(); name != names.end(); ++name) {
    if (std::find(names.begin(), name, *name) == name) continue;
    return absl::InvalidArgumentError(
        absl::StrFormat("%s: HDU %s_FLUX is there twice, must be once", file.name(), *name));
  }
  return names;
}

absl::StatusOr<SpectraKind> KindOfSpectra(const Source& source) {
  SPEXD_ASSIGN_OR_RETURN(const FitsFile file, FitsFile::Parse(source));
  if (file.Find({"FLUX"}) != nullptr) return SpectraKind::kFrame;
  if (!ArmsOf(file).empty()) return SpectraKind::kTargets;
  return NoSpectra(file);
}

absl::StatusOr<TargetSpectra> ReadTargetSpectra(const Source& source, const Workers& workers) {
  SPEXD_ASSIGN_OR_RETURN(const FitsFile file, FitsFile::Parse(source));
  TargetSpectra spectra;
  spectra.name = source.name().substr(source.name().rfind('/') + 1);
  SPEXD_ASSIGN_OR_RETURN(spectra.arms, ReadArms(file, workers));
  // Done before arms are sorted, because messages name the file's first arm.
  SPEXD_ASSIGN_OR_RETURN(const Hdu* fibermap, file.Get({"FIBERMAP"}));
  SPEXD_ASSIGN_OR_RETURN(spectra.fibermap, ReadRowsTable(*fibermap, spectra.arms[0]));
  if (const Hdu* scores = file.Find({"SCORES"})) {
    SPEXD_ASSIGN_OR_RETURN(spectra.scores, ReadRowsTable(*scores, spectra.arms[0]));
  }
  if (const Hdu* exposures = file.Find({"EXP_FIBERMAP"})) {
    SPEXD_ASSIGN_OR_RETURN(spectra.exposures, ReadRawTable(*exposures));
  }
  SortArms(&spectra.arms);
  const std::vector<std::string>& cards = file.hdus().front().cards;
  FrameOrigin origin;
  ReadOrigin(cards, origin);
  spectra.barycentric = origin.heliocentric_factor.has_value();
  spectra.cards = FilterCards(cards, [](absl::string_view card) { return !IsStructuralCard(card); });
  return spectra;
}

}  // namespace spexd
