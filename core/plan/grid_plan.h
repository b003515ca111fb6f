// Properties of a PSF and a grid: whether they fit, and how far the solve reaches beyond the grid. All are
// pure functions.
#ifndef SPEXD_CORE_PLAN_GRID_PLAN_H_
#define SPEXD_CORE_PLAN_GRID_PLAN_H_

#include "absl/status/status.h"
#include "core/model/psf.h"
#include "core/model/wavelength_grid.h"

namespace spexd {

inline constexpr double kDomainMargin = 2.0;    // Angstrom by which a grid may exceed the PSF's domain
inline constexpr double kMinRowsPerBin = 0.05;  // least bin width; bands of finer bins would have no limit
// The range, in whole Angstroms, in which all fibres have their spots' centres on the CCD, within the domain
// of traces and widths; the whole domain if there is no such range.
WaveRange RangeOnCcd(const Psf& psf);

// Checks that a grid fits the PSF.
//
// InvalidArgument, naming the value, the limit and a grid that fits, if the grid exceeds the domain of the
// PSF's traces or widths by more than kDomainMargin, or if its bins are narrower than kMinRowsPerBin CCD
// rows. InvalidArgument, naming the parameter, the fibre and the limit, if a series may exceed
// kMaxSeriesValue on the grid or its pads. Everything computed from the series there, including the estimates
// of jobs, is therefore finite.
//
// It takes a few operations for each coefficient. Terms may lack their coefficients.
absl::Status CheckGrid(const Psf& psf, const WavelengthGrid& grid);

// Whether the normal matrix of the grid is singular in float64, so that kFineGridPrior is added to its prior.
bool IsFineGrid(const WavelengthGrid& grid);

// The number of bins solved for and discarded beyond each end: at least kMinPadBins, and more than a spot is
// high.
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
