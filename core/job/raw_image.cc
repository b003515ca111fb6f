#include "core/job/raw_image.h"

#include <algorithm>
#include <atomic>

#include "absl/status/status.h"
#include "core/base/status_macros.h"
#include "core/model/mask_rule.h"

namespace spexd {
namespace {

constexpr int64_t kPiece = 1 << 17;  // pixels that a thread counts without a break
constexpr int64_t kRun = 1 << 10;    // pixels whose least ivar is found at a time

// Whether any ivar of a run is negative. Hardly any is, so most of the mask need not be read.
bool AnyNegative(const ImagePlanes& planes, int64_t begin, int64_t end) {
  bool any = false;
  for (int64_t k = begin; k < end; ++k) any |= LoadUnaligned<float>(planes.ivar, static_cast<size_t>(k)) < 0;
  return any;
}

int64_t CountRun(const ImagePlanes& planes, int64_t begin, int64_t end) {
  if (!AnyNegative(planes, begin, end)) return 0;
  int64_t negative = 0;
  for (auto k = static_cast<size_t>(begin); k < static_cast<size_t>(end); ++k) {
    const int32_t mask = planes.mask != nullptr ? LoadUnaligned<int32_t>(planes.mask, k) : 0;
    negative += IsUnflaggedNegative(LoadUnaligned<float>(planes.ivar, k), mask);
  }
  return negative;
}

}  // namespace

ImagePlanes PlanesOf(const RawImage& raw) {
  const char* const bytes = raw.bytes.data();
  const size_t plane = static_cast<size_t>(raw.rows) * static_cast<size_t>(raw.columns) * sizeof(float);
  return {raw.rows, raw.columns, bytes, bytes + plane, bytes + 2 * plane};
}

absl::StatusOr<int64_t> CountUnflaggedNegative(const ImagePlanes& planes, const Workers& workers) {
  const int64_t count = int64_t{planes.rows} * planes.columns;
  std::atomic<int64_t> negative = 0;
  SPEXD_RETURN_IF_ERROR(ParallelFor((count + kPiece - 1) / kPiece, workers, [&](int64_t piece) {
    const int64_t end = std::min(count, (piece + 1) * kPiece);
    int64_t own_negative = 0;
    for (int64_t begin = piece * kPiece; begin < end; begin += kRun) {
      own_negative += CountRun(planes, begin, std::min(end, begin + kRun));
    }
    negative += own_negative;
    return absl::OkStatus();
  }));
  return negative;
}

}  // namespace spexd
