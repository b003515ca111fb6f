// The number of fibres that are eliminated at a time.
#ifndef SPEXD_CORE_PLAN_FIBRE_BLOCKS_H_
#define SPEXD_CORE_PLAN_FIBRE_BLOCKS_H_

#include "core/model/fibre_range.h"
#include "core/model/psf.h"
#include "core/model/wavelength_grid.h"

namespace spexd {

// The width m of the blocks of neighbouring fibres that a sweep eliminates. A sweep leaves out couplings of
// fibres more than m apart. This is the least m, from 1 to max(1, fibre_reach), for which the left-out
// couplings change a precision by less than kNeglectedCoupling. It depends only on the PSF, sampled at the
// middle of the bundle at two wavelengths. It is 1 for every PSF whose spots overlap only those of
// neighbouring fibres. fibre_reach: largest number of fibres between two spots of the bundle that share
// columns.
int FibresPerBlock(const Psf& psf, const WavelengthGrid& grid, FibreRange fibres, int fibre_reach);

}  // namespace spexd

#endif  // SPEXD_CORE_PLAN_FIBRE_BLOCKS_H_
