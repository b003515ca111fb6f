#include "server/inputs/warm_item.h"

#include <algorithm>

#include "absl/strings/string_view.h"
#include "core/base/status_macros.h"
#include "core/fits/readers.h"
#include "core/products/inputs/fiberflat.h"
#include "core/products/inputs/input_outline.h"
#include "core/products/template_file.h"

namespace spexd {
namespace {

// Returns an upper estimate of the memory of the samples in a text with two columns.
int64_t ReferenceBytes(absl::string_view text) {
  // While a vector grows to twice its size, the old memory is held, too: 3/2 of the new size, for 2 doubles.
  constexpr int64_t kBytesPerSample = 3 * 2 * sizeof(double);
  const int64_t lines = 1 + std::count(text.begin(), text.end(), '\n');
  return kBytesPerSample * std::min<int64_t>(lines, kMaxReferenceSamples);
}

}  // namespace

int64_t MaxFileBytes(const ServerOptions& options, WarmKind kind) {
  const int64_t limit = options.max_upload_bytes;
  return kind == WarmKind::kTraceReference ? std::min(limit, kMaxReferenceBytes) : limit;
}

absl::StatusOr<int64_t> DecodeBytes(WarmKind kind, const Source& source, const std::stop_token& stop) {
  if (kind == WarmKind::kTraceReference) return ReferenceBytes(source.bytes());
  if (kind == WarmKind::kPsf) {
    SPEXD_ASSIGN_OR_RETURN(const Psf outline, ReadPsfOutline(source, kMaxOutlineTableBytes, stop));
    return PsfBytes(outline);
  }
  SPEXD_ASSIGN_OR_RETURN(const InputOutline outline, kind == WarmKind::kFiberflat
                                                         ? ReadFiberflatOutline(source, stop)
                                                         : ReadTemplatesOutline(source, stop));
  return outline.decode_bytes;
}

absl::StatusOr<WarmItem> ReadWarmItem(WarmKind kind, const Source& source, const std::stop_token& stop) {
  switch (kind) {
    case WarmKind::kPsf:
      return ReadPsf(source, stop);
    case WarmKind::kFiberflat:
      return ReadFiberflat(source, stop);
    case WarmKind::kTemplates:
      return ReadTemplates(source, stop);
    case WarmKind::kTraceReference:
      return ParseReferenceSpectrum(source.name(), source.bytes());
  }
  return absl::InternalError("no such kind");
}

}  // namespace spexd
