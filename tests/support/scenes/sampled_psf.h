// Sampled spots of simulated images.
#ifndef SPEXD_TESTS_SUPPORT_SCENES_SAMPLED_PSF_H_
#define SPEXD_TESTS_SUPPORT_SCENES_SAMPLED_PSF_H_

#include "core/base/array.h"
#include "core/model/psf.h"

namespace spexd::testing {

// Images of asymmetric spots. Samples are multiples of 2^-22, so that float32 stamps hold their sums without
// rounding.
struct SampledImages {
  int oversampling = 1;  // samples per CCD pixel along each axis
  double centre_x = 0;   // the sample at the spot's centre
  double centre_y = 0;
  Array<double, 3> samples;  // [image, row, column]

  int columns() const { return static_cast<int>(samples.shape(2)); }
  int rows() const { return static_cast<int>(samples.shape(1)); }
};

// Returns images at kGridSide positions on the slit x kGridSide wavelengths.
inline constexpr int kGridSide = 3;
SampledImages GridImages();
// Returns a single image. If its centre is in the middle of a CCD pixel, its edges are edges of pixels.
SampledImages OneImage();
// Returns images of two groups x the powers 1, x, y, xy, not oversampled. Images of 1 are spots, the others
// are changes.
SampledImages PolynomialImages();

// Return spots of these images for the PSF's fibres, wavelengths and CCD. Neighbouring fibres differ in
// everything that depends on the fibre.
SampledSpots MakeImageGrid(const SampledImages& images, const Psf& psf);
SampledSpots MakeShiftedImage(const SampledImages& image, const Psf& psf);
SampledSpots MakeImagePolynomials(const SampledImages& images, const Psf& psf);

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_SUPPORT_SCENES_SAMPLED_PSF_H_
