// Fibres of which a PSF tells nothing.
#ifndef SPEXD_CORE_MODEL_PSF_TRACES_LOST_FIBRES_H_
#define SPEXD_CORE_MODEL_PSF_TRACES_LOST_FIBRES_H_

#include <vector>

#include "core/model/psf.h"

namespace spexd {

// Fits of PSFs fail for single fibres, whose coefficients some programs write as NaN. Such a fibre gets empty
// spots, so that its bins have no data, in the middle between its neighbours, so that plans take it for one
// of them. Nothing is changed if no fibre is whole; CheckPsf refuses that PSF. Terms without coefficients may
// be missing, as in CheckPsfOutline.
void EmptyLostFibres(Psf* psf);

// Whether each fibre was lost: its spots are empty. None if all are.
std::vector<bool> LostFibres(const Psf& psf);

// Puts the series of lost fibres in the middle between their neighbours'. REQUIRES: not all are lost.
void PlaceLostFibres(const std::vector<bool>& lost, LegendreTable* table);

}  // namespace spexd

#endif  // SPEXD_CORE_MODEL_PSF_TRACES_LOST_FIBRES_H_
