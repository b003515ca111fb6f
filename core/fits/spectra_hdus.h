// The HDUs that hold the spectra of one camera, in frames and in files of spectra of several cameras.
#ifndef SPEXD_CORE_FITS_SPECTRA_HDUS_H_
#define SPEXD_CORE_FITS_SPECTRA_HDUS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/array.h"
#include "core/base/threads/parallel.h"
#include "core/fits/hdu/fits_file.h"
#include "core/model/frame.h"
#include "core/model/psf.h"
#include "core/model/wavelength_grid.h"

namespace spexd {

// The names of the arms in a file of spectra, in the order of their HDUs. InvalidArgument if there is none,
// more than 16, or one twice.
absl::StatusOr<std::vector<std::string>> ArmsOfSpectra(const FitsFile& file);

// The wavelengths, in Angstrom, of the HDU WAVELENGTH or WAVE with the prefix. InvalidArgument unless they
// are at most kMaxWavelengthBins, finite, increasing and uniform.
absl::StatusOr<std::vector<double>> ReadWavelengths(const FitsFile& file, const std::string& prefix);

// InvalidArgument, naming the HDU, unless `shape` is [fibres, bins].
absl::Status CheckSpectraShape(const Hdu& hdu, const Array<float, 2>::Shape& shape, int64_t fibres,
                               int64_t bins);

struct CameraHdus {
  std::string prefix;  // prefix of the HDUs' names, such as "R_"; may be ""
  int64_t max_rows = kMaxFibres;
  // Whether chi2pix is read, as 0 if the file has none. Otherwise the result has no chi2pix.
  bool chi2pix = true;
};
struct CameraSpectra {
  WavelengthGrid grid;  // Wave(j) gives the file's wavelengths, to the bit if this program wrote them
  Spectra spectra;
};
// Reads WAVELENGTH [bin]; FLUX and IVAR [fibre, bin]; MASK and CHI2PIX, 0 if the file has none; RESOLUTION
// [fibre, diagonal, bin] with an odd number of diagonals. Takes their memory from the file's account.
absl::StatusOr<CameraSpectra> ReadCameraSpectra(const FitsFile& file, const CameraHdus& hdus,
                                                const Workers& workers = {});

}  // namespace spexd

#endif  // SPEXD_CORE_FITS_SPECTRA_HDUS_H_
