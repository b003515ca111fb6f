#include "server/jobs/warm_file.h"

#include <memory>
#include <utility>

#include "core/base/memory/heap.h"
#include "core/base/status_macros.h"
#include "server/admission/reading_memory.h"
#include "server/inputs/warm_item.h"

namespace spexd {
namespace {

absl::StatusOr<WarmCache::Lease> LoadWithin(const ServerParts& parts, FileInput file, WarmCache::Keep keep,
                                            const std::stop_token& stop, WarmKind kind,
                                            OutsizeWork* outsize) {
  const int64_t limit = MaxFileBytes(*parts.options, kind);
  SPEXD_ASSIGN_OR_RETURN(const int64_t file_bytes, file.Measure(*parts.paths, limit));
  SPEXD_ASSIGN_OR_RETURN(ByteBudget::Reservation reserved, parts.files->Reserve(file_bytes));
  const auto memory = std::make_shared<ReadingMemory>(std::move(reserved), file_bytes);
  SPEXD_ASSIGN_OR_RETURN(const Source source, file.Open(memory, {1, stop}));
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

}  // namespace

absl::StatusOr<WarmCache::Lease> LoadWarmFile(const ServerParts& parts, FileInput file, WarmCache::Keep keep,
                                              const std::stop_token& stop, WarmKind kind) {
  OutsizeWork outsize(kUsualPsfBytes);
  absl::StatusOr<WarmCache::Lease> lease = LoadWithin(parts, std::move(file), keep, stop, kind, &outsize);
  if (!lease.ok()) outsize.LeaveNothing();
  return lease;
}

}  // namespace spexd
