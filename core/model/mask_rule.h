// The rule by which pixels of a preprocessed frame take part in the fit.
#ifndef SPEXD_CORE_MODEL_MASK_RULE_H_
#define SPEXD_CORE_MODEL_MASK_RULE_H_

#include <cmath>
#include <cstdint>

#include "core/base/host_device.h"

namespace spexd {

// ccdmask bits that make a pixel unusable: 0..9 without BADREADNOISE (256).
inline constexpr int64_t kUnusablePixelBits = 767;

SPEXD_HOST_DEVICE inline bool IsUsable(float pixel, float ivar, int64_t mask) {
  return (mask & kUnusablePixelBits) == 0 && ivar > 0 && std::isfinite(pixel) && std::isfinite(ivar);
}

// Whether nothing but a negative ivar makes the pixel unusable. Lossy compression makes such values.
SPEXD_HOST_DEVICE inline bool IsUnflaggedNegative(float ivar, int64_t mask) {
  return (mask & kUnusablePixelBits) == 0 && ivar < 0;
}

}  // namespace spexd

#endif  // SPEXD_CORE_MODEL_MASK_RULE_H_
