// The frame from which the golden products were made, and the products.
#ifndef SPEXD_TESTS_ANALYSIS_ANALYSIS_GOLDEN_H_
#define SPEXD_TESTS_ANALYSIS_ANALYSIS_GOLDEN_H_

#include <limits>
#include <string>
#include <vector>

#include "core/analysis/usable_spectra.h"
#include "core/analysis/velocity/velocity.h"
#include "core/base/array.h"
#include "core/fits/hdu/source.h"
#include "core/model/frame.h"

namespace spexd::testing {

struct GoldenFrame {
  Frame frame;
  UsableSpectra spectra;  // flat-fielded
  std::vector<int> sky_fibres, targets;
};

// Returns the golden products in the goldens' folder. REQUIRES: all can be read.
GoldenFrame ReadGoldenFrame(const std::string& folder);
Source OpenGolden(const std::string& folder, const std::string& file);
Array<double, 2> GoldenImage(const std::string& folder, const std::string& file, const std::string& hdu);
std::vector<double> GoldenColumn(const std::string& folder, const std::string& file, const std::string& hdu,
                                 const std::string& column);

// Tolerances of velocities relative to the golden ones.
struct VelocityTolerances {
  double velocity = 0;                                                 // in units of the error
  double error = 0;                                                    // relative
  double chi2 = 0;                                                     // above the golden one
  double conditional_error = std::numeric_limits<double>::infinity();  // relative
};
// Expects the golden velocities, except for stars with a flag.
void ExpectGoldenVelocities(const std::string& folder, const std::vector<StarVelocity>& stars,
                            const VelocityTolerances& tolerances);

// The exposures of each target, and the golden coadds as a frame's spectra (without chi2pix).
struct GoldenCoadd {
  std::vector<Spectra> targets;  // [target], rows are exposures
  Spectra coadds;                // [target]
};
GoldenCoadd ReadGoldenCoadd(const std::string& folder);

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_ANALYSIS_ANALYSIS_GOLDEN_H_
