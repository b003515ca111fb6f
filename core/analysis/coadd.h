// Coadds of exposures of one target on one grid. Exposures are added with weights ivar, including their
// resolution.
#ifndef SPEXD_CORE_ANALYSIS_COADD_H_
#define SPEXD_CORE_ANALYSIS_COADD_H_

#include <cstdint>
#include <vector>

#include "core/analysis/coadd_sums.h"
#include "core/model/frame.h"

namespace spexd {

// Sets row `fibre` of `to` to the sum of the exposures: flux = sum of W flux / sum of W, ivar = sum of W, and
// row j of the resolution is the mean of the exposures' rows with the weights of bin j. chi2pix is the mean
// with the same weights. W is the ivar of bins without a mask. If every exposure masks a bin, it is the sum
// of all exposures, with all their masks. Bins without any finite flux and ivar are 0, with kMaskNoData.
// REQUIRES: exposures and `to` have the same bins and kResolutionDiagonals diagonals.
void CoaddExposures(const std::vector<Exposure>& exposures, int64_t fibre, Spectra* to);

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_COADD_H_
