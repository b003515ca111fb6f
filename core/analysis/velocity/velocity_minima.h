// Derives the minima that are fitted from a star's scan, and its velocity from the fits.
#ifndef SPEXD_CORE_ANALYSIS_VELOCITY_VELOCITY_MINIMA_H_
#define SPEXD_CORE_ANALYSIS_VELOCITY_VELOCITY_MINIMA_H_

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

// What is known of a spectrum without any star.
struct StarlessSpectrum {
  int bins = 0;               // with data
  double continuum_chi2 = 0;  // of a continuum alone
};
// `ivar`: InnerIvar of the row. `polynomials`: T_0 .. T_2 degree.
StarlessSpectrum WithoutStar(const UsableSpectra& spectra, int row, absl::Span<const double> ivar,
                             const Array<double, 2>& polynomials, int degree);

// `fits`: of the minima that have a start, in their order.
StarVelocity StarOf(const ScanProfile& profile, const std::vector<double>& velocities,
                    const std::vector<ScanMinimum>& minima, std::vector<VelocityFit> fits,
                    const StarlessSpectrum& starless, const VelocityOptions& options);
// The result for a spectrum in which too few bins have data.
StarVelocity StarWithoutData(size_t parameters, int bins);
inline int LeastVelocityBins(const VelocityOptions& options) { return 3 * options.degree + 10; }

// InvalidArgument for options that make no scan, or too few bins.
absl::Status CheckVelocityOptions(const UsableSpectra& spectra, const VelocityOptions& options);

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_VELOCITY_VELOCITY_MINIMA_H_
