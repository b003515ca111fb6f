// Files that are small on disk and large when decoded.
#ifndef SPEXD_TESTS_SERVICE_SUPPORT_ATTACK_FILES_H_
#define SPEXD_TESTS_SERVICE_SUPPORT_ATTACK_FILES_H_

#include <string>

#include "core/model/psf.h"

namespace spexd::testing {

// Returns a gzipped frame whose pixels are all 0: IMAGE and IVAR, each of one Rice-coded tile.
std::string FlatFrame(int rows, int columns);

// Returns a gzipped PSF with 256 terms of `coefficients` coefficients, which take a byte each in the file.
std::string ManyTermsPsf(int fibres, int coefficients);

// Returns a PSF of parallel fibres with spots 7 pixels wide. Wavelengths 6000 to 6040 Angstrom fill the CCD's
// rows.
Psf StraightPsf(int rows, int columns, int fibres);

std::string Gzipped(const std::string& bytes);

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_SERVICE_SUPPORT_ATTACK_FILES_H_
