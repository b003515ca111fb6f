// Images that came as arrays instead of a file.
#ifndef SPEXD_CORE_JOB_RAW_IMAGE_H_
#define SPEXD_CORE_JOB_RAW_IMAGE_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/threads/parallel.h"
#include "core/model/image.h"

namespace spexd {

// Pixels and ivar (float32), then mask (int32), each rows x columns, little-endian.
struct RawImage {
  int rows = 0;
  int columns = 0;
  std::vector<std::string> cards;
  std::string bytes;
};

inline constexpr int64_t kRawBytesPerPixel = 12;

// The same arrays, lying in memory of somebody else. They need not be aligned.
struct RawPlanes {
  int rows = 0;
  int columns = 0;
  const char* pixels = nullptr;
  const char* ivar = nullptr;
  const char* mask = nullptr;  // null: no pixel is flagged
};

// The planes of `raw`, which lie in its bytes. REQUIRES: bytes of rows * columns pixels.
RawPlanes PlanesOf(const RawImage& raw);

// The image after the mask rule. The result does not depend on the number of threads. Cancelled if a stop is
// requested; other errors only where memory runs out.
absl::StatusOr<Image> Decode(const RawPlanes& planes, const Workers& workers);

}  // namespace spexd

#endif  // SPEXD_CORE_JOB_RAW_IMAGE_H_
