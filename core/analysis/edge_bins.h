// The ends of a spectrum, to which models are not fitted.
#ifndef SPEXD_CORE_ANALYSIS_EDGE_BINS_H_
#define SPEXD_CORE_ANALYSIS_EDGE_BINS_H_

namespace spexd {

// The number of bins at either end whose rows of the resolution lack light from outside the range. Fits of
// models give these bins no weight.
inline constexpr int kEdgeBins = 8;

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_EDGE_BINS_H_
