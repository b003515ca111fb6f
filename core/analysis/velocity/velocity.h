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

// Angstrom.
struct WavelengthRange {
  double first, last;
};

struct VelocityOptions {
  double most = 1000;                         // velocities scanned on each side, km/s
  double step = 25;                           // of the scan, km/s
  int scan_degree = 3;                        // of the continuum in the scan
  int degree = 6;                             // and in the fit
  bool rotation = true;                       // stars may rotate
  std::vector<WavelengthRange> exclude = {};  // bins between their ends have no weight
  int threads = 1;                            // the result does not depend on it
  std::stop_token stop = {};                  // ends the work with Cancelled
};

// Bits of StarVelocity::flag, with the meanings that rvspecfit gives them but for the last.
inline constexpr int kVelocityNoStar = 1;         // the star explains too little: see kMinExplained
inline constexpr int kVelocityAtEdge = 2;         // of the scan, its minimum or the velocity
inline constexpr int kVelocityUncertain = 4;      // error above kMaxVelocityError
inline constexpr int kVelocityOffGrid = 8;        // a parameter is beyond the library by 3 sigma
inline constexpr int kVelocityFastRotation = 16;  // vsini above kSlowVsini
inline constexpr int kVelocityNoData = 32;        // too few bins; all else is NaN
inline constexpr int kVelocityNoError = 64;       // the fit does not determine it
inline constexpr int kVelocityAmbiguous = 128;    // dchi2 < kSafeDchi2
inline constexpr double kSafeDchi2 = 9, kMaxVelocityError = 100, kSlowVsini = 100;  // the last two: km/s
// A star must lower the chi-square of the continuum alone by so much. Where chi-square is more than twice the
// number of bins, it must also lower it by more than it leaves above that number: a velocity beyond the scan
// leaves nearly all.
inline constexpr double kMinExplained = 50;

// The fit of a star in one arm, all exposures added.
struct ArmVelocity {
  // km/s: the velocity that this arm has, all else as all arms tell it, and its error. NaN without data.
  double v = std::numeric_limits<double>::quiet_NaN(), error = v;
  double chi2 = 0, continuum_chi2 = 0;
  int bins = 0;                          // that count
  std::vector<double> model, continuum;  // [bin], of the first exposure; empty without data
  std::vector<double> scan;  // [scanned velocity]: its part of StarVelocity::scan; empty without data
};

struct StarVelocity {
  double v = 0, error = 0;       // km/s; errors are NaN where a value is at the end of its range
  double conditional_error = 0;  // of v, all else fixed
  std::vector<double> parameters, parameter_errors;  // the library's, in its order
  double vsini = 0, chi2 = 0;                        // km/s
  double continuum_chi2 = 0;                         // of a continuum without a star
  int bins = 0;                                      // that count, in all arms
  double dchi2 = 0, v2 = 0;  // how much worse the best other minimum is, and where; infinite and NaN: none
  double scan_velocity = 0;  // minimum of the scan
  int evaluations = 0, flag = 0;
  std::vector<ArmVelocity> arms;
  std::vector<double> scan;  // [scanned velocity]: the least chi-square of all templates; empty without data
};

// The velocities of a scan, km/s. REQUIRES: options that make one.
inline std::vector<double> ScannedVelocities(const VelocityOptions& options) {
  std::vector<double> velocities;
  const int steps = static_cast<int>(std::floor(2 * options.most / options.step + 0.5));
  for (int k = 0; k <= steps; ++k) velocities.push_back(-options.most + k * options.step);
  return velocities;
}

// Targets whose scans are in memory at a time, on processors, and rows of an arm before they are added: for
// each arm [target, template, velocity] in double precision, and [row, template, velocity].
int64_t TargetsAtOnce(int64_t templates, int64_t velocities);

// Velocities of targets from all their arms and exposures: one star, with a continuum in each arm of each
// exposure. The arms have the same rows; `targets`: the rows of each. Spectra are flat-fielded, without the
// sky. An arm of an exposure with too few bins for its continuum does not count. InvalidArgument for options
// that make no scan, or a library that does not reach as far as they need.
absl::StatusOr<std::vector<StarVelocity>> FitVelocities(absl::Span<const UsableSpectra> arms,
                                                        const std::vector<std::vector<int>>& targets,
                                                        const TemplateLibrary& library,
                                                        const VelocityOptions& options);
// The same for one arm, of these rows, each by itself.
absl::StatusOr<std::vector<StarVelocity>> FitVelocities(const UsableSpectra& spectra,
                                                        const std::vector<int>& rows,
                                                        const TemplateLibrary& library,
                                                        const VelocityOptions& options);

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_VELOCITY_VELOCITY_H_
