// The stages of a measurement of trace shifts, by a processor or by a GPU, and their order, which both share.
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

// The light of a reference about the wavelengths of a PSF's traces, and its strongest lines. Depends on the
// PSF by the domain of its traces alone.
struct PreparedReference {
  PreparedReference(const ReferenceSpectrum& spectrum, const Psf& psf, const TraceShiftOptions& options);
  // The most samples of `light` that there may be.
  static int MaxSamples(const Psf& psf);

  ReferenceLight light;
  std::vector<double> lines;  // Angstrom, strongest first
};

struct LineSeriesFit {
  SeriesFit fit;
  int lines = 0;  // of the reference, seen in the frame
};

// The stages of core/traces/README.md for one image and one PSF. Row spectra, the common light and what lines
// do beside them stay with the stages from one call to the next. Each call returns Cancelled once a stop is
// requested.
class Stages {
 public:
  Stages() = default;
  Stages(const Stages&) = delete;
  Stages& operator=(const Stages&) = delete;
  virtual ~Stages() = default;

  // Moves the PSF's traces by two series. The other stages, but FitLines in y, are at these traces.
  virtual absl::Status SetTraces(const ShiftSeries& x, const ShiftSeries& y) = 0;
  virtual absl::StatusOr<CoarseShift> FindCoarseShift(int stride) = 0;
  // A pass over every stride-th row of the image, then dx of blocks of rows and its series; `current` is the
  // series so far.
  virtual absl::StatusOr<SeriesFit> FitRows(double profile_error, int stride, const ShiftSeries& current) = 0;
  // From the row spectra of the last pass: the common spectrum, and the fibres' shifts in y against it.
  virtual absl::Status FindCommonLight() = 0;
  // The series of these shifts, differences between fibres alone.
  virtual absl::StatusOr<SeriesFit> FitBetweenFibres(const ShiftSeries& current) = 0;
  // The shift in y at which the reference correlates best with the common spectrum.
  virtual absl::StatusOr<double> ScanShift(const PreparedReference& reference) = 0;
  // Shifts in y against the reference's lines, with traces moved in y by `trial`, and their series.
  virtual absl::StatusOr<LineSeriesFit> FitLines(const PreparedReference& reference,
                                                 const ShiftSeries& trial) = 0;
  // What the lines of the common spectrum do to profiles beside them, for later passes.
  virtual absl::Status FindBesideLines() = 0;
};

// InvalidArgument as MeasureTraceShifts (measure.h) says.
absl::Status CheckTraceInputs(int rows, int columns, const Psf& psf, const TraceShiftOptions& options);

// Takes the stages in their order until the traces are found or refused. REQUIRES: CheckTraceInputs, stages
// of the same PSF and options.
absl::StatusOr<TraceShifts> MeasureInStages(const Psf& psf, const PreparedReference* reference,
                                            const TraceShiftOptions& options, Stages* stages);

}  // namespace spexd::traces

#endif  // SPEXD_CORE_TRACES_STAGES_H_
