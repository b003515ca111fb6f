// The number of operations of an extraction, by stage, from a PSF's header values and a grid. Estimates of a
// job's time and the floors of benchmarks use it. Formulas follow README.md; a multiply-add counts two.
#ifndef SPEXD_CORE_EXTRACT_COST_MODEL_H_
#define SPEXD_CORE_EXTRACT_COST_MODEL_H_

#include <array>

#include "core/extract/stage.h"
#include "core/model/psf.h"
#include "core/model/wavelength_grid.h"

namespace spexd {

// Distances of spots on the CCD, from the traces of a few fibres at a few wavelengths.
struct SpotSpacing {
  double rows = 1;        // CCD rows from a bin to the next: the mean
  double min_rows = 1;    // the least number of CCD rows from a bin to the next
  double columns = 1;     // CCD columns from a fibre to the next: the mean
  double sigma = 1;       // sigma of a spot along the wavelengths, in bins
};
SpotSpacing MeasureSpacing(const Psf& psf, const WavelengthGrid& grid);

// The largest distance in bins of two spots that share rows. It is not too small if MeasureSpacing saw the
// closest bins.
int EstimatedReach(const Psf& psf, const SpotSpacing& spacing);

// The work for a bundle; all counts are sums over its fibres.
struct BundleCost {
  std::array<double, kStageCount> flops{};
  double spots = 0;      // fibres x bins, pads included
  double pairs = 0;      // entries of A^T W A: pairs of spots that share pixels, including each with itself
  double precision = 0;  // entries of the fibres' precision bands, diagonals included
};
BundleCost CostOfBundle(const Psf& psf, const WavelengthGrid& grid, int fibres);

}  // namespace spexd

#endif  // SPEXD_CORE_EXTRACT_COST_MODEL_H_
