#include "core/job/job_traces.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/status_macros.h"
#include "core/extract/copy_image.h"
#include "core/fits/readers.h"
#include "core/model/psf_traces/move_psf.h"
#include "core/traces/measure.h"

namespace spexd {
namespace {

bool IsNegligible(const AxisShifts& axis, double limit) {
  return std::max(std::abs(axis.min), std::abs(axis.max)) < limit;
}

// A grid for jobs that extract nothing. It lies within the traces, which need not cover the range of the PSF.
WavelengthGrid OneBinWithin(const LegendreTable& trace) {
  return {.first = 0.5 * (trace.wave_min + trace.wave_max), .step = 0.8, .count = 1};
}

}  // namespace

absl::Status CheckTraces(const Psf& psf, const std::string& psf_name) {
  const absl::Status status = CheckTracesOf(psf, TraceShiftOptions());
  return absl::Status(status.code(),
                      status.ok() ? "" : absl::StrCat("PSF ", psf_name, ": ", status.message()));
}

int64_t TraceBytes(const Psf& psf, const JobPlan& plan, int threads) {
  return TraceShiftBytes(psf, TraceOptionsOf(plan), threads) + PsfBytes(psf);
}

std::string RefusedTraces(const TraceShifts& shifts) {
  const bool x = shifts.x.status == ShiftStatus::kRefused, y = shifts.y.status == ShiftStatus::kRefused;
  if (!x && !y) return "";
  absl::string_view reason = shifts.reason;
  if (!absl::ConsumePrefix(&reason, "x: ")) absl::ConsumePrefix(&reason, "y: ");
  return absl::StrCat("trace shifts in ", x && y ? "x and y" : x ? "x" : "y", " were not measured: ", reason);
}

TraceReport ReportTraces(const Psf& psf, TraceShifts shifts, const JobPlan& plan,
                         const std::string& reference_name) {
  TraceReport report;
  report.moved = !IsNegligible(shifts.x, kNegligibleShiftX) || !IsNegligible(shifts.y, kNegligibleShiftY);
  report.shifts = std::move(shifts);
  if (plan.trace_shifts != TraceAxes::kX) report.reference = reference_name;
  report.wave_min = psf.traces.x.wave_min;
  report.wave_max = psf.traces.x.wave_max;
  report.u = FibrePositions(psf);
  return report;
}

absl::StatusOr<TraceReport> MeasureFrameTraces(const JobSources& sources, const JobSpec& spec,
                                               const Workers& workers) {
  if (spec.trace_shifts == TraceAxes::kOff)
    return absl::InvalidArgumentError("trace_shifts is off, must be auto, x or xy");
  JobInput input;
  input.image_name = sources.image_name;
  input.psf_name = sources.psf_name;
  input.psf = sources.loaded_psf;
  if (input.psf == nullptr) {
    SPEXD_ASSIGN_OR_RETURN(Psf psf, ReadPsf(*sources.psf, workers.stop));
    input.psf = std::make_shared<const Psf>(std::move(psf));
  }
  if (sources.arrays.has_value()) {
    input.image_rows = sources.arrays->planes.rows;
    input.image_columns = sources.arrays->planes.columns;
    input.image_cards = sources.arrays->cards;
  } else {
    SPEXD_ASSIGN_OR_RETURN(PreprocHeader header, ReadPreprocHeader(*sources.image, workers));
    input.image_rows = header.rows;
    input.image_columns = header.columns;
    input.image_cards = std::move(header.image_cards);
  }
  JobSpec traces = spec;
  traces.grid = OneBinWithin(input.psf->traces.x);
  SPEXD_ASSIGN_OR_RETURN(const JobPlan plan, PlanJob(traces, input));
  SPEXD_ASSIGN_OR_RETURN(const Image image, sources.arrays.has_value()
                                                ? CopyImage(sources.arrays->planes, workers)
                                                : ReadPreprocImage(*sources.image, workers));
  SPEXD_RETURN_IF_ERROR(CheckTraces(*input.psf, input.psf_name));
  SPEXD_ASSIGN_OR_RETURN(
      TraceShifts shifts,
      MeasureTraceShifts(image, *input.psf, sources.trace_reference.get(), TraceOptionsOf(plan), workers));
  return ReportTraces(*input.psf, std::move(shifts), plan,
                      sources.trace_reference != nullptr ? sources.trace_reference_name : "");
}

}  // namespace spexd
