// A spectrum's continuum as a running mean.
#ifndef SPEXD_CORE_ANALYSIS_LINES_CONTINUUM_H_
#define SPEXD_CORE_ANALYSIS_LINES_CONTINUUM_H_

#include <vector>

#include "absl/types/span.h"

namespace spexd {

// The weighted mean over 60 bins on each side, in three passes. Bins beyond 3 sigma in one pass have no
// weight in the next. 0 where there are no data.
std::vector<double> RunningContinuum(absl::Span<const double> flux, absl::Span<const double> ivar);

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_LINES_CONTINUUM_H_
