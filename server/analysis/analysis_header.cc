#include "server/analysis/analysis_header.h"

#include "core/base/status_macros.h"
#include "proto/analysis_header.h"
#include "server/admission/string_limits.h"

namespace spexd {
namespace {

// Converts wavelength ranges. REQUIRES: CheckAnalysisHeader is OK.
std::vector<WavelengthRange> RangesOf(const v1::WavelengthRanges& ranges) {
  std::vector<WavelengthRange> excluded;
  for (int k = 0; k < ranges.first_size(); ++k) excluded.push_back({ranges.first(k), ranges.last(k)});
  return excluded;
}

RowSelection SelectionOf(const v1::RowFilter& rows) {
  RowSelection selection;
  if (rows.has_target_ids())
    selection.target_ids.emplace(rows.target_ids().ids().begin(), rows.target_ids().ids().end());
  if (rows.has_min_snr()) selection.min_snr = rows.min_snr();
  if (rows.has_min_exposure()) selection.min_exposure = rows.min_exposure();
  if (rows.has_max_exposure()) selection.max_exposure = rows.max_exposure();
  selection.object_types.assign(rows.object_types().begin(), rows.object_types().end());
  return selection;
}

}  // namespace

absl::StatusOr<AnalysisSpec> ToAnalysisSpec(const v1::AnalysisHeader& header) {
  SPEXD_RETURN_IF_ERROR(CheckStrings(header));
  SPEXD_RETURN_IF_ERROR(CheckAnalysisHeader(header));
  AnalysisSpec spec;
  JointTask& task = spec.task;
  task.velocities = header.has_templates();
  task.models = header.models();
  task.lines = header.lines();
  task.rows = SelectionOf(header.rows());
  task.select_by_redrock = header.rows().stars_by_redrock();
  task.per_target = header.per_target();
  if (header.has_coefficients()) task.coefficients = static_cast<int>(header.coefficients());
  if (header.has_exclude()) task.exclude = RangesOf(header.exclude());
  spec.arms.assign(header.arms().begin(), header.arms().end());
  spec.sky_subtracted = header.sky_subtracted();
  return spec;
}

}  // namespace spexd
