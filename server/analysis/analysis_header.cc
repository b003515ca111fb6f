#include "server/analysis/analysis_header.h"

#include <cmath>
#include <cstdint>

#include "absl/strings/str_format.h"
#include "core/base/priority.h"
#include "core/base/status_macros.h"
#include "proto/job_header.h"
#include "server/admission/string_limits.h"

namespace spexd {
namespace {

constexpr int kMaxRanges = 100;     // of wavelengths
constexpr int kMaxArmLetters = 16;  // of all arms
constexpr uint32_t kMaxCoefficients = 21;

absl::Status CheckFields(const v1::AnalysisHeader& header) {
  SPEXD_RETURN_IF_ERROR(CheckFieldsAreKnown("header", header));
  SPEXD_RETURN_IF_ERROR(CheckFieldsAreKnown("rows", header.rows()));
  SPEXD_RETURN_IF_ERROR(CheckFieldsAreKnown("exclude", header.exclude()));
  for (const v1::SpectraSource& source : header.spectra())
    SPEXD_RETURN_IF_ERROR(CheckFieldsAreKnown("spectra", source));
  return CheckStrings(header);
}

// What must go together.
absl::Status CheckCombination(const v1::AnalysisHeader& header) {
  if (!header.has_templates() && !header.lines())
    return absl::InvalidArgumentError("nothing is asked for; set templates or lines");
  if (header.models() && !header.has_templates())
    return absl::InvalidArgumentError("models is set without templates, whose models they are");
  if (header.has_redrock() && header.spectra_size() > 1) {
    return absl::InvalidArgumentError(absl::StrFormat(
        "redrock is set with %d sources of spectra, must be with one file of targets' spectra",
        header.spectra_size()));
  }
  if (header.rows().stars_by_redrock() && !header.has_redrock())
    return absl::InvalidArgumentError("rows.stars_by_redrock is set without redrock, which tells the stars");
  return absl::OkStatus();
}

absl::StatusOr<std::vector<WavelengthRange>> RangesOf(const v1::WavelengthRanges& ranges) {
  if (ranges.first_size() != ranges.last_size() || ranges.first_size() > kMaxRanges) {
    return absl::InvalidArgumentError(
        absl::StrFormat("exclude has %d first and %d last wavelengths, must have as many, at most %d",
                        ranges.first_size(), ranges.last_size(), kMaxRanges));
  }
  std::vector<WavelengthRange> excluded;
  for (int k = 0; k < ranges.first_size(); ++k) {
    if (!(ranges.first(k) < ranges.last(k)) || !std::isfinite(ranges.last(k) - ranges.first(k))) {
      return absl::InvalidArgumentError(
          absl::StrFormat("exclude: from %g to %g Angstrom, the first must be below the last",
                          ranges.first(k), ranges.last(k)));
    }
    excluded.push_back({ranges.first(k), ranges.last(k)});
  }
  return excluded;
}

absl::StatusOr<RowSelection> SelectionOf(const v1::RowFilter& rows) {
  RowSelection selection;
  if (rows.has_target_ids())
    selection.target_ids.emplace(rows.target_ids().ids().begin(), rows.target_ids().ids().end());
  if (rows.has_min_snr()) {
    if (!std::isfinite(rows.min_snr())) {
      return absl::InvalidArgumentError(
          absl::StrFormat("rows.min_snr is %g, must be a finite number", rows.min_snr()));
    }
    selection.min_snr = rows.min_snr();
  }
  if (rows.has_min_exposure()) selection.min_exposure = rows.min_exposure();
  if (rows.has_max_exposure()) selection.max_exposure = rows.max_exposure();
  selection.object_types.assign(rows.object_types().begin(), rows.object_types().end());
  return selection;
}

}  // namespace

absl::StatusOr<AnalysisSpec> ToAnalysisSpec(const v1::AnalysisHeader& header) {
  SPEXD_RETURN_IF_ERROR(CheckFields(header));
  SPEXD_RETURN_IF_ERROR(CheckCombination(header));
  if (header.priority() < -kMaxPriority || header.priority() > kMaxPriority) {
    return absl::InvalidArgumentError(
        absl::StrFormat("priority is %d, must be %d to %d", header.priority(), -kMaxPriority, kMaxPriority));
  }
  AnalysisSpec spec;
  JointTask& task = spec.task;
  task.velocities = header.has_templates();
  task.models = header.models();
  task.lines = header.lines();
  SPEXD_ASSIGN_OR_RETURN(task.rows, SelectionOf(header.rows()));
  task.select_by_redrock = header.rows().stars_by_redrock();
  task.per_target = header.per_target();
  if (header.has_coefficients()) {
    if (header.coefficients() < 1 || header.coefficients() > kMaxCoefficients) {
      return absl::InvalidArgumentError(
          absl::StrFormat("coefficients is %d, must be 1 to %d", header.coefficients(), kMaxCoefficients));
    }
    task.coefficients = static_cast<int>(header.coefficients());
  }
  if (header.has_exclude()) {
    SPEXD_ASSIGN_OR_RETURN(task.exclude, RangesOf(header.exclude()));
  }
  if (header.arms_size() > kMaxArmLetters) {
    return absl::InvalidArgumentError(
        absl::StrFormat("arms has %d entries, must have at most %d", header.arms_size(), kMaxArmLetters));
  }
  spec.arms.assign(header.arms().begin(), header.arms().end());
  spec.sky_subtracted = header.sky_subtracted();
  return spec;
}

}  // namespace spexd
