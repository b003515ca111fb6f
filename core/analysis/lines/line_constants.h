// Constants of the search for emission lines, which every engine shares.
#ifndef SPEXD_CORE_ANALYSIS_LINES_LINE_CONSTANTS_H_
#define SPEXD_CORE_ANALYSIS_LINES_LINE_CONSTANTS_H_

namespace spexd {

// The continuum is a running mean over so many bins on each side; what lies beyond `kContinuumClip` sigma of
// one pass has no weight in the next.
inline constexpr int kContinuumReach = 60, kContinuumPasses = 3;
inline constexpr double kContinuumClip = 3;

// The bins on each side of a line, before resolution.
inline constexpr int kProfileHalf = 14;

// Groups of lines with less information than this part of the typical bin's are left out: masked, or off the
// edge.
inline constexpr double kLeastInformation = 1.0 / 8;
inline constexpr double kSignificantGain = 9;  // of chi-square, by a group with 3 sigma

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_LINES_LINE_CONSTANTS_H_
