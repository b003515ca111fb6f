// Coefficients of cubic B-splines (see spline_weights.h).
#ifndef SPEXD_CORE_ANALYSIS_VELOCITY_CUBIC_SPLINE_H_
#define SPEXD_CORE_ANALYSIS_VELOCITY_CUBIC_SPLINE_H_

#include "absl/types/span.h"
#include "core/analysis/velocity/shared/spline_weights.h"

namespace spexd {

// Replaces samples by the coefficients of the spline through them, mirrored at the ends. REQUIRES: two
// samples or more.
void SplineCoefficients(absl::Span<double> samples);

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_VELOCITY_CUBIC_SPLINE_H_
