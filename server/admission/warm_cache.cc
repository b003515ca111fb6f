#include "server/admission/warm_cache.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "core/base/memory/heap.h"
#include "core/base/status_macros.h"
#include "core/base/threads/deadline.h"
#include "core/base/threads/guard.h"
#include "server/base/retry.h"

namespace spexd {

const char* WarmKindName(WarmKind kind) {
  constexpr const char* kNames[] = {"PSF", "fiberflat", "templates", "trace_reference"};
  static_assert(std::size(kNames) == std::variant_size_v<WarmItem>);
  return kNames[static_cast<size_t>(kind)];
}

int64_t BytesOf(const WarmItem& item) {
  if (const Psf* const psf = std::get_if<Psf>(&item)) return PsfBytes(*psf);
  if (const auto* const fiberflat = std::get_if<Fiberflat>(&item)) return fiberflat->bytes();
  if (const auto* const reference = std::get_if<ReferenceSpectrum>(&item))
    return static_cast<int64_t>((reference->wave.capacity() + reference->flux.capacity()) * sizeof(double));
  // The templates, and four preparations for velocities (TemplatePreparations) of about the same size.
  constexpr int64_t kCopies = 5;
  return kCopies * std::get<TemplateLibrary>(item).flux.size() * static_cast<int64_t>(sizeof(double));
}

struct WarmCache::Grid {
  WavelengthGrid grid;
  int bundle_size = 0;
  std::shared_ptr<const PreparedPsf> prepared;  // null while the engine prepares it
  uint64_t used = 0;

  bool in_use() const { return prepared == nullptr || prepared.use_count() > 1; }
};

// A warm item with its grids. The cache's mutex guards it, except kind, hash and name, which never change,
// and item and item_bytes, which never change once loaded.
struct WarmCache::Entry {
  WarmKind kind = WarmKind::kPsf;
  std::string hash, name, owner;
  std::shared_ptr<const WarmItem> item;  // null while it is being loaded
  int64_t item_bytes = 0;
  bool pinned = false;
  int leases = 0;
  uint64_t used = 0;
  std::list<Grid> grids;

  std::shared_ptr<const Psf> psf() const {
    return kind == WarmKind::kPsf ? std::shared_ptr<const Psf>(item, &std::get<Psf>(*item)) : nullptr;
  }
  // Rows and columns of the array. REQUIRES: the item is no PSF.
  std::array<int64_t, 2> shape() const {
    if (const auto* const reference = std::get_if<ReferenceSpectrum>(item.get()))
      return {static_cast<int64_t>(reference->wave.size()), 2};
    return kind == WarmKind::kFiberflat ? std::get<Fiberflat>(*item).values.shape()
                                        : std::get<TemplateLibrary>(*item).flux.shape();
  }
  int64_t bytes() const {
    int64_t sum = item_bytes;
    for (const Grid& grid : grids) sum += grid.prepared == nullptr ? 0 : grid.prepared->bytes();
    return sum;
  }
  // The item's name in messages.
  std::string named() const { return absl::StrCat(WarmKindName(kind), " \"", hash, "\""); }
  // REQUIRES: the item is loaded.
  Info info() const;
};

WarmCache::Info WarmCache::Entry::info() const {
  Info info;
  info.kind = kind;
  info.hash = hash;
  info.name = name;
  info.owner = owner;
  info.psf = psf();
  if (info.psf != nullptr) {
    info.rows = info.psf->rows;
    info.columns = info.psf->columns;
  } else {
    info.rows = shape()[0];
    info.columns = shape()[1];
  }
  info.bytes = bytes();
  info.prepared_grids = static_cast<int>(
      std::count_if(grids.begin(), grids.end(), [](const Grid& grid) { return grid.prepared != nullptr; }));
  info.pinned = pinned;
  info.in_use = leases > 0;
  info.used = used;
  return info;
}

WarmCache::Lease::Lease(Lease&& other) noexcept
    : cache_(std::exchange(other.cache_, nullptr)),
      entry_(std::move(other.entry_)),
      prepared_(std::move(other.prepared_)) {}

WarmCache::Lease::~Lease() {
  if (cache_ == nullptr) return;
  OutsizeWork outsize(kUsualPsfBytes);
  outsize.Add(entry_->item_bytes);
  cache_->Release(this);
  entry_.reset();
}

std::shared_ptr<const Psf> WarmCache::Lease::psf() const { return entry_->psf(); }
const Fiberflat& WarmCache::Lease::fiberflat() const { return std::get<Fiberflat>(*entry_->item); }
const TemplateLibrary& WarmCache::Lease::templates() const {
  return std::get<TemplateLibrary>(*entry_->item);
}
std::shared_ptr<const ReferenceSpectrum> WarmCache::Lease::trace_reference() const {
  return std::shared_ptr<const ReferenceSpectrum>(entry_->item, &std::get<ReferenceSpectrum>(*entry_->item));
}
const std::string& WarmCache::Lease::hash() const { return entry_->hash; }
const std::string& WarmCache::Lease::name() const { return entry_->name; }

void WarmCache::Release(Lease* lease) {
  MutexLock lock(&mutex_);
  lease->prepared_.reset();
  --lease->entry_->leases;
  Trim();
}

absl::StatusOr<WarmCache::Lease> WarmCache::Get(const std::string& hash, WarmKind kind) {
  std::optional<Lease> lease = Find(hash, kind);
  if (lease.has_value()) return *std::move(lease);
  MutexLock lock(&mutex_);
  ++stats_.of(kind).misses;
  return absl::FailedPreconditionError(
      absl::StrFormat("%s \"%s\" names no %s that is loaded; load it first (spex psf load FILE%s), or name its file",
                      kind == WarmKind::kPsf ? "psf_hash" : "content_hash", hash, WarmKindName(kind),
                      kind == WarmKind::kPsf ? "" : absl::StrCat(" --kind ", WarmKindName(kind))));
}

std::optional<WarmCache::Lease> WarmCache::Find(const std::string& hash, WarmKind kind) {
  MutexLock lock(&mutex_);
  const auto found = entries_.find({kind, hash});
  if (found == entries_.end() || found->second->item == nullptr) return std::nullopt;
  ++stats_.of(kind).hits;
  ++found->second->leases;
  found->second->used = ++clock_;
  return Lease(this, found->second);
}

absl::StatusOr<WarmCache::Lease> WarmCache::GetOrLoad(const std::string& hash, const std::string& name,
                                                      const Keep& keep, const Loader& load,
                                                      const std::stop_token& stop, WarmKind kind) {
  // Key and entry are made before the load: an exception after it would leave an entry that seems to load for
  // ever.
  const Key key(kind, hash);
  const auto entry = std::make_shared<Entry>();
  const WakeOnStop wake(stop, &mutex_, &changed_);
  {
    MutexLock lock(&mutex_);
    for (;;) {
      const auto found = entries_.find(key);
      if (found == entries_.end()) break;
      if (found->second->item != nullptr) {
        if (absl::Status status = Claim(found->second.get(), keep); !status.ok()) return status;
        ++stats_.of(kind).hits;
        ++found->second->leases;
        found->second->used = ++clock_;
        return Lease(this, found->second);
      }
      if (stop.stop_requested())
        return absl::CancelledError(
            absl::StrFormat("the job was cancelled while its %s was being loaded", WarmKindName(kind)));
      changed_.Wait(&mutex_);
    }
    ++stats_.of(kind).misses;
    entry->kind = kind;
    entry->hash = hash;
    entry->name = name;
    entry->leases = 1;
    entries_[key] = entry;
  }
  absl::StatusOr<std::shared_ptr<const WarmItem>> item =
      CatchExceptions([&]() -> absl::StatusOr<std::shared_ptr<const WarmItem>> {
        SPEXD_ASSIGN_OR_RETURN(WarmItem loaded, load());
        return std::make_shared<const WarmItem>(std::move(loaded));
      });

  MutexLock lock(&mutex_);
  changed_.NotifyAll();
  absl::Status status = item.status();
  if (status.ok()) {
    entry->item_bytes = BytesOf(**item);
    // An exception here would also leave such an entry.
    status = CatchExceptions([&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
      if (keep.caller == nullptr) return absl::OkStatus();
      SPEXD_RETURN_IF_ERROR(FitBesidePinned(entry.get(), entry->item_bytes, kind));
      return Claim(entry.get(), keep);
    });
  }
  const auto found = entries_.find(key);
  const bool listed = found != entries_.end() && found->second == entry;  // false: it was unloaded meanwhile
  if (!status.ok()) {
    if (listed) entries_.erase(found);
    return status;
  }
  entry->item = *std::move(item);
  entry->used = ++clock_;
  Trim();
  return Lease(this, entry);
}

absl::StatusOr<std::shared_ptr<const PreparedPsf>> WarmCache::Prepare(Lease* lease,
                                                                      const WavelengthGrid& grid,
                                                                      int bundle_size,
                                                                      const std::stop_token& stop) {
  Entry& entry = *lease->entry_;
  std::list<Grid>::iterator mine;
  const WakeOnStop wake(stop, &mutex_, &changed_);
  {
    MutexLock lock(&mutex_);
    for (;;) {
      const auto found = std::find_if(entry.grids.begin(), entry.grids.end(), [&](const Grid& g) {
        return g.grid == grid && g.bundle_size == bundle_size;
      });
      if (found == entry.grids.end()) break;
      if (found->prepared != nullptr) {
        ++stats_.grid.hits;
        found->used = ++clock_;
        lease->prepared_ = found->prepared;
        return found->prepared;
      }
      if (stop.stop_requested())
        return absl::CancelledError("the job was cancelled while its PSF was being prepared");
      changed_.Wait(&mutex_);
    }
    ++stats_.grid.misses;
    mine = entry.grids.insert(entry.grids.end(), Grid{grid, bundle_size, nullptr, 0});
  }
  absl::StatusOr<std::shared_ptr<const PreparedPsf>> prepared =
      CatchExceptions([&] { return engine_->Prepare(entry.psf(), grid, bundle_size, stop); });

  MutexLock lock(&mutex_);
  changed_.NotifyAll();
  if (!prepared.ok()) {
    entry.grids.erase(mine);
    return prepared;
  }
  mine->prepared = *prepared;
  mine->used = ++clock_;
  lease->prepared_ = *prepared;
  Trim();
  return prepared;
}

absl::Status WarmCache::Claim(Entry* entry, const Keep& keep) {
  if (keep.caller == nullptr) return absl::OkStatus();
  const std::string owner = entry->owner.empty() ? keep.caller->name : entry->owner;
  if (keep.pinned) {
    SPEXD_RETURN_IF_ERROR(CheckMayManage(*keep.caller, owner, entry->named(), "pin"));
    SPEXD_RETURN_IF_ERROR(FitBesidePinned(entry, entry->item_bytes, entry->kind));
    entry->pinned = true;
  }
  entry->owner = owner;
  return absl::OkStatus();
}

absl::Status WarmCache::Unload(const std::string& hash, const Identity& caller, WarmKind kind) {
  OutsizeWork outsize(kUsualPsfBytes);
  std::shared_ptr<Entry> unloaded;  // freed after the lock is released
  MutexLock lock(&mutex_);
  const auto found = entries_.find({kind, hash});
  if (found == entries_.end() || found->second->item == nullptr) {
    return absl::NotFoundError(
        absl::StrFormat("hash \"%s\" names no %s that is loaded", hash, WarmKindName(kind)));
  }
  SPEXD_RETURN_IF_ERROR(CheckMayManage(caller, found->second->owner, found->second->named(), "unload"));
  unloaded = std::move(found->second);
  outsize.Add(unloaded->item_bytes);
  entries_.erase(found);
  return absl::OkStatus();
}

absl::Status WarmCache::CheckRoom(int64_t item_bytes, WarmKind kind) const {
  MutexLock lock(&mutex_);
  return FitBesidePinned(nullptr, item_bytes, kind);
}

absl::Status WarmCache::FitBesidePinned(const Entry* entry, int64_t item_bytes, WarmKind kind) const {
  int64_t pinned = 0;
  for (const auto& [key, other] : entries_) {
    if (other->pinned && other.get() != entry) pinned += other->item_bytes;
  }
  if (item_bytes <= budget_bytes_ - pinned) return absl::OkStatus();
  return Refuse(
      absl::ResourceExhaustedError(absl::StrFormat(
          "the %s takes %d bytes and what is pinned holds %d of the server's %d; unload or unpin some",
          WarmKindName(kind), item_bytes, pinned, budget_bytes_)),
      "cache");
}

int64_t WarmCache::TotalBytes() const {
  int64_t bytes = 0;
  for (const auto& [key, entry] : entries_) bytes += entry->bytes();
  return bytes;
}

void WarmCache::Trim() {
  while (TotalBytes() > budget_bytes_ && EvictOne()) ++stats_.evictions;
}

bool WarmCache::EvictOne() {
  Entry* owner = nullptr;
  std::list<Grid>::iterator oldest_grid;
  auto oldest = entries_.end();
  uint64_t age = UINT64_MAX;
  for (auto it = entries_.begin(); it != entries_.end(); ++it) {
    Entry& entry = *it->second;
    for (auto grid = entry.grids.begin(); grid != entry.grids.end(); ++grid) {
      if (grid->in_use() || grid->used >= age) continue;
      age = grid->used;
      owner = &entry;
      oldest_grid = grid;
    }
    // A PSF is evicted only after its grids, because they hold it anyway.
    if (entry.pinned || entry.leases > 0 || !entry.grids.empty() || entry.used >= age) continue;
    age = entry.used;
    owner = nullptr;
    oldest = it;
  }
  if (owner != nullptr) {
    owner->grids.erase(oldest_grid);
    return true;
  }
  if (oldest == entries_.end()) return false;
  entries_.erase(oldest);
  return true;
}

WarmCache::Page WarmCache::ListPage(uint64_t before, int most, WarmKind kind) const {
  Page page;
  MutexLock lock(&mutex_);
  for (const auto& [key, entry] : entries_) {
    if (entry->item == nullptr || entry->kind != kind) continue;
    ++page.total;
    if (entry->used >= before) continue;
    page.items.push_back(entry->info());
  }
  std::sort(page.items.begin(), page.items.end(),
            [](const Info& a, const Info& b) { return a.used > b.used; });
  page.last = page.items.size() <= static_cast<size_t>(most);
  if (!page.last) page.items.resize(static_cast<size_t>(most));
  return page;
}

WarmCache::Stats WarmCache::stats() const {
  MutexLock lock(&mutex_);
  Stats stats = stats_;
  stats.bytes = TotalBytes();
  stats.entries = static_cast<int64_t>(entries_.size());
  return stats;
}

}  // namespace spexd
