// Radial velocities of stars: a scan of all templates, then a fit from each minimum that may be the right
// one.
#ifndef SPEXD_CORE_ANALYSIS_VELOCITY_VELOCITY_H_
#define SPEXD_CORE_ANALYSIS_VELOCITY_VELOCITY_H_

#include <cmath>
#include <cstdint>
#include <limits>
#include <stop_token>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/analysis/usable_spectra.h"
#include "core/analysis/velocity/template_library.h"

namespace spexd {

// A range of wavelengths in Angstrom.
struct WavelengthRange {
  double first, last;
};

struct VelocityOptions {
  double most = 1000;                         // largest velocity scanned on each side, km/s
  double step = 25;                           // step of the scan, km/s
  int scan_degree = 3;                        // degree of the continuum in the scan
  int degree = 6;                             // degree of the continuum in the fit
  bool rotation = true;                       // whether stars may rotate
  std::vector<WavelengthRange> exclude = {};  // ranges whose bins have no weight
  int threads = 1;                            // the result does not depend on it
  std::stop_token stop = {};                  // ends the work with Cancelled
};

// Bits of StarVelocity::flag, with the meanings of rvspecfit except for the last.
inline constexpr int kVelocityNoStar = 1;         // the star explains too little (kMinExplained)
inline constexpr int kVelocityAtEdge = 2;         // the scan's minimum or the velocity is at the scan's edge
inline constexpr int kVelocityUncertain = 4;      // the error is above kMaxVelocityError
inline constexpr int kVelocityOffGrid = 8;        // a parameter is beyond the library by 3 sigma
inline constexpr int kVelocityFastRotation = 16;  // vsini is above kSlowVsini
inline constexpr int kVelocityNoData = 32;        // too few bins; all other values are NaN
inline constexpr int kVelocityNoError = 64;       // the fit does not determine the error
inline constexpr int kVelocityAmbiguous = 128;    // dchi2 < kSafeDchi2
inline constexpr double kSafeDchi2 = 9, kMaxVelocityError = 100, kSlowVsini = 100;  // the last two in km/s
// The least fall of chi-square by a star, compared with a continuum alone. If the remaining chi-square is
// more than twice the number of bins, the fall must also exceed the remainder above that number: a velocity
// beyond the scan leaves nearly all.
inline constexpr double kMinExplained = 50;

// The fit of a star in one arm, with all exposures added.
struct ArmVelocity {
  // The velocity of this arm, with everything else as all arms give it, and its error, km/s. NaN without
  // data.
  double v = std::numeric_limits<double>::quiet_NaN(), error = v;
  double chi2 = 0, continuum_chi2 = 0;
  int bins = 0;                          // number of bins with weight
  std::vector<double> model, continuum;  // [bin], of the first exposure; empty without data
  std::vector<double> scan;  // [scanned velocity]: this arm's part of StarVelocity::scan; empty without data
};

struct StarVelocity {
  double v = 0, error = 0;       // km/s; errors are NaN if a value is at the end of its range
  double conditional_error = 0;  // error of v with everything else fixed
  std::vector<double> parameters, parameter_errors;  // parameters of the library, in its order
  double vsini = 0, chi2 = 0;                        // vsini: km/s
  double continuum_chi2 = 0;                         // chi-square of a continuum without a star
  int bins = 0;                                      // number of bins with weight in all arms
  // The excess of chi-square at the best other minimum, and the velocity there; infinite and NaN if there is
  // none.
  double dchi2 = 0, v2 = 0;
  double scan_velocity = 0;  // velocity at the scan's minimum
  int evaluations = 0, flag = 0;
  std::vector<ArmVelocity> arms;
  std::vector<double> scan;  // [scanned velocity]: least chi-square of all templates; empty without data
};

// The velocities of a scan, km/s. REQUIRES: CheckVelocityOptions is OK.
inline std::vector<double> ScannedVelocities(const VelocityOptions& options) {
  std::vector<double> velocities;
  const int steps = static_cast<int>(std::floor(2 * options.most / options.step + 0.5));
  for (int k = 0; k <= steps; ++k) velocities.push_back(-options.most + k * options.step);
  return velocities;
}

// The number of targets whose scans are in memory at a time on CPUs, and of rows of an arm before they are
// added. A scan takes [target, template, velocity] for each arm in double precision, and [row, template,
// velocity].
int64_t TargetsAtOnce(int64_t templates, int64_t velocities);

// Fits the velocities of targets from all their arms and exposures: one star for each target, with a
// continuum in each arm of each exposure. The arms have the same rows; `targets`: the rows of each target.
// Spectra are flat-fielded, without the sky. An arm of an exposure with too few bins for its continuum does
// not count. InvalidArgument for options that make no scan, or a library that does not cover the wavelengths
// they need.
absl::StatusOr<std::vector<StarVelocity>> FitVelocities(absl::Span<const UsableSpectra> arms,
                                                        const std::vector<std::vector<int>>& targets,
                                                        const TemplateLibrary& library,
                                                        const VelocityOptions& options);
// Fits the velocity of each of these rows of one arm by itself.
absl::StatusOr<std::vector<StarVelocity>> FitVelocities(const UsableSpectra& spectra,
                                                        const std::vector<int>& rows,
                                                        const TemplateLibrary& library,
                                                        const VelocityOptions& options);

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_VELOCITY_VELOCITY_H_
