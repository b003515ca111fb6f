// Image HDUs, plain or tile-compressed, decoded to one element type.
#ifndef SPEXD_CORE_FITS_IMAGES_IMAGE_HDU_H_
#define SPEXD_CORE_FITS_IMAGES_IMAGE_HDU_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/base/array.h"
#include "core/base/threads/parallel.h"
#include "core/fits/hdu/convert.h"
#include "core/fits/hdu/fits_file.h"

namespace spexd {

// Type and shape of an image HDU after decompression.
struct ImageLayout {
  int bitpix = 0;
  std::vector<int64_t> axes;  // NAXIS1 first; 1 to 4 axes, at most 3 if it is compressed
  int64_t pixels = 0;         // product of the axes, > 0
  Scaling scaling;
  bool compressed = false;

  bool IsInteger() const { return bitpix > 0; }
  // The shape as text, rows first as arrays are indexed: "4128 x 4114".
  std::string ShapeText() const;
};

// The layout of an HDU. InvalidArgument unless it is an image with a possible number of axes and at least one
// pixel.
absl::StatusOr<ImageLayout> LayoutOf(const Hdu& hdu);

// InvalidArgument unless the image decodes to uint16_t and uint32_t: integers, unscaled except for a whole
// offset.
absl::Status CheckInteger(const Hdu& hdu, const ImageLayout& layout);

// Checks that the HDU has enough bytes to hold the image, before memory is taken for it. Cancelled if a stop
// is requested.
absl::Status CheckPresent(const Hdu& hdu, const ImageLayout& layout, const std::stop_token& stop = {});

// An upper estimate of the memory that DecodeImage takes beside `out`. REQUIRES: CheckPresent.
absl::StatusOr<int64_t> ScratchBytes(const Hdu& hdu, const ImageLayout& layout, int threads);

// Decodes the image into `out` (layout.pixels elements). T is float, double, uint16_t or uint32_t. REQUIRES:
// CheckPresent; for integers also CheckInteger. Borrows ScratchBytes (Hdu::memory).
template <typename T>
absl::Status DecodeImage(const Hdu& hdu, const ImageLayout& layout, const Workers& workers,
                         absl::Span<T> out);

// Checks and decodes an image of N axes (fewer are taken as leading axes of 1), and takes memory for it.
template <typename T, size_t N>
absl::StatusOr<Array<T, N>> ReadImage(const Hdu& hdu, const Workers& workers = {});

}  // namespace spexd

#endif  // SPEXD_CORE_FITS_IMAGES_IMAGE_HDU_H_
