// Trace shifts of a frame: by how much its traces are displaced from those of a PSF.
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
// (FibrePositions in core/model/psf_traces/move_psf.h); t is the wavelength, scaled to [-1, 1] over the
// domain of XTRACE and YTRACE. Coefficients are those of the shift that is to be added to the PSF's traces.
using ShiftSeries = Array<double, 2>;

// Value in pixels at (u, t). An empty series is 0.
double EvaluateShift(const ShiftSeries& series, double u, double t);

enum class ShiftStatus {
  kNone,      // was not to be measured
  kOk,        // measured
  kWeak,      // measured, but a corner of the CCD is known to no better than 2 max_error (TraceShiftOptions)
  kRelative,  // y without a reference: differences between fibres alone are measured
  kRefused,   // not measured; the series is 0. TraceShifts::reason says why
};
// One for each ShiftStatus.
inline constexpr const char* kShiftStatusNames[] = {"none", "ok", "weak", "relative", "refused"};
inline const char* ShiftStatusName(ShiftStatus status) { return kShiftStatusNames[static_cast<int>(status)]; }
// The status of a name in kShiftStatusNames. InvalidArgument lists them.
absl::StatusOr<ShiftStatus> ParseShiftStatus(absl::string_view name);

struct AxisShifts {
  ShiftStatus status = ShiftStatus::kNone;
  ShiftSeries series;  // empty if refused or not measured
  // Covariance of the coefficients in pixels squared, [a (db + 1) + b, the same]: the posterior's, with the
  // prior and the scatter of the measurements. Empty as the series is.
  Array<double, 2> covariance;
  double corner_error = 0;  // pixels; largest standard error at the corners of the CCD
  double mean = 0;          // pixels; over all fibres and 5 wavelengths from end to end of their domain, and
  double min = 0, max = 0;  // the extremes among these
  int used = 0, clipped = 0;  // measurements in the last fit of the series, and outliers left out of it
};

struct TraceShifts {
  AxisShifts x, y;     // columns (XTRACE), rows (YTRACE)
  std::string reason;  // why an axis is refused; empty if none is
  int passes = 0;      // over the image
  int lines = 0;       // lines of the reference that are seen in the frame
};

// What is to be measured: as the flag --trace-shifts and the keyword trace_shifts say.
enum class TraceAxes {
  kOff,
  kAuto,  // the image's FLAVOR decides: x alone of a flat, else both
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

// InvalidArgument names a degree below 0 or above kMaxShiftDegree.
absl::Status CheckTraceDegrees(const TraceDegrees& degrees);
// "2,2,2,1": x over fibres, over wavelength, y likewise. InvalidArgument says what is wrong with another
// text.
absl::StatusOr<TraceDegrees> ParseTraceDegrees(absl::string_view text);
// The axes of a name in kTraceAxesNames. InvalidArgument lists them.
absl::StatusOr<TraceAxes> ParseTraceAxes(absl::string_view name);

// What a frame tells of the shifts that were measured for it.
struct TraceReport {
  TraceShifts shifts;
  // Whether the frame was extracted with moved traces. If not, both axes were refused, or all shifts are
  // below kNegligibleShiftX and kNegligibleShiftY.
  bool moved = false;
  std::string reference;              // name of the reference spectrum; "": none
  double wave_min = 0, wave_max = 0;  // Angstrom; the domain of t
  std::vector<double> u;              // [fibre of the frame]
};

// Pixels. Shifts below move fluxes by less than 0.01 % and 0.1 sigma, so that the PSF as it is serves as
// well.
inline constexpr double kNegligibleShiftX = 0.01;
inline constexpr double kNegligibleShiftY = 0.005;

// Standard error in pixels at (u, t). REQUIRES: a status other than kNone and kRefused.
double ShiftError(const AxisShifts& axis, double u, double t);

}  // namespace spexd

#endif  // SPEXD_CORE_MODEL_TRACES_TRACE_SHIFTS_H_
