// Folders of simulated spectra of stars, in the layouts of real collections.
#ifndef SPEXD_TESTS_ANALYSIS_STAR_GRID_H_
#define SPEXD_TESTS_ANALYSIS_STAR_GRID_H_

#include <functional>
#include <string>
#include <vector>

namespace spexd::testing {

// Returns the flux of a star at a wavelength in vacuum: a continuum that depends on `teff`, with some hundred
// lines of sigma 8 km/s, narrower than any frame's bins, whose depths depend on all three parameters.
double StarFlux(double wave, double teff, double logg, double feh);

struct StarGrid {
  double first = 5000, last = 8000;  // Angstrom
  double step = 0.05;
  bool separate_waves = false;  // whether wavelengths are in a file WAVE_GRID.fits, as PHOENIX has them
  const char* type = "WAVE";    // CTYPE1: WAVE in vacuum, AWAV in air, "" unspecified
  std::vector<double> teff = {4500, 5500, 6500}, logg = {2, 4.5}, feh = {-1.5, 0};
};

// Writes a file for each node of the grid; returns their paths. `change` may first alter the flux of each.
using Change = std::function<void(double teff, double logg, double feh, std::vector<double>* flux)>;
std::vector<std::string> WriteStarGrid(const StarGrid& grid, const std::string& folder,
                                       const Change& change = {});

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_ANALYSIS_STAR_GRID_H_
