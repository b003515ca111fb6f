#include "core/products/joint/row_selection.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <map>
#include <regex>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "core/base/median.h"
#include "core/base/status_macros.h"
#include "core/base/text.h"
#include "core/fits/hdu/table_file.h"
#include "core/products/analyse.h"
#include "core/products/joint/target_bits.h"

namespace spexd {
namespace {

constexpr int64_t kAllowedStatus = int64_t{1} << 3      // RESTRICTED
                                   | int64_t{1} << 20;  // VARIABLE
constexpr double kNoSnr = -1e9;
constexpr int64_t kMaxChoices = 5;  // in an expression; each multiplies the time by up to a name's length

// A selection, from which rows are removed.
class Rows {
 public:
  explicit Rows(int64_t count) : selected_(static_cast<size_t>(count), true) {}

  template <typename Good>
  void Keep(const Good& good) {
    for (size_t row = 0; row < selected_.size(); ++row)
      if (selected_[row]) selected_[row] = good(row);
  }
  // Keeps the rows whose value in a column of integers is good, if the table has the column.
  template <typename Good>
  absl::Status KeepWhere(const RawTable& table, const char* column, const Good& good) {
    if (!HasColumn(table, column)) return absl::OkStatus();
    SPEXD_ASSIGN_OR_RETURN(const std::vector<int64_t> values, IntegerColumn(table, column));
    Keep([&](size_t row) { return good(values[row]); });
    return absl::OkStatus();
  }
  std::vector<int> selected() const {
    std::vector<int> rows;
    for (size_t row = 0; row < selected_.size(); ++row)
      if (selected_[row]) rows.push_back(static_cast<int>(row));
    return rows;
  }

 private:
  std::vector<bool> selected_;
};

// The reason to refuse a regular expression without trying it, because the library takes exponential time for
// some; "" if it is accepted.
std::string Refused(const std::string& pattern) {
  if (pattern.empty() || pattern.size() > kMaxObjectTypeLength)
    return absl::StrFormat("has %d characters, must have 1 to %d", pattern.size(), kMaxObjectTypeLength);
  constexpr absl::string_view kRepeats = "*+?";
  int64_t choices = 0;
  for (size_t k = 0; k < pattern.size(); ++k) {
    const char next = k + 1 < pattern.size() ? pattern[k + 1] : '\0';
    const bool group =
        (pattern[k] == ')' && absl::StrContains(kRepeats, next)) || (pattern[k] == '(' && next == '?');
    if (group || absl::StrContains("{}\\", pattern[k]))
      return "may have no repeated groups, braces and backslashes; give several expressions instead";
    choices += pattern[k] == '|' || absl::StrContains(kRepeats, pattern[k]) ? 1 : 0;
  }
  if (choices <= kMaxChoices) return "";
  return absl::StrFormat("has %d of * + ? |, the limit is %d; give several expressions instead", choices,
                         kMaxChoices);
}

// Adds the bits whose names a regular expression matches from their beginning.
absl::Status AddBits(const std::string& pattern, std::map<std::string, int64_t>* bits) {
  const auto refused = [&pattern](const std::string& why) {
    return absl::InvalidArgumentError(absl::StrCat("object type \"", ForMessage(pattern), "\": ", why));
  };
  if (const std::string why = Refused(pattern); !why.empty()) return refused(why);
  bool matches = false;
  try {
    const std::regex expression(pattern);
    for (const TargetBit& bit : kTargetBits) {
      if (!std::regex_search(bit.name, expression, std::regex_constants::match_continuous)) continue;
      (*bits)[bit.column] |= int64_t{1} << bit.bit;
      matches = true;
    }
  } catch (const std::regex_error& error) {
    return refused(absl::StrCat("is no regular expression: ", error.what()));
  }
  if (matches) return absl::OkStatus();
  return refused(
      "matches no name of a bit of DESI_TARGET; some are MWS_ANY, BGS_ANY, SCND_ANY, STD_FAINT, QSO");
}

// Whether each row has a bit of the patterns; true for all rows if there is no column of targets.
absl::StatusOr<std::vector<bool>> OfTypes(const RawTable& fibermap,
                                          const std::vector<std::string>& patterns) {
  if (patterns.size() > kMaxObjectTypes) {
    return absl::InvalidArgumentError(
        absl::StrFormat("object types: there are %d, the limit is %d", patterns.size(), kMaxObjectTypes));
  }
  std::map<std::string, int64_t> bits;  // bits of each column
  for (const TargetBit& bit : kTargetBits) bits[bit.column] = 0;
  for (const std::string& pattern : patterns) SPEXD_RETURN_IF_ERROR(AddBits(pattern, &bits));
  std::vector<bool> match(static_cast<size_t>(fibermap.rows), false);
  bool any_column = false;
  for (const auto& [column, mask] : bits) {
    if (!HasColumn(fibermap, column)) continue;
    any_column = true;
    SPEXD_ASSIGN_OR_RETURN(const std::vector<int64_t> values, IntegerColumn(fibermap, column));
    for (size_t row = 0; row < values.size(); ++row)
      if ((values[row] & mask) != 0) match[row] = true;
  }
  if (!any_column) match.assign(match.size(), true);
  return match;
}

// The values of the first column of SCORES that has an arm's S/N.
std::optional<std::vector<double>> SnrOfScores(const TargetSpectra& spectra, const std::string& name) {
  if (!spectra.scores.has_value()) return std::nullopt;
  for (const char* stem : {"MEDIAN_CALIB_SNR_", "MEDIAN_COADD_SNR_", "MEDIAN_COADD_FLUX_SNR_"}) {
    absl::StatusOr<std::vector<double>> column = NumberColumn(*spectra.scores, absl::StrCat(stem, name));
    if (column.ok()) return *std::move(column);
  }
  return std::nullopt;
}

void TakeLarger(const std::vector<double>& values, std::vector<double>* largest) {
  for (size_t row = 0; row < values.size(); ++row) (*largest)[row] = std::fmax((*largest)[row], values[row]);
}

// The largest S/N of all arms. For combined cameras, each camera that SCORES has counts.
std::vector<double> LargestSnr(const TargetSpectra& spectra) {
  std::vector<double> largest(static_cast<size_t>(spectra.fibermap.rows), kNoSnr);
  for (const SpectraArm& arm : spectra.arms) {
    bool by_camera = false;
    for (size_t k = 0; k < arm.name.size() && arm.name.size() > 1; ++k) {
      const auto camera = SnrOfScores(spectra, std::string(1, arm.name[k]));
      if (camera.has_value()) TakeLarger(*camera, &largest);
      by_camera |= camera.has_value();
    }
    if (!by_camera) TakeLarger(MedianSnr(spectra, arm, arm.name), &largest);
  }
  return largest;
}

absl::Status KeepTypesAndStars(const TargetSpectra& spectra, const RowSelection& selection, Rows* rows) {
  if (selection.object_types.empty() && selection.stars == nullptr) return absl::OkStatus();
  std::vector<bool> either(static_cast<size_t>(spectra.fibermap.rows), false);
  if (!selection.object_types.empty()) {
    SPEXD_ASSIGN_OR_RETURN(either, OfTypes(spectra.fibermap, selection.object_types));
  }
  if (selection.stars != nullptr) {
    const std::vector<bool> stars = MayBeStars(*selection.stars);
    for (size_t row = 0; row < std::min(stars.size(), either.size()); ++row)
      if (stars[row]) either[row] = true;
  }
  rows->Keep([&](size_t row) { return either[row]; });
  return absl::OkStatus();
}

absl::Status KeepExposures(const RawTable& fibermap, const RowSelection& selection, Rows* rows) {
  const int64_t above = selection.min_exposure.value_or(-1);
  const int64_t most = selection.max_exposure.value_or(std::numeric_limits<int64_t>::max());
  return rows->KeepWhere(fibermap, "EXPID",
                         [=](int64_t exposure) { return exposure > above && exposure <= most; });
}

absl::Status KeepTargets(const RawTable& fibermap, const std::vector<int64_t>& target_ids, Rows* rows) {
  const std::unordered_set<int64_t> wanted(target_ids.begin(), target_ids.end());
  SPEXD_ASSIGN_OR_RETURN(const std::vector<int64_t> targets, IntegerColumn(fibermap, "TARGETID"));
  rows->Keep([&](size_t row) { return wanted.count(targets[row]) > 0; });
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<int>> SelectRows(const TargetSpectra& spectra, const RowSelection& selection) {
  const RawTable& fibermap = spectra.fibermap;
  Rows rows(fibermap.rows);
  SPEXD_RETURN_IF_ERROR(KeepExposures(fibermap, selection, &rows));
  SPEXD_RETURN_IF_ERROR(rows.KeepWhere(fibermap, StatusColumn(fibermap),
                                       [](int64_t status) { return (status & ~kAllowedStatus) == 0; }));
  if (HasColumn(fibermap, "OBJTYPE")) {
    SPEXD_ASSIGN_OR_RETURN(const std::vector<std::string> types, TextColumn(fibermap, "OBJTYPE"));
    rows.Keep([&](size_t row) { return types[row] != "SKY" && types[row] != "BAD"; });
  }
  if (selection.target_ids.has_value())
    SPEXD_RETURN_IF_ERROR(KeepTargets(fibermap, *selection.target_ids, &rows));
  if (selection.min_snr.has_value()) {
    const std::vector<double> snr = LargestSnr(spectra);
    rows.Keep([&](size_t row) { return snr[row] > *selection.min_snr; });
  }
  SPEXD_RETURN_IF_ERROR(KeepTypesAndStars(spectra, selection, &rows));
  return rows.selected();
}

absl::StatusOr<std::vector<std::vector<int>>> GroupRows(const TargetSpectra& spectra,
                                                        const std::vector<int>& rows, bool per_target) {
  std::vector<std::vector<int>> groups;
  if (!per_target) {
    for (const int row : rows) groups.push_back({row});
    return groups;
  }
  SPEXD_ASSIGN_OR_RETURN(const std::vector<int64_t> targets, IntegerColumn(spectra.fibermap, "TARGETID"));
  std::unordered_map<int64_t, size_t> group_of;
  for (const int row : rows) {
    const auto [at, fresh] = group_of.try_emplace(targets[static_cast<size_t>(row)], groups.size());
    if (fresh) groups.emplace_back();
    groups[at->second].push_back(row);
  }
  return groups;
}

std::vector<double> MedianSnr(const TargetSpectra& spectra, const SpectraArm& arm, const std::string& name,
                              int64_t first_bin, std::optional<int64_t> end_bin) {
  if (std::optional<std::vector<double>> scores = SnrOfScores(spectra, name)) return *std::move(scores);
  const Spectra& s = arm.spectra;
  const int64_t end = end_bin.value_or(s.flux.shape(1));
  std::vector<double> snr, values;
  for (int64_t row = 0; row < s.flux.shape(0); ++row) {
    values.clear();
    for (int64_t bin = first_bin; bin < end; ++bin) {
      const double flux = s.flux(row, bin), ivar = s.ivar(row, bin);
      const bool data = s.mask(row, bin) == 0 && ivar > 0 && std::isfinite(ivar) && std::isfinite(flux);
      if (data) values.push_back(flux * std::sqrt(ivar));
    }
    snr.push_back(values.empty() ? kNoSnr : Median(values));
  }
  return snr;
}

}  // namespace spexd
