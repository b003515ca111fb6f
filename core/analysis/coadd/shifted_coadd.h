// Coadds of exposures of one target that are shifted against each other by small velocities, such as
// exposures of different nights. None of them is resampled.
//
//   A = sum_e S_e^T R_e^T W_e R_e S_e,   b = sum_e S_e^T R_e^T W_e flux_e
//   Q = A^(1/2),   ivar = (Q 1)^2,   R = diag(1 / Q 1) Q,   flux = R A^-1 b
//
// S_e carries the spectrum on the coadd's bins to the positions that the exposure's bins have there
// (ShiftTaps). The rest is the extraction's method to get from a least-squares problem to independent bins
// (Bolton & Schlegel 2010, PASP 122, 248), with its band factors and its square root.
#ifndef SPEXD_CORE_ANALYSIS_COADD_SHIFTED_COADD_H_
#define SPEXD_CORE_ANALYSIS_COADD_SHIFTED_COADD_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "core/analysis/coadd.h"
#include "core/model/frame.h"
#include "core/model/wavelength_grid.h"

namespace spexd {

// The largest shift. Larger ones are redshifts rather than drifts, and grids that they stretch have no common
// step.
inline constexpr double kMaxShift = 300;  // km/s

struct ShiftedExposure {
  Exposure exposure;
  WavelengthGrid grid;
  double velocity;  // km/s; light of wavelength w is seen at w sqrt((1 + v/c) / (1 - v/c))
};

// Checks whether an exposure can be added to a coadd on `grid`. InvalidArgument, naming the reason: a step
// other than the grid's, a shift that is not finite or beyond kMaxShift, no common bin, or a number of
// diagonals other than kResolutionDiagonals.
absl::Status CheckShifted(const ShiftedExposure& exposure, const WavelengthGrid& grid);

// Sets row `fibre` of `to`, which is on `grid`, to the coadd. Bins with a mask have no weight, and neither
// have bins that see light from outside the grid. A bin of the coadd in which no exposure has weight gets the
// masks of all exposures, and values that follow only from its neighbours. If no neighbour's resolution
// reaches it, it is NODATA, with flux and ivar 0. chi2pix is the mean with weights ivar. REQUIRES:
// CheckShifted is OK for each exposure.
void CoaddShifted(const std::vector<ShiftedExposure>& exposures, const WavelengthGrid& grid, int64_t fibre,
                  Spectra* to);

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_COADD_SHIFTED_COADD_H_
