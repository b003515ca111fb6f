// The HDUs of a complete file, which several threads write piece by piece.
#ifndef SPEXD_CORE_FITS_HDU_HDU_PARTS_H_
#define SPEXD_CORE_FITS_HDU_HDU_PARTS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/fits/hdu/output_file.h"

namespace spexd {

// Pixels in the CPU's byte order.
struct NativePixels {
  absl::Span<const char> bytes;
  size_t width = 4;      // bytes of a pixel: 4 or 8
  uint32_t flipped = 0;  // bits that are inverted in the file; only if width is 4
};

// The parts of an HDU, which has data, pixels or neither. Headers and data are padded to multiples of 2880
// bytes, pixels are not.
struct HduParts {
  absl::Span<char> header;
  absl::string_view data;  // bytes as in the file
  NativePixels pixels;
};

int64_t FileBytes(absl::Span<const HduParts> hdus);

// Writes the file on up to `threads` threads: first the data, with pixels converted, then the headers with
// their checksums. The bytes do not depend on `threads`. Errors are those of `write`; Internal if a header
// has no checksum cards.
absl::Status WriteHdus(absl::Span<const HduParts> hdus, int threads, const PieceWriter& write);

}  // namespace spexd

#endif  // SPEXD_CORE_FITS_HDU_HDU_PARTS_H_
