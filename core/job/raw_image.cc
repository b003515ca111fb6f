#include "core/job/raw_image.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <vector>

#include "absl/status/status.h"
#include "core/base/status_macros.h"
#include "core/base/threads/parallel.h"

namespace spexd {
namespace {

constexpr int kRowsOfAPiece = 64;

template <typename T>
T Load(const char* values, size_t index) {
  T value;
  std::memcpy(&value, values + index * sizeof(T), sizeof(T));
  return value;
}

Image EmptyImage(int rows, int columns) {
  Image image;
  image.pixels.Assign({rows, columns});
  image.ivar.Assign({rows, columns});
  return image;
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

Image Decode(const RawImage& raw) {
  Image image = EmptyImage(raw.rows, raw.columns);
  const auto count = static_cast<size_t>(image.pixels.size());
  const char* const bytes = raw.bytes.data();
  const size_t plane = count * sizeof(float);
  image.negative_ivar =
      DecodePixels({raw.rows, raw.columns, bytes, bytes + plane, bytes + 2 * plane}, 0, count, &image);
  return image;
}

absl::StatusOr<Image> Decode(const RawPlanes& planes, int threads) {
  Image image = EmptyImage(planes.rows, planes.columns);
  const int pieces = (planes.rows + kRowsOfAPiece - 1) / kRowsOfAPiece;
  std::vector<int64_t> negative(static_cast<size_t>(pieces));
  SPEXD_RETURN_IF_ERROR(ParallelFor(pieces, threads, [&](int64_t piece) {
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
