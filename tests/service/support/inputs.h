// Small inputs for the service's tests: a PSF and a frame, as files and as bytes.
#ifndef SPEXD_TESTS_SERVICE_SUPPORT_INPUTS_H_
#define SPEXD_TESTS_SERVICE_SUPPORT_INPUTS_H_

#include <string>

#include "core/model/psf.h"
#include "spexd/v1/extraction.pb.h"
#include "tests/support/temp_folder.h"

namespace spexd::testing {

inline constexpr int kFibres = 10;
inline constexpr int kRows = 60;
inline constexpr int kColumns = 80;
inline constexpr double kWaveMin = 6000, kWaveMax = 6040;  // 51 bins of 0.8 Angstrom

// Returns a PSF with straight traces and round Gaussian spots. Different `variant` give different hashes.
Psf SmallPsf(int variant = 0);

void WritePsfFile(const std::string& path, int variant = 0);
void WritePreprocFile(const std::string& path);

// A folder with psf.fits and preproc.fits.
class InputFolder : public TempFolder {
 public:
  InputFolder() {
    WritePsfFile(*this / "psf.fits");
    WritePreprocFile(*this / "preproc.fits");
  }
};

void WriteText(const std::string& path, const std::string& text);

// Returns pixels, ivar and mask in the form of RawImage's chunks.
std::string RawArrays(int rows, int columns);

// Returns a header with "preproc.fits" and "psf.fits" of `folder` by path, all fibres.
v1::JobHeader PathHeader(const TempFolder& folder, int bundle_size);
// Returns a header with the image as raw arrays, to be sent afterwards, and the PSF by its path.
v1::JobHeader RawHeader(const TempFolder& folder, int bundle_size);

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_SERVICE_SUPPORT_INPUTS_H_
