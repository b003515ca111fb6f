// Files that are small on disk and large once they are decoded.
#ifndef SPEXD_TESTS_SERVICE_SUPPORT_ATTACK_FILES_H_
#define SPEXD_TESTS_SERVICE_SUPPORT_ATTACK_FILES_H_

#include <string>

#include "core/model/psf.h"

namespace spexd::testing {

// A frame of pixels that are all 0: IMAGE and IVAR, each of one Rice-coded tile, gzipped.
std::string FlatFrame(int rows, int columns);

// A gzipped PSF with 256 terms of `coefficients` coefficients, a byte each in the file.
std::string ManyTermsPsf(int fibres, int coefficients);

// A PSF of fibres side by side whose spots are 7 pixels wide; wavelengths 6000 to 6040 fill the CCD's rows.
Psf StraightPsf(int rows, int columns, int fibres);

std::string Gzipped(const std::string& bytes);

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_SERVICE_SUPPORT_ATTACK_FILES_H_
