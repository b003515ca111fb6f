#include "server/jobs/warm_file.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "core/base/memory/heap.h"
#include "core/base/status_macros.h"
#include "core/fits/readers.h"
#include "core/products/inputs/fiberflat.h"
#include "core/products/inputs/input_outline.h"
#include "core/products/template_file.h"
#include "server/admission/reading_memory.h"

namespace spexd {
namespace {

absl::StatusOr<WarmCache::Lease> LoadWithin(const ServerParts& parts, FileInput file, WarmCache::Keep keep,
                                            const std::stop_token& stop, WarmKind kind,
                                            OutsizeWork* outsize) {
  const int64_t limit = MaxFileBytes(*parts.options, kind);
  SPEXD_ASSIGN_OR_RETURN(const int64_t file_bytes, file.Measure(*parts.paths, limit));
  SPEXD_ASSIGN_OR_RETURN(ByteBudget::Reservation reserved, parts.files->Reserve(file_bytes));
  const auto memory = std::make_shared<ReadingMemory>(std::move(reserved), file_bytes);
  SPEXD_ASSIGN_OR_RETURN(const Source source, file.Open(limit, memory, {1, stop}));
  outsize->Add(source.memory_bytes());
  const auto load = [&]() -> absl::StatusOr<WarmItem> {
    SPEXD_ASSIGN_OR_RETURN(const int64_t bytes, DecodeBytes(kind, source, stop));
    SPEXD_RETURN_IF_ERROR(parts.cache->CheckRoom(bytes, kind));
    SPEXD_ASSIGN_OR_RETURN(const ByteBudget::Reservation decoded, parts.decoded->Reserve(bytes));
    outsize->Add(bytes);
    memory->Allow(bytes);
    return ReadWarmItem(kind, source, stop);
  };
  return parts.cache->GetOrLoad(source.content_hash(), source.name(), keep, load, stop, kind);
}

// Memory of the samples in a text with two columns, an upper estimate.
int64_t ReferenceBytes(absl::string_view text) {
  // Where a vector grows, half of its new size is there twice.
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
    SPEXD_ASSIGN_OR_RETURN(const Psf outline, ReadPsfOutline(source, kMaxOutlineTermsBytes, stop));
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

absl::StatusOr<WarmCache::Lease> LoadWarmFile(const ServerParts& parts, FileInput file, WarmCache::Keep keep,
                                              const std::stop_token& stop, WarmKind kind) {
  OutsizeWork outsize(kUsualPsfBytes);
  absl::StatusOr<WarmCache::Lease> lease = LoadWithin(parts, std::move(file), keep, stop, kind, &outsize);
  if (!lease.ok()) outsize.LeaveNothing();
  return lease;
}

}  // namespace spexd
