#include "core/products/coadd/coadd_index.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/digest/crc32c.h"
#include "core/base/status_macros.h"
#include "core/fits/hdu/cards.h"
#include "core/fits/hdu/fits_builder.h"
#include "core/fits/hdu/source.h"
#include "core/fits/hdu/table_file.h"
#include "core/fits/readers.h"
#include "core/products/analyse.h"
#include "core/products/number_table.h"

namespace spexd {
namespace {

// A text that is equal for two readings of the same light.
std::string LightOf(const Frame& frame) {
  const std::vector<std::string>& cards = frame.origin.image_cards;
  if (const std::optional<double> number = FindNumber(cards, "EXPID")) {
    const std::optional<std::string> camera = FindString(cards, "CAMERA");
    return camera ? absl::StrFormat("%.0f of camera %s", *number, *camera)
                  : absl::StrFormat("%.0f of arm %c", *number, ArmOf(frame));
  }
  const auto bytes = [](const auto& values) {
    return absl::string_view(reinterpret_cast<const char*>(values.data()),
                             static_cast<size_t>(values.size()) * sizeof(values.flat()[0]));
  };
  return absl::StrFormat("of fluxes %08x",
                         ExtendCrc32c(Crc32c(bytes(frame.spectra.flux)), bytes(frame.spectra.ivar)));
}

// The integer of a card, which may be written as text; nullopt if it is not an integer or too large to be
// exact in a double.
std::optional<int64_t> WholeNumberCard(const std::vector<std::string>& cards, const std::string& keyword) {
  constexpr double kMaxExact = 0x1p53;
  if (const std::optional<double> number = FindNumber(cards, keyword)) {
    if (!(std::abs(*number) <= kMaxExact) || *number != std::floor(*number)) return std::nullopt;
    return static_cast<int64_t>(*number);
  }
  int64_t value = 0;
  const std::optional<std::string> text = FindString(cards, keyword);
  return text.has_value() && absl::SimpleAtoi(*text, &value) ? std::optional(value) : std::nullopt;
}

// A frame's rows: their kinds, the fibermap's values, and their fibres.
struct FibermapRows {
  FibreKinds kinds;
  std::vector<CoaddTarget> targets;  // [row], without exposures
  std::vector<int64_t> fibres;       // [row]
  bool has_fibres = false, has_status = false;
};

// Sets a field of each target from a column. Does nothing if the table has no such column. Returns whether it
// has.
template <typename Column, typename Field>
bool TakeTargetColumn(const absl::StatusOr<Column>& column, Field CoaddTarget::*field,
                      std::vector<CoaddTarget>* targets) {
  if (!column.ok()) return false;
  for (size_t row = 0; row < targets->size(); ++row) (*targets)[row].*field = (*column)[row];
  return true;
}

absl::StatusOr<FibermapRows> RowsOfFibermap(const Frame& frame) {
  if (frame.spectra.resolution.shape(1) != kResolutionDiagonals) {
    return absl::InvalidArgumentError(absl::StrFormat("its resolution has %d diagonals, must have %d",
                                                      frame.spectra.resolution.shape(1),
                                                      kResolutionDiagonals));
  }
  FibermapRows rows;
  SPEXD_ASSIGN_OR_RETURN(rows.kinds, FibreKindsOf(frame));
  const RawTable& fibermap = *frame.origin.fibermap;
  const absl::StatusOr<std::vector<int64_t>> ids = IntegerColumn(fibermap, "TARGETID");
  if (!ids.ok()) return ids.status();
  rows.targets.resize(ids->size());
  TakeTargetColumn(ids, &CoaddTarget::id, &rows.targets);
  TakeTargetColumn(TextColumn(fibermap, "OBJTYPE"), &CoaddTarget::type, &rows.targets);
  rows.has_status =
      TakeTargetColumn(IntegerColumn(fibermap, StatusColumn(fibermap)), &CoaddTarget::status, &rows.targets);
  TakeTargetColumn(NumberColumn(fibermap, "TARGET_RA"), &CoaddTarget::ra, &rows.targets);
  TakeTargetColumn(NumberColumn(fibermap, "TARGET_DEC"), &CoaddTarget::dec, &rows.targets);
  absl::StatusOr<std::vector<int64_t>> fibres = IntegerColumn(fibermap, "FIBER");
  rows.has_fibres = fibres.ok();
  if (fibres.ok()) {
    rows.fibres = *std::move(fibres);
  } else {
    for (size_t row = 0; row < rows.targets.size(); ++row)
      rows.fibres.push_back(frame.fibres.first + static_cast<int64_t>(row));
  }
  return rows;
}

// The table in the form that ReadTableHdu gives after a file was written.
absl::StatusOr<RawTable> TableAsInFile(const NumberTable& table, const char* hdu) {
  FitsBuilder fits(1 << 20);
  fits.BeginImage("PRIMARY", FLOAT_IMG, {});
  table.Write(hdu, &fits);
  SPEXD_ASSIGN_OR_RETURN(std::string bytes, fits.Bytes());
  SPEXD_ASSIGN_OR_RETURN(const Source source, Source::FromBytes(hdu, std::move(bytes)));
  return ReadTableHdu(source, hdu);
}

}  // namespace

absl::Status InFrame(const std::string& name, const absl::Status& status) {
  return absl::InvalidArgumentError(absl::StrCat(name, ": ", status.message()));
}

int64_t CoaddTarget::CountAdded() const {
  std::set<size_t> added;
  for (const TargetExposure& exposure : exposures) {
    if (exposure.added) added.insert(exposure.exposure);
  }
  return static_cast<int64_t>(added.size());
}

const CoaddIndex::Arm* CoaddIndex::FindArm(const Frame& frame) const {
  const char name = ArmOf(frame);
  const auto arm =
      std::find_if(arms_.begin(), arms_.end(), [name](const Arm& each) { return each.name == name; });
  return arm == arms_.end() ? nullptr : &*arm;
}

// InvalidArgument, naming the frame, if a frame before has the same light.
absl::Status CoaddIndex::CheckNew(const Light& light) const {
  for (const Light& other : lights_) {
    if (other.text != light.text) continue;
    std::vector<int64_t> both;
    std::set_intersection(light.fibres.begin(), light.fibres.end(), other.fibres.begin(), other.fibres.end(),
                          std::back_inserter(both));
    if (both.empty()) continue;
    return InFrame(light.frame, absl::InvalidArgumentError(absl::StrFormat(
                                    "exposure %s is in the coadd already, from %s, with fibre %d: its light "
                                    "would count twice; name every exposure once",
                                    light.text, other.frame, both[0])));
  }
  return absl::OkStatus();
}

// The number of the frame's exposure. It is a new one if no frame before is of that exposure.
size_t CoaddIndex::NumberOf(const std::vector<std::string>& cards, const Light& light) {
  const std::optional<double> number = FindNumber(cards, "EXPID");
  std::string text = number ? absl::StrFormat("%.0f", *number) : light.text;
  const auto at = std::find_if(exposures_.begin(), exposures_.end(),
                               [&text](const Exposure& each) { return each.text == text; });
  if (at != exposures_.end()) return static_cast<size_t>(at - exposures_.begin());
  exposures_.push_back({std::move(text), WholeNumberCard(cards, "EXPID"), WholeNumberCard(cards, "NIGHT")});
  return exposures_.size() - 1;
}

// Joins the values that a row of a frame gives for a target and its exposure with those of other rows.
void CoaddIndex::Join(const CoaddTarget& row, const TargetExposure& exposure, CoaddTarget* target) const {
  target->status &= row.status;
  std::vector<TargetExposure>& exposures = target->exposures;
  const auto at = std::find_if(exposures.begin(), exposures.end(), [&exposure](const TargetExposure& each) {
    return each.exposure == exposure.exposure && each.fibre == exposure.fibre;
  });
  if (at == exposures.end()) {
    exposures.push_back(exposure);
  } else {
    at->status |= exposure.status;
    at->added |= exposure.added;
  }
}

absl::StatusOr<CoaddIndex::FrameRows> CoaddIndex::Add(const Frame& frame, const std::string& name) {
  const absl::StatusOr<FibermapRows> found = RowsOfFibermap(frame);
  if (!found.ok()) return InFrame(name, found.status());
  Light light{LightOf(frame), name, found->fibres};
  std::sort(light.fibres.begin(), light.fibres.end());
  SPEXD_RETURN_IF_ERROR(CheckNew(light));

  const size_t exposure = NumberOf(frame.origin.image_cards, light);
  lights_.push_back(std::move(light));
  has_fibres_ &= found->has_fibres;
  has_status_ &= found->has_status;
  const Arm* arm = FindArm(frame);
  if (arm == nullptr) {
    arms_.push_back({ArmOf(frame), frame.grid, frame.origin});
    arms_.back().origin.fibermap.reset();
    arm = &arms_.back();
  }
  FrameRows rows;
  rows.arm = static_cast<size_t>(arm - arms_.data());
  for (const int row : found->kinds.targets) {
    const auto at_row = static_cast<size_t>(row);
    const CoaddTarget& target = found->targets[at_row];
    const auto [at, fresh] = position_.try_emplace(target.id, targets_.size());
    if (fresh) targets_.push_back(target);
    const bool good = !found->kinds.fatal[at_row];
    Join(target, {exposure, found->fibres[at_row], target.status, good}, &targets_[at->second]);
    rows.rows.push_back({row, at->second, good});
  }
  return rows;
}

absl::StatusOr<RawTable> CoaddIndex::Fibermap() const {
  NumberTable table(static_cast<int64_t>(targets_.size()));
  table.Add("TARGETID", targets_, [](const CoaddTarget& target) { return target.id; });
  table.Add(
      "TARGET_RA", targets_, [](const CoaddTarget& target) { return target.ra; }, "deg");
  table.Add(
      "TARGET_DEC", targets_, [](const CoaddTarget& target) { return target.dec; }, "deg");
  table.Add("OBJTYPE", targets_, [](const CoaddTarget& target) { return target.type; });
  table.Add("COADD_FIBERSTATUS", targets_, [](const CoaddTarget& target) { return target.status; });
  table.Add("COADD_NUMEXP", targets_, [](const CoaddTarget& target) { return target.CountAdded(); });
  return TableAsInFile(table, "FIBERMAP");
}

absl::StatusOr<std::optional<RawTable>> CoaddIndex::ExposureTable() const {
  bool has_nights = true;
  for (const Exposure& exposure : exposures_) {
    if (!exposure.number.has_value()) return std::nullopt;
    has_nights &= exposure.night.has_value();
  }
  std::vector<int64_t> ids;
  std::vector<TargetExposure> rows;
  for (const CoaddTarget& target : targets_) {
    ids.insert(ids.end(), target.exposures.size(), target.id);
    rows.insert(rows.end(), target.exposures.begin(), target.exposures.end());
  }
  NumberTable table(static_cast<int64_t>(rows.size()));
  table.Add("TARGETID", std::move(ids));
  if (has_nights) {
    table.Add("NIGHT", rows, [this](const TargetExposure& row) { return *exposures_[row.exposure].night; });
  }
  table.Add("EXPID", rows, [this](const TargetExposure& row) { return *exposures_[row.exposure].number; });
  if (has_fibres_) table.Add("FIBER", rows, [](const TargetExposure& row) { return row.fibre; });
  if (has_status_) table.Add("FIBERSTATUS", rows, [](const TargetExposure& row) { return row.status; });
  SPEXD_ASSIGN_OR_RETURN(RawTable raw, TableAsInFile(table, "EXP_FIBERMAP"));
  return raw;
}

}  // namespace spexd
