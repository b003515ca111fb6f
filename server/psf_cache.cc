#include "server/psf_cache.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_format.h"
#include "core/base/deadline.h"
#include "core/base/guard.h"
#include "core/base/status_macros.h"

namespace spexd {
namespace {

int64_t BytesOf(const LegendreTable& table) {
  return table.coeff.size() * static_cast<int64_t>(sizeof(double));
}

int64_t BytesOf(const Psf& psf) {
  int64_t bytes = static_cast<int64_t>(sizeof(Psf));
  for (const LegendreTable* table : {&psf.x, &psf.y, &psf.sigma_x, &psf.sigma_y, &psf.tail_amplitude,
                                     &psf.tail_core, &psf.tail_index, &psf.tail_scale_x, &psf.tail_scale_y}) {
    bytes += BytesOf(*table);
  }
  for (const GaussHermiteTerm& term : psf.terms) bytes += BytesOf(term.amplitude);
  return bytes;
}

}  // namespace

struct PsfCache::Grid {
  WavelengthGrid grid;
  int bundle_size = 0;
  std::shared_ptr<const PreparedPsf> prepared;  // null while the engine works on it
  uint64_t used = 0;

  bool in_use() const { return prepared == nullptr || prepared.use_count() > 1; }
};

// Guarded by the cache's mutex, except hash and name, which never change, and psf, which never changes once
// loaded.
struct PsfCache::Entry {
  std::string hash, name;
  std::shared_ptr<const Psf> psf;  // null while it is being loaded
  int64_t psf_bytes = 0;
  bool pinned = false;
  int leases = 0;
  uint64_t used = 0;
  std::list<Grid> grids;

  int64_t bytes() const {
    int64_t sum = psf_bytes;
    for (const Grid& grid : grids) sum += grid.prepared == nullptr ? 0 : grid.prepared->bytes();
    return sum;
  }
};

PsfCache::Lease::Lease(Lease&& other) noexcept
    : cache_(std::exchange(other.cache_, nullptr)),
      entry_(std::move(other.entry_)),
      prepared_(std::move(other.prepared_)) {}

PsfCache::Lease::~Lease() {
  if (cache_ != nullptr) cache_->Release(this);
}

const std::shared_ptr<const Psf>& PsfCache::Lease::psf() const { return entry_->psf; }
const std::string& PsfCache::Lease::hash() const { return entry_->hash; }
const std::string& PsfCache::Lease::name() const { return entry_->name; }

void PsfCache::Release(Lease* lease) {
  MutexLock lock(&mutex_);
  lease->prepared_.reset();
  --lease->entry_->leases;
  Trim();
}

absl::StatusOr<PsfCache::Lease> PsfCache::Get(const std::string& hash) {
  MutexLock lock(&mutex_);
  const auto found = entries_.find(hash);
  if (found == entries_.end() || found->second->psf == nullptr) {
    ++stats_.psf_misses;
    return absl::FailedPreconditionError(
        absl::StrFormat("psf_hash \"%s\" names no PSF that is loaded; LoadPsf it first", hash));
  }
  ++stats_.psf_hits;
  ++found->second->leases;
  found->second->used = ++clock_;
  return Lease(this, found->second);
}

absl::StatusOr<PsfCache::Lease> PsfCache::GetOrLoad(const std::string& hash, const std::string& name,
                                                    Keep keep, const Loader& load,
                                                    const std::stop_token& stop) {
  const auto entry = std::make_shared<Entry>();
  const WakeOnStop wake(stop, &mutex_, &changed_);
  {
    MutexLock lock(&mutex_);
    for (;;) {
      const auto found = entries_.find(hash);
      if (found == entries_.end()) break;
      if (found->second->psf != nullptr) {
        if (keep == Keep::kPinned && !found->second->pinned) {
          if (absl::Status status = FitBesidePinned(*found->second); !status.ok()) return status;
          found->second->pinned = true;
        }
        ++stats_.psf_hits;
        ++found->second->leases;
        found->second->used = ++clock_;
        return Lease(this, found->second);
      }
      if (stop.stop_requested())
        return absl::CancelledError("the job was cancelled while its PSF was being loaded");
      changed_.Wait(&mutex_);
    }
    ++stats_.psf_misses;
    entry->hash = hash;
    entry->name = name;
    entry->leases = 1;
    entries_[hash] = entry;
  }
  absl::StatusOr<std::shared_ptr<const Psf>> psf =
      CatchExceptions([&]() -> absl::StatusOr<std::shared_ptr<const Psf>> {
        SPEXD_ASSIGN_OR_RETURN(Psf loaded, load());
        return std::make_shared<const Psf>(std::move(loaded));
      });

  MutexLock lock(&mutex_);
  changed_.NotifyAll();
  absl::Status status = psf.status();
  if (status.ok()) {
    entry->psf_bytes = BytesOf(**psf);
    if (keep != Keep::kForJob) status = FitBesidePinned(*entry);
  }
  const auto found = entries_.find(hash);
  const bool listed = found != entries_.end() && found->second == entry;  // else unloaded meanwhile
  if (!status.ok()) {
    if (listed) entries_.erase(found);
    return status;
  }
  entry->psf = *std::move(psf);
  entry->pinned = keep == Keep::kPinned;
  entry->used = ++clock_;
  Trim();
  return Lease(this, entry);
}

absl::StatusOr<std::shared_ptr<const PreparedPsf>> PsfCache::Prepare(Lease* lease, const WavelengthGrid& grid,
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
        ++stats_.grid_hits;
        found->used = ++clock_;
        lease->prepared_ = found->prepared;
        return found->prepared;
      }
      if (stop.stop_requested())
        return absl::CancelledError("the job was cancelled while its PSF was being prepared");
      changed_.Wait(&mutex_);
    }
    ++stats_.grid_misses;
    mine = entry.grids.insert(entry.grids.end(), Grid{grid, bundle_size, nullptr, 0});
  }
  absl::StatusOr<std::shared_ptr<const PreparedPsf>> prepared =
      CatchExceptions([&] { return engine_->Prepare(entry.psf, grid, bundle_size, stop); });

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

absl::Status PsfCache::Unload(const std::string& hash) {
  MutexLock lock(&mutex_);
  const auto found = entries_.find(hash);
  if (found == entries_.end() || found->second->psf == nullptr) {
    return absl::NotFoundError(absl::StrFormat("hash \"%s\" names no PSF that is loaded", hash));
  }
  entries_.erase(found);
  return absl::OkStatus();
}

absl::Status PsfCache::FitBesidePinned(const Entry& entry) {
  int64_t pinned = 0;
  for (const auto& [hash, other] : entries_) {
    if (other->pinned && other.get() != &entry) pinned += other->psf_bytes;
  }
  if (pinned + entry.psf_bytes <= budget_bytes_) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrFormat(
      "the PSF takes %d bytes and pinned PSFs hold %d of the server's %d; unload or unpin one",
      entry.psf_bytes, pinned, budget_bytes_));
}

int64_t PsfCache::TotalBytes() const {
  int64_t bytes = 0;
  for (const auto& [hash, entry] : entries_) bytes += entry->bytes();
  return bytes;
}

void PsfCache::Trim() {
  while (TotalBytes() > budget_bytes_ && EvictOne()) ++stats_.evictions;
}

bool PsfCache::EvictOne() {
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
    // A model is removed after its grids, which hold it anyway.
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

std::vector<PsfCache::Info> PsfCache::List() const {
  MutexLock lock(&mutex_);
  std::vector<std::pair<uint64_t, Info>> sorted;
  for (const auto& [hash, entry] : entries_) {
    if (entry->psf == nullptr) continue;
    const auto grids = std::count_if(entry->grids.begin(), entry->grids.end(),
                                     [](const Grid& g) { return g.prepared != nullptr; });
    sorted.emplace_back(entry->used, Info{hash, entry->name, entry->psf, entry->bytes(),
                                          static_cast<int>(grids), entry->pinned, entry->leases > 0});
  }
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<Info> list;
  for (auto& [used, info] : sorted) list.push_back(std::move(info));
  return list;
}

PsfCache::Stats PsfCache::stats() const {
  MutexLock lock(&mutex_);
  Stats stats = stats_;
  stats.bytes = TotalBytes();
  stats.entries = static_cast<int64_t>(entries_.size());
  return stats;
}

}  // namespace spexd
