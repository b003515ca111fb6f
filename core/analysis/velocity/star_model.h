// A star's spectrum on the bins of an arm, and its derivatives.
#ifndef SPEXD_CORE_ANALYSIS_VELOCITY_STAR_MODEL_H_
#define SPEXD_CORE_ANALYSIS_VELOCITY_STAR_MODEL_H_

#include <cstdint>
#include <vector>

#include "core/analysis/resolution_matrix.h"
#include "core/analysis/velocity/template_library.h"
#include "core/base/array.h"

namespace spexd {

// x: velocity (km/s), the library's parameters, vsini^2 (km/s)^2. Parameters are interpolated multilinearly
// in flux, so that all that follows is linear in the templates. Row 0 of the result [1 + parameters, bin] is
// the spectrum before any resolution, row 1 + k its derivative by x[k]; that by vsini^2 is 0 unless
// `rotation`. REQUIRES: the velocity is one that the templates reach.
Array<double, 2> EvaluateStar(const TemplateLibrary& library, const BinnedTemplates& templates,
                              const std::vector<double>& x, bool rotation);
// Each row as the resolution of an exposure spreads it.
Array<double, 2> SpreadStar(const Array<double, 2>& light, const ResolutionMatrix& resolution);

// The spectrum alone.
std::vector<double> EvaluateStarLight(const TemplateLibrary& library, const BinnedTemplates& templates,
                                      const std::vector<double>& x);

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_VELOCITY_STAR_MODEL_H_
