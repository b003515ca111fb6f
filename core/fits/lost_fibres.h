// Fibres of which a PSF tells nothing.
#ifndef SPEXD_CORE_FITS_LOST_FIBRES_H_
#define SPEXD_CORE_FITS_LOST_FIBRES_H_

#include "core/model/psf.h"

namespace spexd {

// Fits of PSFs fail for single fibres, whose coefficients some programs write as NaN. Such a fibre gets empty
// spots, so that its bins have no data, in the middle between its neighbours, so that plans take it for one
// of them. Nothing is changed if no fibre is whole; CheckPsf refuses that PSF. Terms without coefficients may
// be missing, as in CheckPsfOutline.
void EmptyLostFibres(Psf* psf);

}  // namespace spexd

#endif  // SPEXD_CORE_FITS_LOST_FIBRES_H_
