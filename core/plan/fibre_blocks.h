// How many fibres are eliminated at a time.
#ifndef SPEXD_CORE_PLAN_FIBRE_BLOCKS_H_
#define SPEXD_CORE_PLAN_FIBRE_BLOCKS_H_

#include "core/model/fibre_range.h"
#include "core/model/psf.h"
#include "core/model/wavelength_grid.h"

namespace spexd {

// A sweep eliminates blocks of m neighbouring fibres and leaves out couplings of fibres more than m apart.
// This is the least m, from 1 to the larger of 1 and fibre_reach, at which what is left out changes a
// precision by less than kNeglectedCoupling. It follows from the PSF alone, sampled at the middle of the
// bundle at two wavelengths. 1 for every PSF whose spots touch those of neighbours only. fibre_reach: the
// most fibres apart that two spots of the bundle share columns.
int FibresPerBlock(const Psf& psf, const WavelengthGrid& grid, FibreRange fibres, int fibre_reach);

}  // namespace spexd

#endif  // SPEXD_CORE_PLAN_FIBRE_BLOCKS_H_
