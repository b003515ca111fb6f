// Spectra of stars as the field's collections have them: one FITS file each, flux in the primary HDU,
// parameters in its header (PHOENIX's layout among them).
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
  // Name of each parameter, and the keyword that holds it.
  std::vector<std::pair<std::string, std::string>> parameters = {
      {"TEFF", "PHXTEFF"}, {"LOGG", "PHXLOGG"}, {"FEH", "PHXM_H"}};
  std::string wave_file;  // its primary HDU has the wavelengths of all spectra; "": their headers tell
  // Medium of the wavelengths; none: the headers tell (CTYPE1 AWAV or WAVE, or AIRORVAC).
  std::optional<Medium> medium;
};

// One spectrum. Flux is per unit of wavelength, in any scale.
struct StarSpectrum {
  std::vector<double> flux, parameters;
  std::string grid;  // what its header says of wavelengths, to tell grids apart; "" with a wave file
};

// Paths of the FITS files below a folder in the order of their names, without those that begin with WAVE. The
// wave file is the one that does, if the layout has none yet. InvalidArgument if there are fewer than two
// spectra, or two wave files.
absl::StatusOr<std::vector<std::string>> FindSpectra(const std::string& folder, SpectraLayout* layout);

// InvalidArgument that names the file and what is wrong: a parameter is missing, a value is not finite.
absl::StatusOr<StarSpectrum> ReadStarSpectrum(const std::string& path, const SpectraLayout& layout);

// Wavelengths of a spectrum's samples in vacuum, Angstrom, ascending. `path`: a spectrum, whose header tells
// if the layout has no wave file.
absl::StatusOr<std::vector<double>> ReadStarWavelengths(const std::string& path, const SpectraLayout& layout);

// Converts from air, from 2000 Angstrom on (Morton 2000 in the inverse of N. Piskunov); shorter wavelengths
// are given in vacuum.
double VacuumWavelength(double air);

}  // namespace spexd

#endif  // SPEXD_CORE_PRODUCTS_TEMPLATE_SPECTRA_H_
