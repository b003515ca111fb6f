// Small made-up instruments and images for engine tests.
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
  kTwoCores,      // of which the first ends at a cutoff, and a tail
  kImageGrid,     // images at positions and wavelengths, interpolated linearly
  kOneImage,      // shifted by a sinc
  kPolynomials,   // of images, shifted by a sinc
};

struct SceneOptions {
  int fibres = 5;
  int rows = 100;
  int bundle_size = 25;     // fibres between which the traces leave a gap
  double spacing = 7.3;     // columns between traces
  double dispersion = 0.6;  // Angstrom a row
  double widen = 1;         // factor on the widths of Gauss-Hermite spots across fibres
  int half_columns = 8;     // columns of Gauss-Hermite spots on each side of the middle one
  SceneSpots spots = SceneSpots::kGaussHermite;
  bool tail = false;  // of one core
  uint64_t seed = 1;
};

// Row 0 lies at kSceneWave.
inline constexpr double kSceneWave = 6000;

// A PSF whose spots, of about 17 x 11 pixels, vary with fibre and wavelength (one image does not).
std::shared_ptr<Psf> MakeScenePsf(const SceneOptions& options);

// Spectra with a continuum and lines, seen through the PSF, with noise and its ivar. Every pixel is usable.
std::shared_ptr<Image> MakeSceneImage(const Psf& psf, const SceneOptions& options);

// Makes a rectangle of pixels unusable; clipped to the image.
void MaskPixels(int first_row, int rows, int first_column, int columns, Image* image);

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_SUPPORT_SCENES_SCENE_H_
