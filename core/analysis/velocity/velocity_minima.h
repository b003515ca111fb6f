// Derives the minima that are fitted from a star's scan, and its velocity from the fits.
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

// A spectrum's scan: what is best at each velocity. A view.
struct ScanProfile {
  absl::Span<const double> chi2;     // the least of all templates
  absl::Span<const int> templates;   // the template that has it, the first of several
  absl::Span<const double> refined;  // the velocity at the minimum of its parabola (RefinedVelocity)
};

// A minimum of the scan.
struct ScanMinimum {
  double above = 0;           // chi-square, above the best of the scan
  double velocity = 0;        // refined
  std::vector<double> start;  // of a fit (VelocityFit::x); empty where none could make it the best
};

// The best minimum first, which is fitted, then others in the order of their chi-square.
std::vector<ScanMinimum> MinimaOf(const ScanProfile& profile, const std::vector<double>& velocities,
                                  const TemplateLibrary& library);

// The fit with the least chi-square, the first of several. REQUIRES: one or more.
size_t BestFit(const std::vector<VelocityFit>& fits);

// A row's weights in scan and fits: 0 in the ranges that are left out, and in kEdgeBins bins at either end.
std::vector<double> VelocityWeights(const UsableSpectra& spectra, int row,
                                    const std::vector<WavelengthRange>& exclude);
// The bins [first, end) between the ends of a range.
std::pair<int64_t, int64_t> BinsBetween(const std::vector<double>& wave, const WavelengthRange& range);
// Whether a row has as many bins with weight as it needs to count: the least number that determines a
// continuum.
bool HasVelocityBins(const UsableSpectra& spectra, int row, const VelocityOptions& options);
inline int LeastVelocityBins(const VelocityOptions& options) { return 3 * options.degree + 10; }

// What is known of a segment without any star.
struct StarlessSegment {
  size_t arm = 0;
  int bins = 0;               // that count
  double continuum_chi2 = 0;  // of a continuum alone, as the resolution spreads it
};
// `polynomials`: T_0 .. T_2 degree.
StarlessSegment WithoutStar(const VelocitySegment& segment, const Array<double, 2>& polynomials, int degree);

// `fits`: of the minima that have a start, in their order. `segments`: those that were fitted, by arm. All is
// there but the scans of `arms` arms.
StarVelocity StarOf(const ScanProfile& profile, const std::vector<double>& velocities,
                    const std::vector<ScanMinimum>& minima, std::vector<VelocityFit> fits,
                    const std::vector<StarlessSegment>& segments, size_t arms,
                    const VelocityOptions& options);
// The result for a target without a segment that counts.
StarVelocity StarWithoutData(size_t parameters, size_t arms);

// InvalidArgument for options that make no scan.
absl::Status CheckVelocityOptions(const VelocityOptions& options);
// InvalidArgument for too few bins.
absl::Status CheckVelocityBins(const UsableSpectra& spectra);

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_VELOCITY_VELOCITY_MINIMA_H_
