// The HDUs of a complete file, written piece by piece by several threads.
#ifndef SPEXD_CORE_FITS_HDU_HDU_PARTS_H_
#define SPEXD_CORE_FITS_HDU_HDU_PARTS_H_

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "core/fits/hdu/output_file.h"

namespace spexd {

// Pixels in the processor's byte order.
struct NativePixels {
  absl::Span<const char> bytes;
  size_t width = 4;      // bytes of a pixel: 4 or 8
  uint32_t flipped = 0;  // bits that the file has inverted; only if width is 4
};

// Headers and data are padded to multiples of 2880 bytes, pixels not.
struct HduParts {
  absl::Span<char> header;
  absl::string_view data;  // as it is in the file, or
  NativePixels pixels;
};

int64_t FileBytes(absl::Span<const HduParts> hdus);

// Fills in the checksums of the headers, and writes the file by up to `threads` threads: first the data,
// pixels converted, then the headers. The bytes do not depend on `threads`. Errors are those of `write`;
// Internal if a header has no checksums.
absl::Status WriteHdus(absl::Span<const HduParts> hdus, int threads, const PieceWriter& write);

}  // namespace spexd

#endif  // SPEXD_CORE_FITS_HDU_HDU_PARTS_H_
