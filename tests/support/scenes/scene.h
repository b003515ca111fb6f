// Small simulated instruments and images for tests of engines.
#ifndef SPEXD_TESTS_SUPPORT_SCENES_SCENE_H_
#define SPEXD_TESTS_SUPPORT_SCENES_SCENE_H_

#include <cstdint>
#include <memory>

#include "core/model/image.h"
#include "core/model/psf.h"
#include "core/model/wavelength_grid.h"

namespace spexd::testing {

enum class SceneSpots {
  kGaussHermite,  // one core
  kTwoCores,      // the first ends at a cutoff; with a tail
  kImageGrid,     // images at positions and wavelengths, interpolated linearly
  kOneImage,      // shifted by a sinc
  kPolynomials,   // polynomials of images, shifted by a sinc
};

struct SceneOptions {
  int fibres = 5;
  int rows = 100;
  int bundle_size = 25;     // number of fibres between gaps of the traces
  double spacing = 7.3;     // columns between traces
  double dispersion = 0.6;  // Angstrom a row
  double widen = 1;         // factor on the widths of Gauss-Hermite spots across fibres
  int half_columns = 8;     // columns of Gauss-Hermite spots on each side of the middle one
  SceneSpots spots = SceneSpots::kGaussHermite;
  bool tail = false;  // whether the single core has a tail
  uint64_t seed = 1;
};

// Wavelength at row 0, Angstrom.
inline constexpr double kSceneWave = 6000;

// Returns a PSF with spots of about 17 x 11 pixels that vary with fibre and wavelength, except those of one
// image.
std::shared_ptr<Psf> MakeScenePsf(const SceneOptions& options);

// Returns an image of spectra with a continuum and lines, seen through the PSF, with noise and its ivar.
// Every pixel is usable.
std::shared_ptr<Image> MakeSceneImage(const Psf& psf, const SceneOptions& options);

// Makes a rectangle of pixels unusable. The rectangle is clipped to the image.
void MaskPixels(int first_row, int rows, int first_column, int columns, Image* image);

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_SUPPORT_SCENES_SCENE_H_
