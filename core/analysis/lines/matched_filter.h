// The amplitude of a line at each bin, by a matched filter with the fibre's own resolution.
#ifndef SPEXD_CORE_ANALYSIS_LINES_MATCHED_FILTER_H_
#define SPEXD_CORE_ANALYSIS_LINES_MATCHED_FILTER_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "core/analysis/lines/line_constants.h"
#include "core/analysis/resolution_matrix.h"
#include "core/base/array.h"

namespace spexd {

// A Gaussian component of a line's profile, at a velocity from the profile's wavelength.
struct LineComponent {
  double velocity;  // km/s
  double part;
};

// Profiles G of lines around each bin, as [offset + kProfileHalf, bin j]: the flux per bin, in bin j +
// offset, of a line of flux 1 at the centre of bin j. `sigma`: km/s.
Array<double, 2> LineProfiles(const std::vector<double>& wave, const std::vector<LineComponent>& components,
                              double sigma);

// N and D at each bin. N / D is the flux per bin, and N / sqrt(D) the signal to noise, of a line there.
struct FilteredLine {
  std::vector<double> signal;       // N = P^T W r
  std::vector<double> information;  // D = diag(P^T W P), P = R G
};
FilteredLine FilterLine(const ResolutionMatrix& r, const Array<double, 2>& profiles,
                        absl::Span<const double> residual, absl::Span<const double> ivar);

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_LINES_MATCHED_FILTER_H_
