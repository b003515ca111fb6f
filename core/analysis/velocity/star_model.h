// A star's spectrum on the bins of an arm, and its derivatives.
#ifndef SPEXD_CORE_ANALYSIS_VELOCITY_STAR_MODEL_H_
#define SPEXD_CORE_ANALYSIS_VELOCITY_STAR_MODEL_H_

#include <cstdint>
#include <vector>

#include "core/analysis/resolution_matrix.h"
#include "core/analysis/velocity/template_library.h"
#include "core/base/array.h"

namespace spexd {

// Evaluates a star. x: velocity (km/s), the library's parameters, vsini^2 (km/s)^2. Parameters are
// interpolated multilinearly in flux, so the result is linear in the templates. Row 0 of the result [1 +
// parameters, bin] is the spectrum before any resolution, and row 1 + k its derivative by x[k]; the one by
// vsini^2 is 0 unless `rotation`. REQUIRES: the templates reach the velocity.
Array<double, 2> EvaluateStar(const TemplateLibrary& library, const BinnedTemplates& templates,
                              const std::vector<double>& x, bool rotation);
// Applies the resolution of an exposure to each row.
Array<double, 2> SpreadStar(const Array<double, 2>& light, const ResolutionMatrix& resolution);

// The spectrum of a star without its derivatives.
std::vector<double> EvaluateStarLight(const TemplateLibrary& library, const BinnedTemplates& templates,
                                      const std::vector<double>& x);

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_VELOCITY_STAR_MODEL_H_
