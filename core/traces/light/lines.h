// Shifts in y against the lines of a reference.
#ifndef SPEXD_CORE_TRACES_LIGHT_LINES_H_
#define SPEXD_CORE_TRACES_LIGHT_LINES_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/threads/parallel.h"
#include "core/model/psf.h"
#include "core/traces/light/common_spectrum.h"
#include "core/traces/rows/row_pass.h"
#include "core/traces/rows/shape_table.h"
#include "core/traces/rows/trace_rows.h"
#include "core/traces/shifts/options.h"
#include "core/traces/shifts/reference.h"
#include "core/traces/shifts/series.h"

namespace spexd::traces {

// The shift in y, in pixels and common to all fibres, at which the reference correlates best with the common
// spectrum. Both are taken without their continuum and as square roots, so that no single line decides.
absl::StatusOr<double> ScanShift(const CommonLight& light, const ReferenceLight& reference, const Psf& psf,
                                 const TraceRows& rows, const TraceShiftOptions& options,
                                 const Workers& workers);

// Windows about lines, and the samples of a reference that reach into the windows.
struct LinePlan {
  int half = 0;                     // rows on either side of a line
  std::vector<double> wave, light;  // [sample]: Angstrom, increasing
};
// Plans the windows. `fibre`: one that has rows.
LinePlan PlanLines(const ReferenceLight& reference, const std::vector<double>& lines, const Psf& psf,
                   int fibre, const TraceShiftOptions& options);

// The fibre nearest to the middle that has rows.
int MiddleFibre(int fibres, const std::function<bool(int)>& has_rows);

// The number of trial shifts in a scan, a quarter of a pixel apart from -max_dy to max_dy, and the shift of
// the trial with the highest score.
int ScanTrials(const TraceShiftOptions& options);
double BestTrial(const std::vector<double>& score);

struct LineShifts {
  ShiftMeasurements shifts;  // one for each fibre and line
  int lines = 0;             // number of lines seen with a signal-to-noise above min_line_snr
};

// Measures shifts against `psf`. `rows` may be those of somewhat displaced traces.
//
// In a window about each line of `lines` (Angstrom) and in each fibre, flux = amplitude m + c0 + c1 z +
// moment dm with m the reference through the fibre's own spots. Then dy = moment / the line's amplitude,
// which is a robust mean over fibres. The lines of the reference need not have the ratios of those in the
// frame.
absl::StatusOr<LineShifts> MeasureLineShifts(const RowSpectra& spectra, const CommonLight& light,
                                             const ReferenceLight& reference,
                                             const std::vector<double>& lines, const Psf& psf,
                                             const ShapeTable& shapes, const TraceRows& rows,
                                             const std::vector<double>& positions,
                                             const TraceShiftOptions& options, const Workers& workers);

}  // namespace spexd::traces

#endif  // SPEXD_CORE_TRACES_LIGHT_LINES_H_
