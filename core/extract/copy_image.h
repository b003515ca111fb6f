// Copies of images that are read in place.
#ifndef SPEXD_CORE_EXTRACT_COPY_IMAGE_H_
#define SPEXD_CORE_EXTRACT_COPY_IMAGE_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "core/base/threads/parallel.h"
#include "core/model/image.h"

namespace spexd {

// Copies an image and applies the mask rule. The copy has kDecodedBytesPerPixel. Cancelled if a stop is
// requested.
absl::StatusOr<Image> CopyImage(const ImagePlanes& planes, const Workers& workers);

inline constexpr int64_t kDecodedBytesPerPixel = 8;

}  // namespace spexd

#endif  // SPEXD_CORE_EXTRACT_COPY_IMAGE_H_
