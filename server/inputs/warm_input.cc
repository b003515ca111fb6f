#include "server/inputs/warm_input.h"

#include "core/base/status_macros.h"
#include "core/base/threads/guard.h"
#include "server/inputs/warm_item.h"

namespace spexd {

absl::Status WarmInput::Open(WarmCache* cache, const FileOpener& open) {
  if (!asked()) return absl::OkStatus();
  if (!hash_.empty()) {
    absl::StatusOr<WarmCache::Lease> lease = cache->Get(hash_, kind_);
    status_ = lease.status();
    if (!lease.ok()) return absl::OkStatus();
    const Array<double, 2>& values =
        kind_ == WarmKind::kFiberflat ? lease->fiberflat().values : lease->templates().flux;
    outline_ = {values.shape(0), values.shape(1), 0};
    lease_.emplace(*std::move(lease));
    return absl::OkStatus();
  }
  SPEXD_ASSIGN_OR_RETURN(source_, open(&*file_));
  const absl::StatusOr<InputOutline> outline = CatchExceptions([&] {
    return kind_ == WarmKind::kFiberflat ? ReadFiberflatOutline(*source_) : ReadTemplatesOutline(*source_);
  });
  status_ = outline.status();
  if (outline.ok()) outline_ = *outline;
  return absl::OkStatus();
}

void WarmInput::Drop(absl::Status why) {
  status_.Update(std::move(why));
  source_.reset();
}

void WarmInput::Load(WarmCache* cache, const std::stop_token& stop) {
  if (!status_.ok() || !source_.has_value()) return;
  absl::StatusOr<WarmCache::Lease> lease = cache->GetOrLoad(
      source_->content_hash(), source_->name(), WarmCache::Keep{},
      [&] { return ReadWarmItem(kind_, *source_, stop); }, stop, kind_);
  status_ = lease.status();
  if (lease.ok()) lease_.emplace(*std::move(lease));
  source_.reset();
}

}  // namespace spexd
