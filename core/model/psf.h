// The GAUSS-HERMITE PSF of a multi-fibre spectrograph, as plain values.
#ifndef SPEXD_CORE_MODEL_PSF_H_
#define SPEXD_CORE_MODEL_PSF_H_

#include <string>
#include <vector>

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

// Value of a fibre's series at `wave` (Clenshaw's recurrence).
double Evaluate(const LegendreTable& table, int fibre, double wave);

// The same values at many wavelengths, to the bit. REQUIRES: out.size() == wave.size().
void EvaluateMany(const LegendreTable& table, int fibre, absl::Span<const double> wave,
                  absl::Span<double> out);

// The coefficient of He_degree_x(u) He_degree_y(v). A PSF has at most one for each pair of degrees.
struct GaussHermiteTerm {
  int degree_x = 0;
  int degree_y = 0;
  LegendreTable amplitude;
};

// Its PARAM in a file, such as "GH-0-2".
std::string NameOf(const GaussHermiteTerm& term);

struct Psf {
  int rows = 0;     // NPIX_Y: CCD rows, the wavelength direction
  int columns = 0;  // NPIX_X
  int fibres = 0;
  int fibre_min = 0;     // FIBERMIN: name of the first fibre
  int half_x = 0;        // HSIZEX: a spot covers 2 half_x + 1 columns
  int half_y = 0;        // HSIZEY
  int max_degree_x = 0;  // GHDEGX
  int max_degree_y = 0;  // GHDEGY
  double psferr = 0.01;  // PSFERR: fractional error of the model
  double wave_min = 0;   // WAVEMIN, WAVEMAX of the PSF HDU, Angstrom
  double wave_max = 0;
  LegendreTable x, y;  // trace: column and row of the spot's centre, pixels; integers are pixel centres
  LegendreTable sigma_x, sigma_y;
  std::vector<GaussHermiteTerm> terms;  // terms that are not zero everywhere
  // Tail: amplitude r^2 / (core^2 + r^2)^(1 + index / 2); all empty if there is none.
  LegendreTable tail_amplitude, tail_core, tail_index, tail_scale_x, tail_scale_y;
  std::string camera;        // CAMERA of the file as it stands there, "" if it has none
  std::string original_psf;  // IN_PSF of the file, "" if it has none
  std::string content_hash;  // SHA-256 of the file's bytes, "" if made in memory

  int spot_columns() const { return 2 * half_x + 1; }
  int spot_rows() const { return 2 * half_y + 1; }
};

// Limits that are checked before memory is taken for a PSF.
inline constexpr int kMaxFibres = 20000;
inline constexpr int kMaxCcdSide = 32768;
inline constexpr int kMaxHalfSpot = 31;
inline constexpr int kMaxHermiteDegree = 15;
inline constexpr int kMaxLegendreCoefficients = 64;
// Limit of the wavelengths of a domain, either way: beyond it, steps of a small part of an Angstrom are lost
// in rounding.
inline constexpr double kMaxWavelength = 1e9;

// Whether wavelengths in Angstrom are the domain of a series; false for NaN.
bool IsDomain(double wave_min, double wave_max);

// Memory of the PSF's tables. Terms without coefficients count as if they had as many as sigma_x, as in a
// file.
int64_t PsfBytes(const Psf& psf);

// CheckPsf, but for what needs the coefficients of terms, which may be missing.
absl::Status CheckPsfOutline(const Psf& psf);

// InvalidArgument, naming the value and the limit, unless every table has `fibres` rows, finite coefficients,
// a proper domain, and all sizes are positive and within the limits above. Whether the values of the series
// are finite depends on the grid, too: CheckGrid (core/plan/grid_plan.h).
absl::Status CheckPsf(const Psf& psf);

}  // namespace spexd

#endif  // SPEXD_CORE_MODEL_PSF_H_
