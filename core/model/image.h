// Preprocessed CCD images: decoded ones, and arrays of a caller that are read in place.
#ifndef SPEXD_CORE_MODEL_IMAGE_H_
#define SPEXD_CORE_MODEL_IMAGE_H_

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "core/base/array.h"
#include "core/model/mask_rule.h"

namespace spexd {

struct Image {
  Array<float, 2> pixels;     // [row, column], electrons; 0 where unusable
  Array<float, 2> ivar;       // [row, column], 1/electrons^2; 0 where unusable, else finite and > 0
  int64_t negative_ivar = 0;  // number of pixels with ivar < 0 that no MASK bit makes unusable

  int rows() const { return static_cast<int>(pixels.shape(0)); }
  int columns() const { return static_cast<int>(pixels.shape(1)); }
};

// An image in arrays that a caller owns and that stay unchanged. The mask rule has not been applied:
// LoadPixel applies it to each pixel. The arrays need not be aligned.
struct ImagePlanes {
  int rows = 0;
  int columns = 0;
  const char* pixels = nullptr;  // float32 [row, column], electrons; null: no image
  const char* ivar = nullptr;    // float32 [row, column], 1/electrons^2
  const char* mask = nullptr;    // int32 [row, column]; null: no pixel is flagged
};

inline ImagePlanes PlanesOf(const Image& image) {
  return {image.rows(), image.columns(), reinterpret_cast<const char*>(image.pixels.data()),
          reinterpret_cast<const char*>(image.ivar.data())};
}

// A pixel's value and ivar as an Image holds them; both are 0 in unusable pixels.
struct Pixel {
  float value = 0;
  float ivar = 0;
};

template <typename T>
T LoadUnaligned(const char* values, size_t index) {
  T value;
  std::memcpy(&value, values + index * sizeof(T), sizeof(T));
  return value;
}

inline Pixel LoadPixel(const ImagePlanes& planes, size_t index) {
  const Pixel pixel = {LoadUnaligned<float>(planes.pixels, index), LoadUnaligned<float>(planes.ivar, index)};
  const int32_t mask = planes.mask != nullptr ? LoadUnaligned<int32_t>(planes.mask, index) : 0;
  return IsUsable(pixel.value, pixel.ivar, mask) ? pixel : Pixel();
}

}  // namespace spexd

#endif  // SPEXD_CORE_MODEL_IMAGE_H_
