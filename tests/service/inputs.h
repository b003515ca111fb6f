// Small inputs for the service's tests: a PSF and a frame, as files and as bytes.
#ifndef SPEXD_TESTS_SERVICE_INPUTS_H_
#define SPEXD_TESTS_SERVICE_INPUTS_H_

#include <string>

#include "core/model/psf.h"
#include "tests/support/temp_folder.h"

namespace spexd::testing {

inline constexpr int kFibres = 10;
inline constexpr int kRows = 60;
inline constexpr int kColumns = 80;
inline constexpr double kWaveMin = 6000, kWaveMax = 6040;  // 51 bins of 0.8 Angstrom

// Straight traces, round Gaussian spots. PSFs of different `variant` have different hashes.
Psf SmallPsf(int variant = 0);

void WritePsfFile(const std::string& path, int variant = 0);
void WritePreprocFile(const std::string& path);
void WriteText(const std::string& path, const std::string& text);

// Pixels, ivar and mask as RawImage's chunks carry them.
std::string RawArrays(int rows, int columns);

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_SERVICE_INPUTS_H_
