// Trace shifts of a frame: the displacement of its traces from those of a PSF.
#ifndef SPEXD_CORE_MODEL_TRACES_TRACE_SHIFTS_H_
#define SPEXD_CORE_MODEL_TRACES_TRACE_SHIFTS_H_

#include <array>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "core/base/array.h"

namespace spexd {

// A shift in pixels as a series over the CCD: sum over a, b of coeff(a, b) L_a(u) L_b(t) with Legendre
// polynomials L. u is the fibre's column at the middle of its wavelengths, scaled to [-1, 1] over the CCD
// (FibrePositions in core/model/psf_traces/move_psf.h). t is the wavelength, scaled to [-1, 1] over the
// domain of XTRACE and YTRACE. The shift is to be added to the PSF's traces.
using ShiftSeries = Array<double, 2>;

// The shift in pixels at (u, t). An empty series is 0.
double EvaluateShift(const ShiftSeries& series, double u, double t);

enum class ShiftStatus {
  kNone,      // not asked for
  kOk,        // measured
  kWeak,      // measured, but uncertain by more than 2 max_error (TraceShiftOptions) at a corner of the CCD
  kRelative,  // y without a reference: only differences between fibres are measured
  kRefused,   // not measured; the series is 0, and TraceShifts::reason says why
};
// The name of each ShiftStatus.
inline constexpr const char* kShiftStatusNames[] = {"none", "ok", "weak", "relative", "refused"};
inline const char* ShiftStatusName(ShiftStatus status) { return kShiftStatusNames[static_cast<int>(status)]; }
// The status with a name of kShiftStatusNames. InvalidArgument, listing the names, for any other.
absl::StatusOr<ShiftStatus> ParseShiftStatus(absl::string_view name);

struct AxisShifts {
  ShiftStatus status = ShiftStatus::kNone;
  ShiftSeries series;  // empty if refused or not measured
  // Covariance of the coefficients in pixels squared; the index of a coefficient is a (db + 1) + b. It is
  // that of the posterior, with the prior and the scatter of the measurements. Empty if the series is.
  Array<double, 2> covariance;
  double corner_error = 0;  // pixels; largest standard error at the corners of the CCD
  double mean = 0;          // mean over all fibres and 5 wavelengths from end to end of their domain, pixels
  double min = 0, max = 0;  // extremes at the same points, pixels
  int used = 0, clipped = 0;  // measurements used in the last fit of the series, and outliers left out of it
};

struct TraceShifts {
  AxisShifts x, y;     // columns (XTRACE), rows (YTRACE)
  std::string reason;  // why an axis is refused; empty if none is
  int passes = 0;      // number of passes over the image
  int lines = 0;       // number of the reference's lines that are seen in the frame
};

// The shifts to measure, as the flag --trace-shifts and the keyword trace_shifts give them.
enum class TraceAxes {
  kOff,
  kAuto,  // the image's FLAVOR decides: only x for a flat, else both
  kX,
  kXY,
};
inline constexpr const char* kTraceAxesNames[] = {"off", "auto", "x", "xy"};  // one for each of TraceAxes

// Degrees of the series over fibres (u) and wavelength (t).
struct TraceDegrees {
  std::array<int, 2> x = {2, 2}, y = {2, 1};

  friend bool operator==(const TraceDegrees& a, const TraceDegrees& b) = default;
};
inline constexpr int kMaxShiftDegree = 5;

// InvalidArgument, naming the degree, if one is below 0 or above kMaxShiftDegree.
absl::Status CheckTraceDegrees(const TraceDegrees& degrees);
// Parses "2,2,2,1": the degrees of x over fibres and over wavelength, then those of y. InvalidArgument says
// what is wrong with any other text.
absl::StatusOr<TraceDegrees> ParseTraceDegrees(absl::string_view text);
// The axes with a name of kTraceAxesNames. InvalidArgument, listing the names, for any other.
absl::StatusOr<TraceAxes> ParseTraceAxes(absl::string_view name);

// A frame's report on the shifts that were measured for it.
struct TraceReport {
  TraceShifts shifts;
  // Whether the frame was extracted with moved traces. If not, both axes were refused, or all shifts are
  // below kNegligibleShiftX and kNegligibleShiftY.
  bool moved = false;
  std::string reference;              // name of the reference spectrum; "" if there was none
  double wave_min = 0, wave_max = 0;  // Angstrom; the domain of t
  std::vector<double> u;              // [fibre of the frame]
};

// Shifts, in pixels, below which the PSF serves as it is: they move fluxes by less than 0.01 % and 0.1 sigma.
inline constexpr double kNegligibleShiftX = 0.01;
inline constexpr double kNegligibleShiftY = 0.005;

// The standard error in pixels at (u, t). REQUIRES: a status other than kNone and kRefused.
double ShiftError(const AxisShifts& axis, double u, double t);

}  // namespace spexd

#endif  // SPEXD_CORE_MODEL_TRACES_TRACE_SHIFTS_H_
