#include "core/products/coadd_frames.h"

#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/analysis/coadd/shifted_coadd.h"
#include "core/analysis/velocity_units.h"
#include "core/base/status_macros.h"
#include "core/base/threads/parallel.h"
#include "core/fits/frame_header.h"
#include "core/fits/hdu/fits_builder.h"
#include "core/fits/hdu/output_file.h"
#include "core/fits/hdu/table_file.h"
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

// Rows of the frame's targets, and of every row its TARGETID and whether its spectrum is not its target's.
struct FrameTargets {
  std::vector<int> rows;
  std::vector<int64_t> ids;
  std::vector<bool> fatal;
};

absl::StatusOr<FrameTargets> TargetsOf(const Frame& frame, const std::string& name) {
  if (frame.spectra.resolution.shape(1) != kResolutionDiagonals) {
    return Named(name, absl::InvalidArgumentError(
                           absl::StrFormat("its resolution has %d diagonals, must have %d",
                                           frame.spectra.resolution.shape(1), kResolutionDiagonals)));
  }
  absl::StatusOr<FibreKinds> kinds = FibreKindsOf(frame);
  if (!kinds.ok()) return Named(name, kinds.status());
  absl::StatusOr<std::vector<int64_t>> ids = IntegerColumn(*frame.origin.fibermap, "TARGETID");
  if (!ids.ok()) return Named(name, ids.status());
  return FrameTargets{std::move(kinds->targets), *std::move(ids), std::move(kinds->fatal)};
}

struct RowOfFrame {
  size_t frame;
  int row;
};

// The exposures of each target, in the order in which the frames have them.
struct Targets {
  std::vector<int64_t> ids;                        // [target]
  std::vector<std::vector<RowOfFrame>> exposures;  // [target]
};

absl::StatusOr<Targets> FindTargets(const std::vector<Frame>& frames, const std::vector<std::string>& names) {
  Targets targets;
  std::unordered_map<int64_t, size_t> place;
  for (size_t f = 0; f < frames.size(); ++f) {
    SPEXD_ASSIGN_OR_RETURN(const FrameTargets found, TargetsOf(frames[f], names[f]));
    for (const int row : found.rows) {
      const int64_t id = found.ids[static_cast<size_t>(row)];
      const auto [at, fresh] = place.try_emplace(id, targets.ids.size());
      if (fresh) {
        targets.ids.push_back(id);
        targets.exposures.emplace_back();
      }
      if (!found.fatal[static_cast<size_t>(row)]) targets.exposures[at->second].push_back({f, row});
    }
  }
  if (targets.ids.empty()) return absl::InvalidArgumentError("coadd: the frames have no targets");
  return targets;
}

// A coadd without values yet.
CoaddedFrames EmptyCoadd(const WavelengthGrid& grid, const FrameOrigin& origin, int64_t count) {
  CoaddedFrames coadd;
  coadd.frame.grid = grid;
  coadd.frame.origin = origin;
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

CoaddFrameSums::CoaddFrameSums(State state) : state_(std::move(state)) {
  for (size_t t = 0; t < state_.targets.size(); ++t) place_[state_.targets[t].id] = t;
}

absl::StatusOr<int64_t> CoaddFrameSums::TargetsWith(const Frame& frame, const std::string& name) const {
  if (state_.grid.count > 0) SPEXD_RETURN_IF_ERROR(CheckSameGrid(name, frame.grid, state_.grid));
  SPEXD_ASSIGN_OR_RETURN(const FrameTargets targets, TargetsOf(frame, name));
  std::unordered_set<int64_t> fresh;
  for (const int row : targets.rows) {
    const int64_t id = targets.ids[static_cast<size_t>(row)];
    if (place_.count(id) == 0) fresh.insert(id);
  }
  return static_cast<int64_t>(place_.size() + fresh.size());
}

absl::Status CoaddFrameSums::Add(const Frame& frame, const std::string& name) {
  if (state_.grid.count > 0) SPEXD_RETURN_IF_ERROR(CheckSameGrid(name, frame.grid, state_.grid));
  SPEXD_ASSIGN_OR_RETURN(const FrameTargets targets, TargetsOf(frame, name));
  if (state_.grid.count == 0) {
    state_.grid = frame.grid;
    state_.origin = frame.origin;
    state_.origin.fibermap.reset();
    state_.origin.root_error.reset();  // of one exposure alone
  }
  for (const int row : targets.rows) {
    const int64_t id = targets.ids[static_cast<size_t>(row)];
    const auto [at, fresh] = place_.try_emplace(id, state_.targets.size());
    if (fresh) state_.targets.push_back({id, 0, CoaddSums(state_.grid.count)});
    if (targets.fatal[static_cast<size_t>(row)]) continue;
    Target& target = state_.targets[at->second];
    target.sums.Add({&frame.spectra, row});
    ++target.exposures;
  }
  return absl::OkStatus();
}

absl::StatusOr<CoaddedFrames> CoaddFrameSums::Result() const {
  const int64_t count = static_cast<int64_t>(state_.targets.size());
  if (count == 0) return absl::InvalidArgumentError("coadd: the frames have no targets");
  CoaddedFrames coadd = EmptyCoadd(state_.grid, state_.origin, count);
  for (int64_t t = 0; t < count; ++t) {
    const Target& target = state_.targets[static_cast<size_t>(t)];
    target.sums.Write(t, &coadd.frame.spectra);
    coadd.target_ids.push_back(target.id);
    coadd.exposures.push_back(target.exposures);
  }
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
  std::vector<std::vector<ShiftedExposure>> exposures(targets.ids.size());
  for (size_t t = 0; t < targets.ids.size(); ++t) {
    for (const auto [f, row] : targets.exposures[t]) {
      exposures[t].push_back({{&frames[f].spectra, row}, frames[f].grid, velocities[f][row]});
      const absl::Status fits = CheckShifted(exposures[t].back(), grid);
      if (!fits.ok()) return Named(names[f], fits);
    }
  }
  CoaddedFrames coadd = EmptyCoadd(grid, frames[0].origin, static_cast<int64_t>(targets.ids.size()));
  coadd.target_ids = targets.ids;
  for (const auto& of_target : exposures) coadd.exposures.push_back(static_cast<int64_t>(of_target.size()));
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
  NumberTable table(rows);
  table.Add("TARGETID", coadd.target_ids);
  table.Add("COADD_NUMEXP", coadd.exposures);
  table.Write("FIBERMAP", &fits);
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
