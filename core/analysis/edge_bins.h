// The ends of a spectrum, which models are not fitted to.
#ifndef SPEXD_CORE_ANALYSIS_EDGE_BINS_H_
#define SPEXD_CORE_ANALYSIS_EDGE_BINS_H_

namespace spexd {

// Bins at either end whose rows of the resolution lack light from outside the range. Fits of models give them
// no weight.
inline constexpr int kEdgeBins = 8;

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_EDGE_BINS_H_
