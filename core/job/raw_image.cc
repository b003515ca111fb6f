#include "core/job/raw_image.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "absl/status/status.h"
#include "core/base/status_macros.h"

namespace spexd {
namespace {

constexpr int kRowsOfAPiece = 64;

template <typename T>
T Load(const char* values, size_t index) {
  T value;
  std::memcpy(&value, values + index * sizeof(T), sizeof(T));
  return value;
}

// Returns how many pixels have a negative IVAR that MASK does not flag.
int64_t DecodePixels(const RawPlanes& planes, size_t begin, size_t end, Image* image) {
  int64_t negative = 0;
  for (size_t k = begin; k < end; ++k) {
    const auto pixel = Load<float>(planes.pixels, k);
    const auto ivar = Load<float>(planes.ivar, k);
    const int32_t mask = planes.mask != nullptr ? Load<int32_t>(planes.mask, k) : 0;
    negative += IsUnflaggedNegative(ivar, mask);
    if (!IsUsable(pixel, ivar, mask)) continue;
    image->pixels.flat()[k] = pixel;
    image->ivar.flat()[k] = ivar;
  }
  return negative;
}

}  // namespace

RawPlanes PlanesOf(const RawImage& raw) {
  const char* const bytes = raw.bytes.data();
  const size_t plane = static_cast<size_t>(raw.rows) * static_cast<size_t>(raw.columns) * sizeof(float);
  return {raw.rows, raw.columns, bytes, bytes + plane, bytes + 2 * plane};
}

absl::StatusOr<Image> Decode(const RawPlanes& planes, const Workers& workers) {
  Image image;
  image.pixels.Assign({planes.rows, planes.columns});
  image.ivar.Assign({planes.rows, planes.columns});
  const int pieces = (planes.rows + kRowsOfAPiece - 1) / kRowsOfAPiece;
  std::vector<int64_t> negative(static_cast<size_t>(pieces));
  SPEXD_RETURN_IF_ERROR(ParallelFor(pieces, workers, [&](int64_t piece) {
    const auto columns = static_cast<size_t>(planes.columns),
               first = static_cast<size_t>(piece) * kRowsOfAPiece;
    const size_t end = std::min(first + kRowsOfAPiece, static_cast<size_t>(planes.rows));
    negative[static_cast<size_t>(piece)] = DecodePixels(planes, first * columns, end * columns, &image);
    return absl::OkStatus();
  }));
  image.negative_ivar = std::accumulate(negative.begin(), negative.end(), int64_t{0});
  return image;
}

}  // namespace spexd
