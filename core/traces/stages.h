// The stages of a measurement of trace shifts, which CPUs and GPUs implement, and their common order.
#ifndef SPEXD_CORE_TRACES_STAGES_H_
#define SPEXD_CORE_TRACES_STAGES_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/model/psf.h"
#include "core/model/traces/trace_shifts.h"
#include "core/traces/rows/coarse.h"
#include "core/traces/shifts/options.h"
#include "core/traces/shifts/reference.h"
#include "core/traces/shifts/series.h"

namespace spexd::traces {

// The light of a reference about the wavelengths of a PSF's traces, and its strongest lines. It depends on
// the PSF only by the domain of the traces.
struct PreparedReference {
  PreparedReference(const ReferenceSpectrum& spectrum, const Psf& psf, const TraceShiftOptions& options);
  // The largest possible number of samples of `light`.
  static int MaxSamples(const Psf& psf);

  ReferenceLight light;
  std::vector<double> lines;  // Angstrom, strongest first
};

struct LineSeriesFit {
  SeriesFit fit;
  int lines = 0;  // number of the reference's lines that are seen in the frame
};

// The stages of core/traces/README.md for one image and one PSF. They keep row spectra, the common light and
// the change of profiles beside lines from one call to the next. Each call returns Cancelled once a stop is
// requested.
class Stages {
 public:
  Stages() = default;
  Stages(const Stages&) = delete;
  Stages& operator=(const Stages&) = delete;
  virtual ~Stages() = default;

  // Moves the PSF's traces by two series. The other stages work at these traces; FitLines takes its shift in
  // y from `trial`.
  virtual absl::Status SetTraces(const ShiftSeries& x, const ShiftSeries& y) = 0;
  virtual absl::StatusOr<CoarseShift> FindCoarseShift(int stride) = 0;
  // Passes over every stride-th row of the image, then measures dx of blocks of rows and fits their series.
  // `current`: the series before this fit.
  virtual absl::StatusOr<SeriesFit> FitRows(double profile_error, int stride, const ShiftSeries& current) = 0;
  // Finds the common spectrum from the row spectra of the last pass, and the fibres' shifts in y against it.
  virtual absl::Status FindCommonLight() = 0;
  // Fits the series of the shifts of FindCommonLight, only differences between fibres.
  virtual absl::StatusOr<SeriesFit> FitBetweenFibres(const ShiftSeries& current) = 0;
  // The shift in y, in pixels, at which the reference correlates best with the common spectrum.
  virtual absl::StatusOr<double> ScanShift(const PreparedReference& reference) = 0;
  // Measures shifts in y against the reference's lines, with traces moved in y by `trial`, and fits their
  // series.
  virtual absl::StatusOr<LineSeriesFit> FitLines(const PreparedReference& reference,
                                                 const ShiftSeries& trial) = 0;
  // Finds the change of profiles beside lines of the common spectrum, for later passes.
  virtual absl::Status FindBesideLines() = 0;
};

// InvalidArgument as for MeasureTraceShifts (measure.h).
absl::Status CheckTraceInputs(int rows, int columns, const Psf& psf, const TraceShiftOptions& options);

// Runs the stages in their order until the traces are found or refused. REQUIRES: CheckTraceInputs is OK, and
// the stages are of the same PSF and options.
absl::StatusOr<TraceShifts> MeasureInStages(const Psf& psf, const PreparedReference* reference,
                                            const TraceShiftOptions& options, Stages* stages);

}  // namespace spexd::traces

#endif  // SPEXD_CORE_TRACES_STAGES_H_
