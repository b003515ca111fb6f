// Redshifts from emission lines by delay, weight, stack and argmax: the traces of matched filters are shifted
// to the lines of each redshift and added (pyrocko's parstack; Heimann et al. 2017).
#ifndef SPEXD_CORE_ANALYSIS_LINES_EMISSION_LINES_H_
#define SPEXD_CORE_ANALYSIS_LINES_EMISSION_LINES_H_

#include <limits>
#include <stop_token>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/analysis/usable_spectra.h"

namespace spexd {

// A line: its rest wavelength, Angstrom in vacuum, and its flux relative to the other lines of its group,
// whose ratios are fixed.
struct Line {
  double wave, ratio;
};
struct LineGroup {
  const char* name;
  bool doublet;  // found by the filter of [OII], which takes its two lines as one
  std::vector<Line> lines;
};
const std::vector<LineGroup>& EmissionLines();
inline constexpr int kHalphaGroup = 3, kNitrogenGroup = 4, kSulphurGroup = 5;  // positions in EmissionLines
inline constexpr Line kOxygenDoublet[] = {{3727.092, 0.73}, {3729.875, 1}};
// Other lines of galaxies, which explain peaks but are not used to find redshifts. Angstrom in vacuum.
const std::vector<double>& OtherLines();

struct LineOptions {
  double max_redshift = 1.05;
  double step = 20;           // step of redshifts, km/s
  double sigma = 60;          // width of lines, km/s
  int threads = 1;            // the result does not depend on it
  std::stop_token stop = {};  // ends the work with Cancelled
};

struct LineRedshift {
  double z = 0, dchi2 = 0;  // the best redshift, and the fall of chi-square with its lines
  double gap = 0;           // difference of dchi2 between z and z2; z is secure above kSecureGap
  double z2 = 0;            // the best redshift more than 1000 km/s from z
  int lines = 0;            // number of groups of lines with more than 3 sigma
  double error = std::numeric_limits<double>::quiet_NaN();  // error of z; NaN if dchi2 has no maximum
  int warning = 0;                                          // 0 if z is accepted
};
// Limits of the gap. A redshift is accepted above kAcceptedGap with two groups of lines, and above
// kAcceptedGapAlone with one.
inline constexpr double kAcceptedGap = 9, kAcceptedGapAlone = 12, kSecureGap = 25;

// Bits of LineRedshift::warning. Those that redrock's ZWARN has have its meanings.
inline constexpr int kLineGapTooSmall = 1 << 2;   // SMALL_DELTA_CHI2: the gap is not accepted
inline constexpr int kLineAtLimit = 1 << 5;       // Z_FITLIMIT: z is the first or last redshift tried
inline constexpr int kLineNoData = 1 << 9;        // NODATA
inline constexpr int kLineNoMinimum = 1 << 10;    // BAD_MINFIT: there is no error
inline constexpr int kLineUnexplained = 1 << 24;  // there is a line of 6 sigma that z does not explain
inline constexpr int kLineUnlikely = 1 << 25;  // [NII] or [SII] has 3 sigma but H alpha, in range, does not

// Finds redshifts of targets from all their arms and exposures. The arms have the same rows; `targets`: the
// rows of each target. Signals and informations of all rows are added before gains are computed from them.
// The spectra are flat-fielded, without the sky; wavelengths of lines are those in vacuum. InvalidArgument
// for options that are not positive, or no bins between the edges.
absl::StatusOr<std::vector<LineRedshift>> FindLineRedshifts(absl::Span<const UsableSpectra> arms,
                                                            const std::vector<std::vector<int>>& targets,
                                                            const LineOptions& options);
// Finds the redshift of each of these rows of one arm by itself.
absl::StatusOr<std::vector<LineRedshift>> FindLineRedshifts(const UsableSpectra& spectra,
                                                            const std::vector<int>& rows,
                                                            const LineOptions& options);

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_LINES_EMISSION_LINES_H_
