#include "core/products/coadd_frames.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <unordered_map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/analysis/coadd/shifted_coadd.h"
#include "core/analysis/velocity_units.h"
#include "core/base/digest/crc32c.h"
#include "core/base/status_macros.h"
#include "core/base/threads/parallel.h"
#include "core/fits/frame_header.h"
#include "core/fits/hdu/cards.h"
#include "core/fits/hdu/fits_builder.h"
#include "core/fits/hdu/output_file.h"
#include "core/fits/hdu/source.h"
#include "core/fits/hdu/table_file.h"
#include "core/fits/readers.h"
#include "core/frame/barycentric.h"
#include "core/frame/summary.h"
#include "core/products/analyse.h"
#include "core/products/number_table.h"
#include "core/products/same_grid.h"

namespace spexd {
namespace {

absl::Status Named(const std::string& name, const absl::Status& status) {
  return absl::InvalidArgumentError(absl::StrCat(name, ": ", status.message()));
}

// Rows of the frame's targets, and of every row what its fibermap says, its fibre and whether its spectrum is
// not its target's.
struct FrameTargets {
  std::vector<int> rows;
  std::vector<CoaddedTarget> targets;
  std::vector<bool> fatal;
  AddedExposure exposure;
};

// What two readings of the same light share.
std::string ExposureOf(const Frame& frame) {
  const std::vector<std::string>& cards = frame.origin.image_cards;
  if (const std::optional<double> number = FindNumber(cards, "EXPID")) {
    return absl::StrFormat("%.0f of camera %s", *number, FindString(cards, "CAMERA").value_or("?"));
  }
  const auto bytes = [](const auto& values) {
    return absl::string_view(reinterpret_cast<const char*>(values.data()),
                             static_cast<size_t>(values.size()) * sizeof(values.flat()[0]));
  };
  return absl::StrFormat("of fluxes %08x",
                         ExtendCrc32c(Crc32c(bytes(frame.spectra.flux)), bytes(frame.spectra.ivar)));
}

// InvalidArgument that names the frame where one of these has its light already.
absl::Status CheckNew(const AddedExposure& exposure, const std::vector<AddedExposure>& added) {
  for (const AddedExposure& other : added) {
    if (other.exposure != exposure.exposure) continue;
    std::vector<int64_t> both;
    std::set_intersection(exposure.fibres.begin(), exposure.fibres.end(), other.fibres.begin(),
                          other.fibres.end(), std::back_inserter(both));
    if (both.empty()) continue;
    return Named(exposure.name,
                 absl::InvalidArgumentError(absl::StrFormat(
                     "exposure %s is in the coadd already, from %s, with fibre %d: its light would count "
                     "twice; name every exposure once",
                     exposure.exposure, other.name, both[0])));
  }
  return absl::OkStatus();
}

// Sets a field of each target from a column; nothing where the table has no such column.
template <typename Column, typename Field>
void TakeColumn(const absl::StatusOr<Column>& column, Field CoaddedTarget::*field,
                std::vector<CoaddedTarget>* targets) {
  if (!column.ok()) return;
  for (size_t row = 0; row < targets->size(); ++row) (*targets)[row].*field = (*column)[row];
}

absl::StatusOr<FrameTargets> TargetsOf(const Frame& frame, const std::string& name) {
  if (frame.spectra.resolution.shape(1) != kResolutionDiagonals) {
    return Named(name, absl::InvalidArgumentError(
                           absl::StrFormat("its resolution has %d diagonals, must have %d",
                                           frame.spectra.resolution.shape(1), kResolutionDiagonals)));
  }
  absl::StatusOr<FibreKinds> kinds = FibreKindsOf(frame);
  if (!kinds.ok()) return Named(name, kinds.status());
  const RawTable& fibermap = *frame.origin.fibermap;
  const absl::StatusOr<std::vector<int64_t>> ids = IntegerColumn(fibermap, "TARGETID");
  if (!ids.ok()) return Named(name, ids.status());
  std::vector<CoaddedTarget> targets(ids->size());
  TakeColumn(ids, &CoaddedTarget::id, &targets);
  TakeColumn(TextColumn(fibermap, "OBJTYPE"), &CoaddedTarget::type, &targets);
  TakeColumn(IntegerColumn(fibermap, StatusColumn(fibermap)), &CoaddedTarget::status, &targets);
  TakeColumn(NumberColumn(fibermap, "TARGET_RA"), &CoaddedTarget::ra, &targets);
  TakeColumn(NumberColumn(fibermap, "TARGET_DEC"), &CoaddedTarget::dec, &targets);
  AddedExposure exposure{ExposureOf(frame), name, {}};
  const absl::StatusOr<std::vector<int64_t>> fibres = IntegerColumn(fibermap, "FIBER");
  for (size_t row = 0; row < targets.size(); ++row)
    exposure.fibres.push_back(fibres.ok() ? (*fibres)[row] : frame.fibres.first + static_cast<int64_t>(row));
  std::sort(exposure.fibres.begin(), exposure.fibres.end());
  return FrameTargets{std::move(kinds->targets), std::move(targets), std::move(kinds->fatal),
                      std::move(exposure)};
}

// Joins what an exposure's fibermap says of a target with what others say. `added`: its spectrum counts.
void Join(const CoaddedTarget& exposure, bool added, CoaddedTarget* target) {
  target->status &= exposure.status;
  target->exposures += added ? 1 : 0;
}

struct RowOfFrame {
  size_t frame;
  int row;
};

// The exposures of each target, in the order in which the frames have them.
struct Targets {
  std::vector<CoaddedTarget> targets;
  std::vector<std::vector<RowOfFrame>> exposures;  // [target]
};

absl::StatusOr<Targets> FindTargets(const std::vector<Frame>& frames, const std::vector<std::string>& names) {
  Targets targets;
  std::unordered_map<int64_t, size_t> position;
  std::vector<AddedExposure> added;
  for (size_t f = 0; f < frames.size(); ++f) {
    SPEXD_ASSIGN_OR_RETURN(FrameTargets found, TargetsOf(frames[f], names[f]));
    SPEXD_RETURN_IF_ERROR(CheckNew(found.exposure, added));
    added.push_back(std::move(found.exposure));
    for (const int row : found.rows) {
      const CoaddedTarget& target = found.targets[static_cast<size_t>(row)];
      const auto [at, fresh] = position.try_emplace(target.id, targets.targets.size());
      if (fresh) {
        targets.targets.push_back(target);
        targets.exposures.emplace_back();
      }
      const bool good = !found.fatal[static_cast<size_t>(row)];
      Join(target, good, &targets.targets[at->second]);
      if (good) targets.exposures[at->second].push_back({f, row});
    }
  }
  if (targets.targets.empty()) return absl::InvalidArgumentError("coadd: the frames have no targets");
  return targets;
}

// A table as ReadTableHdu reads it from a file.
absl::StatusOr<RawTable> FibermapOf(const std::vector<CoaddedTarget>& targets) {
  NumberTable table(static_cast<int64_t>(targets.size()));
  table.Add("TARGETID", targets, [](const CoaddedTarget& target) { return target.id; });
  table.Add(
      "TARGET_RA", targets, [](const CoaddedTarget& target) { return target.ra; }, "deg");
  table.Add(
      "TARGET_DEC", targets, [](const CoaddedTarget& target) { return target.dec; }, "deg");
  table.Add("OBJTYPE", targets, [](const CoaddedTarget& target) { return target.type; });
  table.Add("COADD_FIBERSTATUS", targets, [](const CoaddedTarget& target) { return target.status; });
  table.Add("COADD_NUMEXP", targets, [](const CoaddedTarget& target) { return target.exposures; });
  FitsBuilder fits(1 << 20);
  fits.BeginImage("PRIMARY", FLOAT_IMG, {});
  table.Write("FIBERMAP", &fits);
  SPEXD_ASSIGN_OR_RETURN(std::string bytes, fits.Bytes());
  SPEXD_ASSIGN_OR_RETURN(const Source source, Source::FromBytes("FIBERMAP", std::move(bytes)));
  return ReadTableHdu(source, "FIBERMAP");
}

// A coadd without values yet.
absl::StatusOr<CoaddedFrames> EmptyCoadd(const WavelengthGrid& grid, const FrameOrigin& origin,
                                         const std::vector<CoaddedTarget>& targets) {
  const auto count = static_cast<int64_t>(targets.size());
  CoaddedFrames coadd;
  coadd.frame.grid = grid;
  coadd.frame.origin = origin;
  coadd.frame.origin.traces.reset();  // those of one exposure
  SPEXD_ASSIGN_OR_RETURN(coadd.frame.origin.fibermap, FibermapOf(targets));
  for (const CoaddedTarget& target : targets) {
    coadd.target_ids.push_back(target.id);
    coadd.exposures.push_back(target.exposures);
  }
  coadd.frame.fibres = {0, static_cast<int>(count)};
  Spectra& to = coadd.frame.spectra;
  to.flux.Assign({count, grid.count});
  to.ivar.Assign({count, grid.count});
  to.mask.Assign({count, grid.count});
  to.chi2pix.Assign({count, grid.count});
  to.resolution.Assign({count, kResolutionDiagonals, grid.count});
  return coadd;
}

absl::StatusOr<double> BarycentricShift(const Frame& frame) {
  if (frame.origin.heliocentric_factor.has_value() && *frame.origin.heliocentric_factor != 1) {
    return absl::InvalidArgumentError(
        absl::StrFormat("HELIOCOR is %.9g: its wavelengths are barycentric already, and need no shift",
                        *frame.origin.heliocentric_factor));
  }
  SPEXD_ASSIGN_OR_RETURN(const Pointing pointing,
                         FindPointing(frame.origin.image_cards, frame.origin.fibermap->cards));
  SPEXD_ASSIGN_OR_RETURN(const double factor, BarycentricFactor(pointing));
  return kLightSpeed * (1 - factor * factor) / (1 + factor * factor);
}

// The velocity of each row of a frame. REQUIRES: the frame has a fibermap.
absl::StatusOr<std::vector<double>> VelocitiesOf(const Frame& frame, size_t index,
                                                 const ShiftSource& shifts) {
  if (!shifts.column.empty()) return NumberColumn(*frame.origin.fibermap, shifts.column);
  double velocity = 0;
  if (shifts.barycentric) {
    SPEXD_ASSIGN_OR_RETURN(velocity, BarycentricShift(frame));
  } else {
    velocity = shifts.velocities[index];
  }
  return std::vector<double>(static_cast<size_t>(frame.spectra.flux.shape(0)), velocity);
}

}  // namespace

absl::Status CoaddFrameSums::Add(const Frame& frame, const std::string& name) {
  if (grid_.count > 0) SPEXD_RETURN_IF_ERROR(CheckSameGrid(name, frame.grid, grid_));
  SPEXD_ASSIGN_OR_RETURN(FrameTargets found, TargetsOf(frame, name));
  SPEXD_RETURN_IF_ERROR(CheckNew(found.exposure, added_));
  if (grid_.count == 0) {
    grid_ = frame.grid;
    origin_ = frame.origin;
    origin_.fibermap.reset();
    for (std::optional<double>* of_one_exposure :
         {&origin_.root_error, &origin_.chi2pix_median, &origin_.chi2pix_outliers})
      of_one_exposure->reset();
  }
  for (const int row : found.rows) {
    const CoaddedTarget& exposure = found.targets[static_cast<size_t>(row)];
    const auto [at, fresh] = position_.try_emplace(exposure.id, targets_.size());
    if (fresh) targets_.push_back({exposure, CoaddSums(grid_.count)});
    Target& target = targets_[at->second];
    const bool good = !found.fatal[static_cast<size_t>(row)];
    Join(exposure, good, &target.target);
    if (good) target.sums.Add({&frame.spectra, row});
  }
  added_.push_back(std::move(found.exposure));
  return absl::OkStatus();
}

absl::StatusOr<CoaddedFrames> CoaddFrameSums::Result() const {
  const int64_t count = static_cast<int64_t>(targets_.size());
  if (count == 0) return absl::InvalidArgumentError("coadd: the frames have no targets");
  std::vector<CoaddedTarget> targets;
  for (const Target& target : targets_) targets.push_back(target.target);
  SPEXD_ASSIGN_OR_RETURN(CoaddedFrames coadd, EmptyCoadd(grid_, origin_, targets));
  for (int64_t t = 0; t < count; ++t) targets_[static_cast<size_t>(t)].sums.Write(t, &coadd.frame.spectra);
  return coadd;
}

absl::StatusOr<CoaddedFrames> CoaddShiftedFrames(const std::vector<Frame>& frames,
                                                 const std::vector<std::string>& names,
                                                 const ShiftSource& shifts, int threads) {
  if (frames.empty()) return absl::InvalidArgumentError("coadd: there are no frames");
  if (shifts.column.empty() && !shifts.barycentric && shifts.velocities.size() != frames.size()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("velocities: there are %d for %d frames, must be one a frame",
                        shifts.velocities.size(), frames.size()));
  }
  SPEXD_ASSIGN_OR_RETURN(const Targets targets, FindTargets(frames, names));
  const WavelengthGrid& grid = frames[0].grid;
  std::vector<std::vector<double>> velocities;  // [frame][row]
  for (size_t f = 0; f < frames.size(); ++f) {
    absl::StatusOr<std::vector<double>> of_rows = VelocitiesOf(frames[f], f, shifts);
    if (!of_rows.ok()) return Named(names[f], of_rows.status());
    velocities.push_back(*std::move(of_rows));
  }
  std::vector<std::vector<ShiftedExposure>> exposures(targets.targets.size());
  for (size_t t = 0; t < exposures.size(); ++t) {
    for (const auto [f, row] : targets.exposures[t]) {
      exposures[t].push_back({{&frames[f].spectra, row}, frames[f].grid, velocities[f][row]});
      const absl::Status fits = CheckShifted(exposures[t].back(), grid);
      if (!fits.ok()) return Named(names[f], fits);
    }
  }
  SPEXD_ASSIGN_OR_RETURN(CoaddedFrames coadd, EmptyCoadd(grid, frames[0].origin, targets.targets));
  SPEXD_RETURN_IF_ERROR(ParallelFor(static_cast<int64_t>(exposures.size()), threads, [&](int64_t t) {
    CoaddShifted(exposures[t], grid, t, &coadd.frame.spectra);
    return absl::OkStatus();
  }));
  return coadd;
}

absl::StatusOr<std::string> CoaddFile(const CoaddedFrames& coadd) {
  const Spectra& spectra = coadd.frame.spectra;
  const int64_t rows = spectra.flux.shape(0), bins = spectra.flux.shape(1);
  const WavelengthGrid& grid = coadd.frame.grid;
  const std::string band(1, BandOf(grid));
  FitsBuilder fits(4 * (3 * spectra.flux.size() + spectra.resolution.size()) + (1 << 20));
  fits.BeginImage("PRIMARY", FLOAT_IMG, {});
  WriteOrigin(coadd.frame.origin, false, fits);
  if (!coadd.frame.origin.fibermap.has_value())
    return absl::InvalidArgumentError("coadd: has no FIBERMAP, which names its targets");
  fits.AddRawTable(*coadd.frame.origin.fibermap);
  fits.BeginImage(band + "_WAVELENGTH", DOUBLE_IMG, {bins});
  fits.Text("BUNIT", "Angstrom", "vacuum");
  fits.Pixels(absl::MakeConstSpan(grid.Values()));
  fits.BeginImage(band + "_FLUX", FLOAT_IMG, {rows, bins});
  fits.Text("BUNIT", "electron/Angstrom", "unit of the flux");
  fits.Pixels(spectra.flux.flat());
  fits.BeginImage(band + "_IVAR", FLOAT_IMG, {rows, bins});
  fits.Pixels(spectra.ivar.flat());
  fits.BeginImage(band + "_MASK", ULONG_IMG, {rows, bins});
  fits.Pixels(spectra.mask.flat());
  fits.BeginImage(band + "_RESOLUTION", FLOAT_IMG, {rows, kResolutionDiagonals, bins});
  fits.Pixels(spectra.resolution.flat());
  return fits.Bytes();
}

absl::Status WriteCoadd(const CoaddedFrames& coadd, const std::string& path) {
  SPEXD_ASSIGN_OR_RETURN(const std::string bytes, CoaddFile(coadd));
  return WriteFileAtomically(path, bytes);
}

}  // namespace spexd
