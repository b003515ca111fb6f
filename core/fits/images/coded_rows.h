// Image HDUs as rows in Rice coding, for decoders elsewhere.
#ifndef SPEXD_CORE_FITS_IMAGES_CODED_ROWS_H_
#define SPEXD_CORE_FITS_IMAGES_CODED_ROWS_H_

#include <cstdint>
#include <optional>
#include <stop_token>

#include "absl/status/statusor.h"
#include "core/fits/images/image_hdu.h"
#include "core/model/coded_image.h"

namespace spexd {

// Bytes of a heap of coded rows, and of rows that are decoded; nullopt unless it has a tile to a row, in Rice
// coding but for some rows of pixels, whose values are quantised pixels, or integers. REQUIRES: CheckPresent.
absl::StatusOr<std::optional<int64_t>> CodedRowBytes(const Hdu& hdu, const ImageLayout& layout);

// Appends the HDU as a plane, which refers to its bytes. REQUIRES: CodedRowBytes gave a number; the image has
// the HDU's shape. Cancelled if a stop is requested.
absl::Status AddCodedPlane(const Hdu& hdu, const ImageLayout& layout, const std::stop_token& stop,
                           CodedImage* image);

}  // namespace spexd

#endif  // SPEXD_CORE_FITS_IMAGES_CODED_ROWS_H_
