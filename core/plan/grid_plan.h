// Properties of a PSF and a grid: whether they fit, and how far the solve reaches beyond the grid. Pure
// functions.
#ifndef SPEXD_CORE_PLAN_GRID_PLAN_H_
#define SPEXD_CORE_PLAN_GRID_PLAN_H_

#include "absl/status/status.h"
#include "core/model/psf.h"
#include "core/model/wavelength_grid.h"

namespace spexd {

inline constexpr double kDomainMargin = 2.0;    // Angstrom by which a grid may exceed the PSF's domain
inline constexpr double kMinRowsPerBin = 0.05;  // finer bins would make bands without limit
// The whole Angstroms at which all fibres have their spots' centres on the CCD, within the domain of traces
// and widths; the whole domain if there are none.
WaveRange RangeOnCcd(const Psf& psf);

// InvalidArgument, naming the value, the limit and a grid that fits, if the grid exceeds the domain of the
// PSF's traces or widths by more than kDomainMargin, or its bins are narrower than kMinRowsPerBin CCD rows.
// InvalidArgument, naming parameter, fibre and limit, if a series may exceed kMaxSeriesValue on the grid or
// its pads. So everything that is computed from the series there, the estimates of jobs too, is finite. Takes
// a few operations for each coefficient. Terms without coefficients may be missing.
absl::Status CheckGrid(const Psf& psf, const WavelengthGrid& grid);

// Whether the normal matrix of such a grid is singular in float64, so that its prior has kFineGridPrior.
bool IsFineGrid(const WavelengthGrid& grid);

// Bins solved for and discarded beyond each end: at least kMinPadBins, and more than a spot is high.
int PadBins(const Psf& psf, const WavelengthGrid& grid);

// Upper estimates of a bundle's reach, fibre_reach and CCD columns (see BundlePlan), from the dispersion and
// the traces of a few fibres.
int ReachEstimate(const Psf& psf, const WavelengthGrid& grid);
int FibreReachEstimate(const Psf& psf);
int ColumnsEstimate(const Psf& psf, const WavelengthGrid& grid, int bundle_size);

// The grid with `pad` more bins at each end.
WavelengthGrid Padded(const WavelengthGrid& grid, int pad);

}  // namespace spexd

#endif  // SPEXD_CORE_PLAN_GRID_PLAN_H_
