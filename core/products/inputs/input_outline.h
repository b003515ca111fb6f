// What headers tell of the inputs of products, before memory is taken for their pixels.
#ifndef SPEXD_CORE_PRODUCTS_INPUTS_INPUT_OUTLINE_H_
#define SPEXD_CORE_PRODUCTS_INPUTS_INPUT_OUTLINE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "core/fits/hdu/source.h"

namespace spexd {

struct InputOutline {
  int64_t rows = 0, columns = 0;  // [fibre, bin] of a fiberflat, [template, sample] of templates
  int64_t decode_bytes = 0;       // an upper estimate of what reading takes, the result included
};

// InvalidArgument that names the file, the HDU and what is wrong. Of a fiberflat, only HDU FIBERFLAT is
// looked at; its others have the same shape.
absl::StatusOr<InputOutline> ReadFiberflatOutline(const Source& source);
absl::StatusOr<InputOutline> ReadTemplatesOutline(const Source& source);

}  // namespace spexd

#endif  // SPEXD_CORE_PRODUCTS_INPUTS_INPUT_OUTLINE_H_
