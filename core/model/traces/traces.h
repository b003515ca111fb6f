// Traces: the position on the CCD of a fibre's light at a wavelength. They are Legendre series in wavelength,
// as are the parameters of spots.
#ifndef SPEXD_CORE_MODEL_TRACES_TRACES_H_
#define SPEXD_CORE_MODEL_TRACES_TRACES_H_

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "core/base/array.h"

namespace spexd {

// One Legendre series in wavelength per fibre: sum_k coeff(fibre, k) L_k(t), t = 2 (w - wave_min) / (wave_max
// - wave_min) - 1.
struct LegendreTable {
  Array<double, 2> coeff;  // [fibre, degree + 1]
  double wave_min = 0;     // Angstrom; the domain of the series, wave_min < wave_max, within kMaxWavelength
  double wave_max = 0;

  bool empty() const { return coeff.empty(); }
};

// Column and row of a spot's centre, pixels; integers are pixel centres.
struct Traces {
  LegendreTable x, y;
};

// The value of a fibre's series at `wave`, by Clenshaw's recurrence.
double Evaluate(const LegendreTable& table, int fibre, double wave);

// Values of a fibre's series at many wavelengths, each equal to Evaluate's to the bit. REQUIRES: out.size()
// == wave.size().
void EvaluateMany(const LegendreTable& table, int fibre, absl::Span<const double> wave,
                  absl::Span<double> out);

inline constexpr int kMaxLegendreCoefficients = 64;
// Limit on the magnitude of a domain's wavelengths. Beyond it, steps of a small part of an Angstrom are lost
// in rounding.
inline constexpr double kMaxWavelength = 1e9;
// Limit on the magnitude of a PSF's series on a grid. Sums and products of values below it are finite, also
// as float32.
inline constexpr double kMaxSeriesValue = 1e30;

// A range of wavelengths in Angstrom.
struct WaveRange {
  double first = 0, last = 0;
};

// Whether two wavelengths in Angstrom can be the domain of a series; false for NaN.
bool IsDomain(double wave_min, double wave_max);

// InvalidArgument, naming the table, the value and the limit, unless it has `fibres` rows, a possible number
// of finite coefficients and a proper domain.
absl::Status CheckTable(const std::string& name, const LegendreTable& table, int fibres);

// InvalidArgument, naming the table, the fibre and the limit, if a series may exceed kMaxSeriesValue in the
// range. It takes a few operations for each coefficient.
absl::Status CheckValues(const std::string& name, const LegendreTable& table, WaveRange range);

}  // namespace spexd

#endif  // SPEXD_CORE_MODEL_TRACES_TRACES_H_
