// Sampled spots of made-up images.
#ifndef SPEXD_TESTS_SUPPORT_SCENES_SAMPLED_PSF_H_
#define SPEXD_TESTS_SUPPORT_SCENES_SAMPLED_PSF_H_

#include "core/base/array.h"
#include "core/model/psf.h"

namespace spexd::testing {

// Images of spots that are not symmetric. Samples are multiples of 2^-22, so that stamps, which are float32,
// hold sums of them without rounding.
struct SampledImages {
  int oversampling = 1;  // samples to a CCD pixel along each axis
  double centre_x = 0;   // the sample where a spot's centre is
  double centre_y = 0;
  Array<double, 3> samples;  // [image, row, column]

  int columns() const { return static_cast<int>(samples.shape(2)); }
  int rows() const { return static_cast<int>(samples.shape(1)); }
};

// Images at kGridSide positions on the slit x kGridSide wavelengths.
inline constexpr int kGridSide = 3;
SampledImages GridImages();
// A single image. Where its centre is in the middle of a CCD pixel, its edges are pixels' edges.
SampledImages OneImage();
// Images of two groups x the powers 1, x, y, xy; not oversampled. Those of 1 are spots, the others changes.
SampledImages PolynomialImages();

// Spots of these images for the PSF's fibres, wavelengths and CCD; neighbouring fibres differ in all that a
// fibre has.
SampledSpots MakeImageGrid(const SampledImages& images, const Psf& psf);
SampledSpots MakeShiftedImage(const SampledImages& image, const Psf& psf);
SampledSpots MakeImagePolynomials(const SampledImages& images, const Psf& psf);

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_SUPPORT_SCENES_SAMPLED_PSF_H_
