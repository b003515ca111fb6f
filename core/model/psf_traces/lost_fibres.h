// Lost fibres: those about which a PSF says nothing.
#ifndef SPEXD_CORE_MODEL_PSF_TRACES_LOST_FIBRES_H_
#define SPEXD_CORE_MODEL_PSF_TRACES_LOST_FIBRES_H_

#include <vector>

#include "core/model/psf.h"

namespace spexd {

// Gives lost fibres empty spots, so that their bins have no data, and places them midway between their
// neighbours, where plans expect them. Fits of PSFs fail for single fibres, and some programs write their
// coefficients as NaN. If no fibre is whole, nothing is changed, and CheckPsf refuses the PSF. Terms may lack
// their coefficients, as in CheckPsfOutline.
void EmptyLostFibres(Psf* psf);

// Whether each fibre is lost, that is, has empty spots. No fibre counts as lost if all have empty spots.
std::vector<bool> LostFibres(const Psf& psf);

// Places the series of lost fibres midway between those of their neighbours. REQUIRES: not all are lost.
void PlaceLostFibres(const std::vector<bool>& lost, LegendreTable* table);

}  // namespace spexd

#endif  // SPEXD_CORE_MODEL_PSF_TRACES_LOST_FIBRES_H_
