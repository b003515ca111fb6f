// The step from a star's scan to the minima that are fitted, and from the fits to its velocity.
#ifndef SPEXD_CORE_ANALYSIS_VELOCITY_VELOCITY_MINIMA_H_
#define SPEXD_CORE_ANALYSIS_VELOCITY_VELOCITY_MINIMA_H_

#include <cstdint>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "core/analysis/velocity/template_library.h"
#include "core/analysis/velocity/velocity.h"
#include "core/analysis/velocity/velocity_fit.h"

namespace spexd {

// A view of a spectrum's scan: the best fit at each velocity.
struct ScanProfile {
  absl::Span<const double> chi2;     // least chi-square of all templates
  absl::Span<const int> templates;   // template with the least chi-square; the first if there are several
  absl::Span<const double> refined;  // velocity at the minimum of the parabola (RefinedVelocity)
};

// A minimum of the scan.
struct ScanMinimum {
  double above = 0;           // excess of chi-square over the best of the scan
  double velocity = 0;        // refined
  std::vector<double> start;  // start of a fit (VelocityFit::x); empty if hopeless
};

// The minima of a scan: the best one, which is fitted, then the others in the order of their chi-square.
std::vector<ScanMinimum> MinimaOf(const ScanProfile& profile, const std::vector<double>& velocities,
                                  const TemplateLibrary& library);

// The fit with the least chi-square, the first if there are several. REQUIRES: one fit or more.
size_t BestFit(const std::vector<VelocityFit>& fits);

// The weights of a row in scan and fits: 0 in excluded ranges, and in kEdgeBins bins at either end.
std::vector<double> VelocityWeights(const UsableSpectra& spectra, int row,
                                    const std::vector<WavelengthRange>& exclude);
// The bins [first, end) within a range.
std::pair<int64_t, int64_t> BinsBetween(const std::vector<double>& wave, const WavelengthRange& range);
// Whether a row has enough bins with weight to count. The least number is one that determines a continuum.
bool HasVelocityBins(const UsableSpectra& spectra, int row, const VelocityOptions& options);
inline int LeastVelocityBins(const VelocityOptions& options) { return 3 * options.degree + 10; }

// The fit of a segment without any star.
struct StarlessSegment {
  size_t arm = 0;
  int bins = 0;               // number of bins with weight
  double continuum_chi2 = 0;  // chi-square of a continuum alone, after the resolution
};
// Fits a segment without a star. `polynomials`: T_0 .. T_(2 degree).
StarlessSegment WithoutStar(const VelocitySegment& segment, const Array<double, 2>& polynomials, int degree);

// The result for a star, complete except for the scans of its `arms` arms. `fits`: those of the minima that
// have a start, in their order. `segments`: those that were fitted, by arm.
StarVelocity StarOf(const ScanProfile& profile, const std::vector<double>& velocities,
                    const std::vector<ScanMinimum>& minima, std::vector<VelocityFit> fits,
                    const std::vector<StarlessSegment>& segments, size_t arms,
                    const VelocityOptions& options);
// The result for a target without a segment that counts.
StarVelocity StarWithoutData(size_t parameters, size_t arms);

// InvalidArgument if the options make no scan.
absl::Status CheckVelocityOptions(const VelocityOptions& options);
// InvalidArgument if there are too few bins.
absl::Status CheckVelocityBins(const UsableSpectra& spectra);

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_VELOCITY_VELOCITY_MINIMA_H_
