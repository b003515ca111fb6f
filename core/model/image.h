// A preprocessed CCD image, ready to be fitted.
#ifndef SPEXD_CORE_MODEL_IMAGE_H_
#define SPEXD_CORE_MODEL_IMAGE_H_

#include <cmath>
#include <cstdint>

#include "core/base/array.h"

namespace spexd {

// ccdmask bits that make a pixel unusable: 0..9 without BADREADNOISE (256).
inline constexpr int64_t kUnusablePixelBits = 767;

struct Image {
  Array<float, 2> pixels;  // [row, column], electrons; 0 where unusable
  Array<float, 2> ivar;    // [row, column], 1/electrons^2; 0 where unusable, else finite and > 0

  int rows() const { return static_cast<int>(pixels.shape(0)); }
  int columns() const { return static_cast<int>(pixels.shape(1)); }
};

// The mask rule: whether a pixel takes part in the fit.
inline bool IsUsable(float pixel, float ivar, int64_t mask) {
  return (mask & kUnusablePixelBits) == 0 && ivar > 0 && std::isfinite(pixel) && std::isfinite(ivar);
}

}  // namespace spexd

#endif  // SPEXD_CORE_MODEL_IMAGE_H_
