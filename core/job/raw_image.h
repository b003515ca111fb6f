// Images that arrive as arrays instead of a file.
#ifndef SPEXD_CORE_JOB_RAW_IMAGE_H_
#define SPEXD_CORE_JOB_RAW_IMAGE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/threads/parallel.h"
#include "core/model/image.h"

namespace spexd {

// An image as bytes: pixels and ivar (float32), then mask (int32), each rows x columns, little-endian.
struct RawImage {
  int rows = 0;
  int columns = 0;
  std::vector<std::string> cards;
  std::string bytes;
};

inline constexpr int64_t kRawBytesPerPixel = 12;

// The planes of `raw`, which point into its bytes. REQUIRES: bytes of rows * columns pixels.
ImagePlanes PlanesOf(const RawImage& raw);

// Counts the Image::negative_ivar of an image that is read in place. Cancelled if a stop is requested.
absl::StatusOr<int64_t> CountUnflaggedNegative(const ImagePlanes& planes, const Workers& workers);

}  // namespace spexd

#endif  // SPEXD_CORE_JOB_RAW_IMAGE_H_
