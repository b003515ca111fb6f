#include "core/products/coadd/coadd_frames.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "core/analysis/coadd/shifted_coadd.h"
#include "core/analysis/velocity_units.h"
#include "core/base/status_macros.h"
#include "core/base/threads/parallel.h"
#include "core/fits/hdu/table_file.h"
#include "core/frame/barycentric.h"
#include "core/products/same_grid.h"

namespace spexd {
namespace {

// Assigns spectra of `count` targets without any data.
void AssignNoData(int64_t count, const WavelengthGrid& grid, Spectra* to) {
  to->flux.Assign({count, grid.count});
  to->ivar.Assign({count, grid.count});
  to->mask.Assign({count, grid.count}, kMaskNoData);
  to->chi2pix.Assign({count, grid.count});
  to->resolution.Assign({count, kResolutionDiagonals, grid.count});
}

// Makes a coadd without data, with arms in the order of the index. InvalidArgument if there is no target.
absl::StatusOr<CoaddedFrames> CoaddWithoutData(const CoaddIndex& index) {
  const auto count = static_cast<int64_t>(index.targets().size());
  if (count == 0) return absl::InvalidArgumentError("coadd: the frames have no targets");
  CoaddedFrames coadd;
  SPEXD_ASSIGN_OR_RETURN(const RawTable fibermap, index.Fibermap());
  SPEXD_ASSIGN_OR_RETURN(coadd.exposure_table, index.ExposureTable());
  for (const CoaddTarget& target : index.targets()) {
    coadd.target_ids.push_back(target.id);
    coadd.exposures.push_back(target.CountAdded());
  }
  for (const CoaddIndex::Arm& arm : index.arms()) {
    Frame& frame = coadd.arms.emplace_back(CoaddedArm{arm.name, {}}).frame;
    frame.grid = arm.grid;
    frame.origin = arm.origin;
    frame.origin.traces.reset();  // they are those of one exposure
    frame.origin.fibermap = fibermap;
    frame.fibres = {0, static_cast<int>(count)};
    AssignNoData(count, arm.grid, &frame.spectra);
  }
  return coadd;
}

void SortArms(CoaddedFrames* coadd) {
  std::stable_sort(coadd->arms.begin(), coadd->arms.end(), [](const CoaddedArm& a, const CoaddedArm& b) {
    return a.frame.grid.first < b.frame.grid.first;
  });
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

// The exposures of a target in an arm that are added; none if the arm has no frame of the target.
using ShiftedTarget = std::optional<std::vector<ShiftedExposure>>;

// The exposures of each target in each arm, [arm][target]. `frames` must outlive the result.
absl::StatusOr<std::vector<std::vector<ShiftedTarget>>> FindShifted(const std::vector<Frame>& frames,
                                                                    const std::vector<std::string>& names,
                                                                    const ShiftSource& shifts,
                                                                    CoaddIndex* index) {
  std::vector<CoaddIndex::FrameRows> rows;  // [frame]
  for (size_t f = 0; f < frames.size(); ++f) {
    SPEXD_ASSIGN_OR_RETURN(CoaddIndex::FrameRows of_frame, index->Add(frames[f], names[f]));
    rows.push_back(std::move(of_frame));
  }
  std::vector<std::vector<ShiftedTarget>> shifted(index->arms().size(),
                                                  std::vector<ShiftedTarget>(index->targets().size()));
  for (size_t f = 0; f < frames.size(); ++f) {
    const absl::StatusOr<std::vector<double>> velocities = VelocitiesOf(frames[f], f, shifts);
    if (!velocities.ok()) return InFrame(names[f], velocities.status());
    const size_t arm = rows[f].arm;
    for (const CoaddIndex::Row& row : rows[f].rows) {
      ShiftedTarget& target = shifted[arm][row.target];
      if (!target.has_value()) target.emplace();
      if (!row.good) continue;
      const double velocity = (*velocities)[static_cast<size_t>(row.row)];
      target->push_back({{&frames[f].spectra, row.row}, frames[f].grid, velocity});
      const absl::Status fits = CheckShifted(target->back(), index->arms()[arm].grid);
      if (!fits.ok()) return InFrame(names[f], fits);
    }
  }
  return shifted;
}

}  // namespace

absl::Status CoaddFrameSums::Add(const Frame& frame, const std::string& name) {
  if (const CoaddIndex::Arm* const arm = index_.FindArm(frame))
    SPEXD_RETURN_IF_ERROR(CheckSameGrid(name, frame.grid, arm->grid));
  SPEXD_ASSIGN_OR_RETURN(const CoaddIndex::FrameRows found, index_.Add(frame, name));
  sums_.resize(index_.arms().size());
  std::vector<std::optional<CoaddSums>>& sums = sums_[found.arm];
  sums.resize(index_.targets().size());
  for (const CoaddIndex::Row& row : found.rows) {
    if (!row.good) continue;
    std::optional<CoaddSums>& sum = sums[row.target];
    if (!sum.has_value()) sum.emplace(frame.grid.count);
    sum->Add({&frame.spectra, row.row});
  }
  return absl::OkStatus();
}

absl::StatusOr<CoaddedFrames> CoaddFrameSums::Result() const {
  SPEXD_ASSIGN_OR_RETURN(CoaddedFrames coadd, CoaddWithoutData(index_));
  for (size_t a = 0; a < sums_.size(); ++a) {
    Frame& frame = coadd.arms[a].frame;
    for (std::optional<double>* of_one_exposure :
         {&frame.origin.root_error, &frame.origin.chi2pix_median, &frame.origin.chi2pix_outliers})
      of_one_exposure->reset();
    for (size_t t = 0; t < sums_[a].size(); ++t) {
      if (sums_[a][t].has_value()) sums_[a][t]->Write(static_cast<int64_t>(t), &frame.spectra);
    }
  }
  SortArms(&coadd);
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
  CoaddIndex index;
  SPEXD_ASSIGN_OR_RETURN(const auto shifted, FindShifted(frames, names, shifts, &index));
  SPEXD_ASSIGN_OR_RETURN(CoaddedFrames coadd, CoaddWithoutData(index));
  for (size_t a = 0; a < shifted.size(); ++a) {
    Frame& frame = coadd.arms[a].frame;
    SPEXD_RETURN_IF_ERROR(ParallelFor(static_cast<int64_t>(shifted[a].size()), threads, [&](int64_t t) {
      const ShiftedTarget& target = shifted[a][static_cast<size_t>(t)];
      if (target.has_value()) CoaddShifted(*target, frame.grid, t, &frame.spectra);
      return absl::OkStatus();
    }));
  }
  SortArms(&coadd);
  return coadd;
}

}  // namespace spexd
