// The stages of a measurement of trace shifts on CPUs.
#ifndef SPEXD_CORE_TRACES_PROCESSOR_STAGES_H_
#define SPEXD_CORE_TRACES_PROCESSOR_STAGES_H_

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/array.h"
#include "core/base/threads/parallel.h"
#include "core/model/image.h"
#include "core/model/psf.h"
#include "core/traces/light/common_spectrum.h"
#include "core/traces/rows/row_pass.h"
#include "core/traces/rows/shape_table.h"
#include "core/traces/rows/trace_rows.h"
#include "core/traces/stages.h"

namespace spexd::traces {

// Runs the stages on one image. Image, PSF, options and workers must outlive it.
class ProcessorStages : public Stages {
 public:
  ProcessorStages(const Image& image, const Psf& psf, const TraceShiftOptions& options,
                  const Workers& workers);

  absl::Status SetTraces(const ShiftSeries& x, const ShiftSeries& y) override;
  absl::StatusOr<CoarseShift> FindCoarseShift(int stride) override;
  absl::StatusOr<SeriesFit> FitRows(double profile_error, int stride, const ShiftSeries& current) override;
  absl::Status FindCommonLight() override;
  absl::StatusOr<SeriesFit> FitBetweenFibres(const ShiftSeries& current) override;
  absl::StatusOr<double> ScanShift(const PreparedReference& reference) override;
  absl::StatusOr<LineSeriesFit> FitLines(const PreparedReference& reference,
                                         const ShiftSeries& trial) override;
  absl::Status FindBesideLines() override;

 private:
  const Image& image_;
  const Psf& psf_;
  const TraceShiftOptions& options_;
  const Workers& workers_;
  const std::vector<double> positions_;
  std::optional<ShapeTable> shapes_;
  ShiftSeries x_;  // the series in x by which the traces are moved
  Psf moved_;
  std::optional<TraceRows> rows_;
  RowSpectra spectra_;
  CommonLight light_;
  CommonShifts common_;
  Array<float, 3> beside_lines_;
};

}  // namespace spexd::traces

#endif  // SPEXD_CORE_TRACES_PROCESSOR_STAGES_H_
