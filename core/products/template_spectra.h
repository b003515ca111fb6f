// Spectra of stars as the field's collections store them: a FITS file for each spectrum, with the flux in the
// primary HDU and the parameters in its header (for example PHOENIX's layout).
#ifndef SPEXD_CORE_PRODUCTS_TEMPLATE_SPECTRA_H_
#define SPEXD_CORE_PRODUCTS_TEMPLATE_SPECTRA_H_

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace spexd {

enum class Medium { kAir, kVacuum };

struct SpectraLayout {
  // The name of each parameter, and the keyword that holds its value.
  std::vector<std::pair<std::string, std::string>> parameters = {
      {"TEFF", "PHXTEFF"}, {"LOGG", "PHXLOGG"}, {"FEH", "PHXM_H"}};
  // The file whose primary HDU has the wavelengths of all spectra; "" if their headers state them.
  std::string wave_file;
  // The medium of the wavelengths; none if the headers state it (CTYPE1 AWAV or WAVE, or AIRORVAC).
  std::optional<Medium> medium;
};

// One spectrum. The flux is per unit of wavelength, in any scale.
struct StarSpectrum {
  std::vector<double> flux, parameters;
  std::string grid;  // wavelength keywords of its header, to tell grids apart; "" with a wave file
};

// The paths of the FITS files below a folder in the order of their names, without those that begin with WAVE.
// Such a file becomes the wave file if the layout has none yet. InvalidArgument if there are fewer than two
// spectra, or two wave files.
absl::StatusOr<std::vector<std::string>> FindSpectra(const std::string& folder, SpectraLayout* layout);

// Reads a spectrum. InvalidArgument, naming the file and what is wrong, if a parameter is missing or a value
// is not finite.
absl::StatusOr<StarSpectrum> ReadStarSpectrum(const std::string& path, const SpectraLayout& layout);

// The wavelengths of a spectrum's samples in vacuum, Angstrom, ascending. `path`: a spectrum, whose header
// states them if the layout has no wave file.
absl::StatusOr<std::vector<double>> ReadStarWavelengths(const std::string& path, const SpectraLayout& layout);

// Converts a wavelength from air to vacuum (Morton 2000 in the inverse of N. Piskunov). Wavelengths below
// 2000 Angstrom are in vacuum already.
double VacuumWavelength(double air);

}  // namespace spexd

#endif  // SPEXD_CORE_PRODUCTS_TEMPLATE_SPECTRA_H_
