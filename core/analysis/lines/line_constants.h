// Constants of the search for emission lines, shared by every engine.
#ifndef SPEXD_CORE_ANALYSIS_LINES_LINE_CONSTANTS_H_
#define SPEXD_CORE_ANALYSIS_LINES_LINE_CONSTANTS_H_

#include "core/base/host_device.h"

namespace spexd {

// The continuum is a running mean over kContinuumReach bins on each side. Bins beyond kContinuumClip sigma in
// one pass have no weight in the next.
inline constexpr int kContinuumReach = 60, kContinuumPasses = 3;
inline constexpr double kContinuumClip = 3;

// The number of bins on each side of a line, before resolution.
inline constexpr int kProfileHalf = 14;

// Groups of lines with less than this part of the typical bin's information are left out: they are masked or
// off the edge.
inline constexpr double kMinInformation = 1.0 / 8;
inline constexpr double kSignificantGain = 9;  // gain of chi-square of a group with 3 sigma

// The gain of chi-square above which a line that a redshift does not explain counts: 6 sigma, which noise
// reaches in no bin of thousands.
inline constexpr double kUnexplainedGain = 36;

// A known line of galaxies. It explains a peak that is close enough.
struct KnownLine {
  double wave;    // rest wavelength, Angstrom in vacuum
  double within;  // largest distance of the peak, as a fraction of the wavelength
};

// Whether one of the lines explains a peak at this wavelength. `growth`: 1 + z.
SPEXD_HOST_DEVICE inline bool IsExplained(double peak, double growth, const KnownLine* lines, int count) {
  for (int k = 0; k < count; ++k) {
    const double apart = peak / (growth * lines[k].wave) - 1;
    if (apart < lines[k].within && -apart < lines[k].within) return true;
  }
  return false;
}

// The redshift `offset` from `at` among `count` redshifts, or the one on the other side if there is none.
SPEXD_HOST_DEVICE inline int MirroredRedshift(int at, int offset, int count) {
  const int here = at + offset, there = at - offset;
  if (here >= 0 && here < count) return here;
  return there >= 0 && there < count ? there : at;
}

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_LINES_LINE_CONSTANTS_H_
