// Image HDUs as rows in Rice coding, for decoders outside this folder.
#ifndef SPEXD_CORE_FITS_IMAGES_CODED_ROWS_H_
#define SPEXD_CORE_FITS_IMAGES_CODED_ROWS_H_

#include <cstdint>
#include <optional>
#include <stop_token>

#include "absl/status/statusor.h"
#include "core/fits/images/image_hdu.h"
#include "core/model/coded_image.h"

namespace spexd {

// The bytes of the HDU's coded rows and of its decoded rows. nullopt unless each tile is a row in Rice coding
// (single rows of pixels may be stored otherwise) and its values are quantised pixels or integers. REQUIRES:
// CheckPresent.
absl::StatusOr<std::optional<int64_t>> CodedRowBytes(const Hdu& hdu, const ImageLayout& layout);

// Appends the HDU to the image as a plane, which refers to the HDU's bytes. REQUIRES: CodedRowBytes returned
// a number; the image has the HDU's shape. Cancelled if a stop is requested.
absl::Status AddCodedPlane(const Hdu& hdu, const ImageLayout& layout, const std::stop_token& stop,
                           CodedImage* image);

}  // namespace spexd

#endif  // SPEXD_CORE_FITS_IMAGES_CODED_ROWS_H_
