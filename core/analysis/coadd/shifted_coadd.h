// Exposures of one target that are shifted against each other by small velocities, as those of different
// nights are, added without resampling any of them.
//
//   A = sum_e S_e^T R_e^T W_e R_e S_e,   b = sum_e S_e^T R_e^T W_e flux_e
//   Q = A^(1/2),   ivar = (Q 1)^2,   R = diag(1 / Q 1) Q,   flux = R A^-1 b
//
// S_e carries the spectrum on the coadd's bins to the positions that the exposure's bins have there
// (ShiftTaps). The rest is the extraction's own way from a least-squares problem to independent bins (Bolton
// & Schlegel 2010, PASP 122, 248), by its band factors and its square root.
#ifndef SPEXD_CORE_ANALYSIS_COADD_SHIFTED_COADD_H_
#define SPEXD_CORE_ANALYSIS_COADD_SHIFTED_COADD_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "core/analysis/coadd.h"
#include "core/model/frame.h"
#include "core/model/wavelength_grid.h"

namespace spexd {

// Shifts beyond this are redshifts rather than drifts; grids stretched by more would no longer have one step.
inline constexpr double kMaxShift = 300;  // km/s

struct ShiftedExposure {
  Exposure exposure;
  WavelengthGrid grid;
  double velocity;  // km/s: light of wavelength w is seen at w sqrt((1 + v/c) / (1 - v/c))
};

// Whether an exposure can be added to a coadd on `grid`. InvalidArgument that names what cannot be: a step
// other than the grid's, a shift that is not finite or beyond kMaxShift, a grid without a bin in common,
// another number of diagonals than kResolutionDiagonals.
absl::Status CheckShifted(const ShiftedExposure& exposure, const WavelengthGrid& grid);

// Row `fibre` of `to`, which is on `grid`, becomes the coadd. Bins with a mask have no weight, nor have those
// that see light from outside of the grid. A bin of the coadd in which no exposure has weight gets the masks
// of all exposures, and values that follow from its neighbours alone. If no neighbour's resolution reaches
// it, it is NODATA, with flux and ivar 0. chi2pix is the mean with weights ivar. REQUIRES: CheckShifted is Ok
// for each.
void CoaddShifted(const std::vector<ShiftedExposure>& exposures, const WavelengthGrid& grid, int64_t fibre,
                  Spectra* to);

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_COADD_SHIFTED_COADD_H_
