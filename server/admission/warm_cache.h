// What is kept warm, by content hash, within one byte budget: PSFs, each with the grids that were prepared
// for it, reference spectra of trace shifts, and the fiberflats and templates of products.
#ifndef SPEXD_SERVER_ADMISSION_WARM_CACHE_H_
#define SPEXD_SERVER_ADMISSION_WARM_CACHE_H_

#include <array>
#include <climits>
#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "core/analysis/velocity/template_library.h"
#include "core/base/array.h"
#include "core/base/threads/mutex.h"
#include "core/extract/engine.h"
#include "core/model/psf.h"
#include "core/products/inputs/fiberflat.h"
#include "core/traces/shifts/reference.h"
#include "server/security/identity.h"

namespace spexd {

enum class WarmKind { kPsf, kFiberflat, kTemplates, kTraceReference };
// "PSF", "fiberflat", "templates", "trace_reference".
const char* WarmKindName(WarmKind kind);

// The types are in the order of WarmKind.
using WarmItem = std::variant<Psf, Fiberflat, TemplateLibrary, ReferenceSpectrum>;
int64_t BytesOf(const WarmItem& item);

// More than a PSF's tables usually take: those of 500 fibres need a tenth.
inline constexpr int64_t kUsualPsfBytes = int64_t{256} << 20;

// When the budget is exceeded, the least recently used grid or item that is neither pinned nor in use is
// removed. Pinning keeps a PSF; its grids may still be removed. Safe to use from many threads; outlives its
// leases. Where a kind may be named, none is a PSF.
//
// An item belongs to the first identity that loaded it otherwise than for a job. Only its owner and
// administrators may pin or unload it. One that came with a job has no owner until an identity loads it.
class WarmCache {
 public:
  struct Info {
    WarmKind kind = WarmKind::kPsf;
    std::string hash, name, owner;
    std::shared_ptr<const Psf> psf;  // null for other kinds
    int64_t rows = 0, columns = 0;   // the CCD's, or the array's (v1::PsfInfo)
    int64_t bytes = 0;
    int prepared_grids = 0;
    bool pinned = false;
    bool in_use = false;
    uint64_t used = 0;  // larger: more recently
  };
  // A part of the list.
  struct Page {
    std::vector<Info> items;  // most recently used first
    int64_t total = 0;        // on all pages
    bool last = true;
  };
  struct Counts {
    int64_t hits = 0, misses = 0;
  };
  struct Stats {
    std::array<Counts, std::variant_size_v<WarmItem>> items;  // one for each WarmKind
    Counts grid;
    int64_t evictions = 0, bytes = 0, entries = 0;

    Counts& of(WarmKind kind) { return items[static_cast<size_t>(kind)]; }
    const Counts& of(WarmKind kind) const { return items[static_cast<size_t>(kind)]; }
  };
  struct Entry;

  // Keeps an item, and the grid prepared through it, from being removed.
  class Lease {
   public:
    Lease(Lease&& other) noexcept;
    Lease& operator=(Lease&&) = delete;
    ~Lease();
    // REQUIRES: an item of that kind.
    std::shared_ptr<const Psf> psf() const;
    const Fiberflat& fiberflat() const;
    const TemplateLibrary& templates() const;
    std::shared_ptr<const ReferenceSpectrum> trace_reference() const;
    const std::string& hash() const;
    const std::string& name() const;  // name as first loaded

   private:
    friend class WarmCache;
    Lease(WarmCache* cache, std::shared_ptr<Entry> entry) : cache_(cache), entry_(std::move(entry)) {}
    WarmCache* cache_;
    std::shared_ptr<Entry> entry_;
    std::shared_ptr<const PreparedPsf> prepared_;
  };

  // How to keep an item, and for whom: null for a job.
  struct Keep {
    const Identity* caller = nullptr;
    bool pinned = false;
  };
  using Loader = std::function<absl::StatusOr<WarmItem>()>;

  // `engine` is not owned.
  WarmCache(Engine* engine, int64_t budget_bytes) : engine_(engine), budget_bytes_(budget_bytes) {}

  // FailedPrecondition: not there.
  absl::StatusOr<Lease> Get(const std::string& hash, WarmKind kind = WarmKind::kPsf);

  // The same; nullopt: not there.
  std::optional<Lease> Find(const std::string& hash, WarmKind kind = WarmKind::kPsf);

  // The item of that hash, loaded by `load` unless it is there; calls for one hash at once load it once.
  // Not for jobs: ResourceExhausted, what is pinned leaves no room for it; PermissionDenied, the caller may
  // not pin it. Cancelled: a stop was requested while somebody else loaded it. Else what `load` returns.
  absl::StatusOr<Lease> GetOrLoad(const std::string& hash, const std::string& name, const Keep& keep,
                                  const Loader& load, const std::stop_token& stop,
                                  WarmKind kind = WarmKind::kPsf);

  // ResourceExhausted if GetOrLoad would refuse an item of that many bytes, other than for a job.
  absl::Status CheckRoom(int64_t item_bytes, WarmKind kind = WarmKind::kPsf) const;

  // The leased PSF on a grid, from the engine unless it is there; calls for one grid at once prepare it once.
  // Cancelled when a stop is requested; whoever waited for the same grid prepares it then.
  absl::StatusOr<std::shared_ptr<const PreparedPsf>> Prepare(Lease* lease, const WavelengthGrid& grid,
                                                             int bundle_size, const std::stop_token& stop);

  // NotFound: not there. PermissionDenied: it is not the caller's. What jobs hold is released when they end.
  absl::Status Unload(const std::string& hash, const Identity& caller, WarmKind kind = WarmKind::kPsf);

  // Most recently used first.
  std::vector<Info> List(WarmKind kind = WarmKind::kPsf) const {
    return ListPage(UINT64_MAX, INT_MAX, kind).items;
  }
  // Up to `most` items that were last used before `before`.
  Page ListPage(uint64_t before, int most, WarmKind kind = WarmKind::kPsf) const;
  Stats stats() const;
  int64_t budget_bytes() const { return budget_bytes_; }

 private:
  struct Grid;
  using Key = std::pair<WarmKind, std::string>;

  void Release(Lease* lease);
  void Trim() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool EvictOne() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Gives a loaded item an owner, and pins it where that is asked for.
  absl::Status Claim(Entry* entry, const Keep& keep) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // `entry`: not counted; may be null.
  absl::Status FitBesidePinned(const Entry* entry, int64_t item_bytes, WarmKind kind) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int64_t TotalBytes() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Engine* const engine_;
  const int64_t budget_bytes_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::map<Key, std::shared_ptr<Entry>> entries_ ABSL_GUARDED_BY(mutex_);
  uint64_t clock_ ABSL_GUARDED_BY(mutex_) = 0;  // ticks with every use
  Stats stats_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace spexd

#endif  // SPEXD_SERVER_ADMISSION_WARM_CACHE_H_
