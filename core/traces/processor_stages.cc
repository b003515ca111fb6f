#include "core/traces/processor_stages.h"

#include "core/base/status_macros.h"
#include "core/model/psf_traces/move_psf.h"
#include "core/traces/light/lines.h"
#include "core/traces/rows/x_shifts.h"

namespace spexd::traces {

ProcessorStages::ProcessorStages(const Image& image, const Psf& psf, const TraceShiftOptions& options,
                                 const Workers& workers)
    : image_(image), psf_(psf), options_(options), workers_(workers), positions_(FibrePositions(psf)) {}

absl::Status ProcessorStages::SetTraces(const ShiftSeries& x, const ShiftSeries& y) {
  if (!shapes_.has_value()) {
    SPEXD_ASSIGN_OR_RETURN(shapes_, ShapeTable::Make(psf_, workers_));
  }
  x_ = x;
  moved_ = MovePsf(psf_, x, y);
  SPEXD_ASSIGN_OR_RETURN(rows_, TraceRows::Make(moved_, workers_));
  return absl::OkStatus();
}

absl::StatusOr<CoarseShift> ProcessorStages::FindCoarseShift(int stride) {
  return traces::FindCoarseShift(image_, *rows_, stride, options_, workers_);
}

absl::StatusOr<SeriesFit> ProcessorStages::FitRows(double profile_error, int stride,
                                                   const ShiftSeries& current) {
  const RowPass request = {.image = &image_,
                           .shapes = &*shapes_,
                           .rows = &*rows_,
                           .beside_lines = &beside_lines_,
                           .profile_error = profile_error,
                           .stride = stride};
  SPEXD_RETURN_IF_ERROR(traces::FitRows(request, options_, workers_, &spectra_));
  SPEXD_ASSIGN_OR_RETURN(const ShiftMeasurements measured,
                         MeasureXShifts(spectra_, *rows_, positions_, stride, options_, workers_));
  return FitSeries(measured, options_.degrees.x, current, SeriesTerms::kAll, options_);
}

absl::Status ProcessorStages::FindCommonLight() {
  SPEXD_ASSIGN_OR_RETURN(light_,
                         traces::FindCommonLight(spectra_, moved_, *shapes_, *rows_, options_, workers_));
  SPEXD_ASSIGN_OR_RETURN(common_,
                         MeasureCommonShifts(spectra_, light_, *rows_, positions_, options_, workers_));
  return absl::OkStatus();
}

absl::StatusOr<SeriesFit> ProcessorStages::FitBetweenFibres(const ShiftSeries& current) {
  return FitSeries(common_.shifts, options_.degrees.y, current, SeriesTerms::kBetweenFibres, options_);
}

absl::StatusOr<double> ProcessorStages::ScanShift(const PreparedReference& reference) {
  return traces::ScanShift(light_, reference.light, moved_, *rows_, options_, workers_);
}

absl::StatusOr<LineSeriesFit> ProcessorStages::FitLines(const PreparedReference& reference,
                                                        const ShiftSeries& trial) {
  SPEXD_ASSIGN_OR_RETURN(
      const LineShifts measured,
      MeasureLineShifts(spectra_, light_, reference.light, reference.lines, MovePsf(psf_, x_, trial),
                        *shapes_, *rows_, positions_, options_, workers_));
  return LineSeriesFit{FitSeries(measured.shifts, options_.degrees.y, trial, SeriesTerms::kAll, options_),
                       measured.lines};
}

absl::Status ProcessorStages::FindBesideLines() {
  SPEXD_ASSIGN_OR_RETURN(beside_lines_, traces::FindBesideLines(spectra_, light_, common_.throughput, moved_,
                                                                *shapes_, workers_));
  return absl::OkStatus();
}

}  // namespace spexd::traces
