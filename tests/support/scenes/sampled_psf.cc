#include "tests/support/scenes/sampled_psf.h"

#include <cmath>
#include <numbers>
#include <utility>

#include "core/model/spots/sampled.h"

namespace spexd::testing {
namespace {

// A Gaussian at (x, y) pixels from the spot's centre.
struct Blob {
  double x, y, sigma_x, sigma_y, light;
};

// Adds a Gaussian to an image.
void Draw(const Blob& blob, int image, SampledImages* images) {
  const double pixel = 1.0 / images->oversampling;
  const double light = blob.light / (2 * std::numbers::pi * blob.sigma_x * blob.sigma_y);
  for (int row = 0; row < images->rows(); ++row) {
    for (int column = 0; column < images->columns(); ++column) {
      const double u = ((column - images->centre_x) * pixel - blob.x) / blob.sigma_x;
      const double v = ((row - images->centre_y) * pixel - blob.y) / blob.sigma_y;
      images->samples(image, row, column) += light * pixel * pixel * std::exp(-0.5 * (u * u + v * v));
    }
  }
}

// Draws a spot with a companion; `part` changes its shape.
void DrawSpot(double part, int image, SampledImages* images) {
  Draw({-0.2, 0.1, 1 + 0.1 * part, 0.85 + 0.05 * part, 0.8}, image, images);
  Draw({0.8 + 0.3 * part, -0.5, 0.9, 0.75 - 0.1 * part, 0.2 + 0.1 * part}, image, images);
}

SampledImages Blank(int count, int oversampling, int columns, int rows, double centre_x, double centre_y) {
  SampledImages images;
  images.oversampling = oversampling;
  images.centre_x = centre_x;
  images.centre_y = centre_y;
  images.samples.Assign({count, rows, columns});
  return images;
}

SampledImages Rounded(SampledImages images) {
  for (double& sample : images.samples.flat()) sample = std::nearbyint(sample * 0x1p22) * 0x1p-22;
  return images;
}

// Returns the layout of a grid of side x side images.
SampledLayout LayOut(const SampledImages& images, SubpixelShift shift, int side) {
  SampledLayout layout;
  LayOutImages(images.columns(), images.rows(), images.oversampling, images.centre_x, images.centre_y,
               &layout);
  layout.shift = shift;
  layout.positions = layout.wavelengths = side;
  return layout;
}

// Returns spots without the data of fibres.
SampledSpots MakeSampledSpots(const SampledImages& images, const SampledLayout& layout, int fibres) {
  SampledSpots spots;
  spots.layout = layout;
  const int64_t count = images.samples.shape(0), samples = images.samples.size() / count;
  spots.layout.images = static_cast<int32_t>(count);
  Array<float, 2> stamps({spots.layout.stamps(), layout.stamp.pixels()});
  const int64_t values = stamps.size() / count;
  for (int64_t image = 0; image < count; ++image) {
    BinImage(images.samples.flat().subspan(image * samples, samples), images.columns(), images.rows(), layout,
             stamps.flat().subspan(image * values, values));
  }
  spots.stamps = SharedArray<float, 2>(std::move(stamps));
  spots.powers = {{0, 0}, {1, 0}, {0, 1}, {1, 1}};
  spots.powers.resize(layout.powers);
  spots.fibres.resize(fibres);
  spots.sigma_y = MeanSigmaY(spots);
  return spots;
}

}  // namespace

SampledImages GridImages() {
  SampledImages images = Blank(kGridSide * kGridSide, 5, 83, 51, 40.3, 25.8);
  for (int position = 0; position < kGridSide; ++position) {
    for (int wave = 0; wave < kGridSide; ++wave)
      DrawSpot(0.5 * position - 0.3 * wave, position * kGridSide + wave, &images);
  }
  return Rounded(std::move(images));
}

SampledImages OneImage() {
  SampledImages image = Blank(1, 5, 85, 55, 42, 27);
  DrawSpot(0.4, 0, &image);
  return Rounded(std::move(image));
}

SampledImages PolynomialImages() {
  SampledImages images = Blank(2 * 4, 1, 17, 11, 8, 5);
  for (int group = 0; group < 2; ++group) {
    DrawSpot(0.5 * group, 4 * group, &images);
    Draw({1, 0, 1, 0.9, 0.04}, 4 * group + 1, &images);
    Draw({-1, 0.3, 1, 0.9, -0.04}, 4 * group + 1, &images);
    Draw({0, 1, 1.2, 0.8, 0.05}, 4 * group + 2, &images);
    Draw({0.5, -1, 1.2, 0.8, -0.04}, 4 * group + 2, &images);
    Draw({0, 0, 0.9, 0.9, 0.01 * (1 + group)}, 4 * group + 3, &images);
  }
  return Rounded(std::move(images));
}

SampledSpots MakeImageGrid(const SampledImages& images, const Psf& psf) {
  SampledSpots spots =
      MakeSampledSpots(images, LayOut(images, SubpixelShift::kLinear, kGridSide), psf.fibres);
  spots.positions = {-0.5, 0.45 * psf.fibres, psf.fibres - 0.5};
  spots.wavelengths = {psf.wave_min, 0.6 * psf.wave_min + 0.4 * psf.wave_max, psf.wave_max};
  for (int i = 0; i < psf.fibres; ++i) spots.fibres[i].position = i;
  return spots;
}

SampledSpots MakeShiftedImage(const SampledImages& image, const Psf& psf) {
  SampledSpots spots = MakeSampledSpots(image, LayOut(image, SubpixelShift::kSinc, 1), psf.fibres);
  spots.positions = {0};
  spots.wavelengths = {psf.wave_min};
  return spots;
}

SampledSpots MakeImagePolynomials(const SampledImages& images, const Psf& psf) {
  SampledLayout layout;
  layout.stamp = {CentredAxis(images.columns() / 2), CentredAxis(images.rows() / 2)};
  layout.shift = SubpixelShift::kSinc;
  layout.powers = 4;
  SampledSpots spots = MakeSampledSpots(images, layout, psf.fibres);
  for (int i = 0; i < psf.fibres; ++i) {
    spots.fibres[i] = {.group = i % 2,
                       .x0 = 0.5 * psf.columns + i,
                       .x_scale = 2.0 / psf.columns,
                       .y0 = 0.5 * psf.rows - i,
                       .y_scale = 1.8 / psf.rows};
  }
  return spots;
}

}  // namespace spexd::testing
