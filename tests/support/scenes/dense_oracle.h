// Extraction by plain dense linear algebra in extended precision, directly from the equations
// (core/extract/README.md): slow, short, and independent of every engine.
#ifndef SPEXD_TESTS_SUPPORT_SCENES_DENSE_ORACLE_H_
#define SPEXD_TESTS_SUPPORT_SCENES_DENSE_ORACLE_H_

#include "core/base/array.h"
#include "core/model/image.h"
#include "core/model/psf.h"
#include "core/model/wavelength_grid.h"

namespace spexd::testing {

// The result for all the PSF's fibres as one group, on `grid` without the pads. Arrays are [fibre, bin]; flux
// is in electrons per Angstrom.
struct OracleResult {
  Array<double, 2> flux, ivar, coverage;
  Array<double, 3> resolution;  // [fibre, diagonal, bin]
};

OracleResult ExtractDensely(const Psf& psf, const Image& image, const WavelengthGrid& grid, int pad,
                            double regularize, bool fine_grid);

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_SUPPORT_SCENES_DENSE_ORACLE_H_
