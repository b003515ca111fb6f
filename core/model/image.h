// A preprocessed CCD image, ready to be fitted.
#ifndef SPEXD_CORE_MODEL_IMAGE_H_
#define SPEXD_CORE_MODEL_IMAGE_H_

#include <cstdint>

#include "core/base/array.h"
#include "core/model/mask_rule.h"

namespace spexd {

struct Image {
  Array<float, 2> pixels;     // [row, column], electrons; 0 where unusable
  Array<float, 2> ivar;       // [row, column], 1/electrons^2; 0 where unusable, else finite and > 0
  int64_t negative_ivar = 0;  // pixels that no bit of MASK makes unusable, but an ivar < 0 in the file

  int rows() const { return static_cast<int>(pixels.shape(0)); }
  int columns() const { return static_cast<int>(pixels.shape(1)); }
};

}  // namespace spexd

#endif  // SPEXD_CORE_MODEL_IMAGE_H_
