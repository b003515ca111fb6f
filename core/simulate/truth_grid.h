// The wavelengths of true spectra.
#ifndef SPEXD_CORE_SIMULATE_TRUTH_GRID_H_
#define SPEXD_CORE_SIMULATE_TRUTH_GRID_H_

#include "absl/status/statusor.h"
#include "core/model/psf.h"
#include "core/model/wavelength_grid.h"

namespace spexd {

inline constexpr double kTruthStep = 0.2;  // Angstrom, for instruments with 0.4 to 0.8 Angstrom a CCD row

// The light to sample. Sources have widths of their own; a scene has widths that the grid resolves.
enum class TruthOf { kScene, kSources };

// The wavelengths at which light of any fibre falls on the CCD, within the domain of traces and spots, and as
// many more as an extraction pads its grid. The step is kTruthStep if that is a half to a quarter of a CCD
// row, else a third of the narrowest row; for sources it is at most kTruthStep. InvalidArgument, naming the
// value and the limit, if no light falls on the CCD or the grid is too long. REQUIRES: CheckPsf(psf) is OK.
absl::StatusOr<WavelengthGrid> MakeTruthGrid(const Psf& psf, TruthOf light = TruthOf::kScene);

}  // namespace spexd

#endif  // SPEXD_CORE_SIMULATE_TRUTH_GRID_H_
