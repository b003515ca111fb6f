// Redshifts from emission lines by delay, weight, stack and argmax: the traces of matched filters are shifted
// to each redshift's lines and added (pyrocko's parstack; Heimann et al. 2017).
#ifndef SPEXD_CORE_ANALYSIS_LINES_EMISSION_LINES_H_
#define SPEXD_CORE_ANALYSIS_LINES_EMISSION_LINES_H_

#include <stop_token>
#include <vector>

#include "absl/status/statusor.h"
#include "core/analysis/usable_spectra.h"

namespace spexd {

// A line's rest wavelength, Angstrom in vacuum, and its flux relative to the others of its group, whose
// ratios are fixed.
struct Line {
  double wave, ratio;
};
struct LineGroup {
  const char* name;
  bool doublet;  // found by the filter of [OII], whose two lines are one here
  std::vector<Line> lines;
};
const std::vector<LineGroup>& EmissionLines();
inline constexpr Line kOxygenDoublet[] = {{3727.092, 0.73}, {3729.875, 1}};

struct LineOptions {
  double most_redshift = 1.05;
  double step = 20;           // of redshifts, km/s
  double sigma = 60;          // of lines, km/s
  int threads = 1;            // the result does not depend on it
  std::stop_token stop = {};  // ends the work with Cancelled
};

struct LineRedshift {
  double z = 0, dchi2 = 0;  // of the best redshift: how much chi-square falls with its lines
  double gap = 0;           // dchi2 less that of z2: accepted above kAcceptedGap, secure above kSecureGap
  double z2 = 0;            // the best redshift more than 1000 km/s off
  int lines = 0;            // groups of lines with more than 3 sigma
};
inline constexpr double kAcceptedGap = 9, kSecureGap = 25;

// Redshifts of the rows given, in their order. The spectra are flat-fielded, without the sky; wavelengths of
// lines are those in vacuum. InvalidArgument for options that are not positive, or no bins between the edges.
absl::StatusOr<std::vector<LineRedshift>> FindLineRedshifts(const UsableSpectra& spectra,
                                                            const std::vector<int>& rows,
                                                            const LineOptions& options);

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_LINES_EMISSION_LINES_H_
