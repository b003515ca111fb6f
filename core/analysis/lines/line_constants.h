// Constants of the search for emission lines, which every engine shares.
#ifndef SPEXD_CORE_ANALYSIS_LINES_LINE_CONSTANTS_H_
#define SPEXD_CORE_ANALYSIS_LINES_LINE_CONSTANTS_H_

#include "core/base/host_device.h"

namespace spexd {

// The continuum is a running mean over so many bins on each side; what lies beyond `kContinuumClip` sigma of
// one pass has no weight in the next.
inline constexpr int kContinuumReach = 60, kContinuumPasses = 3;
inline constexpr double kContinuumClip = 3;

// The bins on each side of a line, before resolution.
inline constexpr int kProfileHalf = 14;

// Groups of lines with less information than this part of the typical bin's are left out: masked, or off the
// edge.
inline constexpr double kMinInformation = 1.0 / 8;
inline constexpr double kSignificantGain = 9;  // of chi-square, by a group with 3 sigma

// A line that a redshift does not explain counts above this gain of chi-square: 6 sigma, which no bin of
// thousands reaches by noise.
inline constexpr double kUnexplainedGain = 36;

// A line that galaxies have: a peak no further from it explains.
struct KnownLine {
  double wave;    // at rest, Angstrom in vacuum
  double within;  // of its wavelength, a fraction
};

// Whether one of the lines is where a peak is. `growth`: 1 + z.
SPEXD_HOST_DEVICE inline bool IsExplained(double peak, double growth, const KnownLine* lines, int count) {
  for (int k = 0; k < count; ++k) {
    const double apart = peak / (growth * lines[k].wave) - 1;
    if (apart < lines[k].within && -apart < lines[k].within) return true;
  }
  return false;
}

// The redshift `offset` from one of `count`; on its other side where there is none.
SPEXD_HOST_DEVICE inline int MirroredRedshift(int at, int offset, int count) {
  const int here = at + offset, there = at - offset;
  if (here >= 0 && here < count) return here;
  return there >= 0 && there < count ? there : at;
}

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_LINES_LINE_CONSTANTS_H_
