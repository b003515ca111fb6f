// The cache of warm items by content hash, within one byte budget: PSFs with their prepared grids, reference
// spectra of trace shifts, fiberflats and templates.
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
// Returns "PSF", "fiberflat", "templates" or "trace_reference".
const char* WarmKindName(WarmKind kind);

// The types are in the order of WarmKind.
using WarmItem = std::variant<Psf, Fiberflat, TemplateLibrary, ReferenceSpectrum>;
int64_t BytesOf(const WarmItem& item);

// More than the tables of a PSF usually take: those of 500 fibres take a tenth.
inline constexpr int64_t kUsualPsfBytes = int64_t{256} << 20;

// When the budget is exceeded, evicts the least recently used grid or item that is neither pinned nor in use.
// The grids of a pinned PSF may be evicted. Safe to use from many threads; outlives its leases.
//
// An item belongs to the first identity that loads it by LoadPsf. Only its owner and administrators may pin
// or unload it. An item that came with a job has no owner until an identity loads it.
class WarmCache {
 public:
  struct Info {
    WarmKind kind = WarmKind::kPsf;
    std::string hash, name, owner;
    std::shared_ptr<const Psf> psf;  // null for other kinds
    int64_t rows = 0, columns = 0;   // of the CCD, or of the array (see v1::PsfInfo)
    int64_t bytes = 0;               // with prepared grids
    int prepared_grids = 0;
    bool pinned = false;
    bool in_use = false;
    uint64_t used = 0;  // time of the last use, in uses
  };
  // A page of the list.
  struct Page {
    std::vector<Info> items;  // most recently used first
    int64_t total = 0;        // items on all pages
    bool last = true;
  };
  struct Counts {
    int64_t hits = 0, misses = 0;
  };
  struct Stats {
    std::array<Counts, std::variant_size_v<WarmItem>> items;  // by WarmKind
    Counts grid;
    int64_t evictions = 0, bytes = 0, entries = 0;

    Counts& of(WarmKind kind) { return items[static_cast<size_t>(kind)]; }
    const Counts& of(WarmKind kind) const { return items[static_cast<size_t>(kind)]; }
  };
  struct Entry;

  // Protects an item, and the grid that was prepared through the lease, from eviction.
  class Lease {
   public:
    Lease(Lease&& other) noexcept;
    Lease& operator=(Lease&&) = delete;
    ~Lease();
    // REQUIRES: the item is of the function's kind.
    std::shared_ptr<const Psf> psf() const;
    const Fiberflat& fiberflat() const;
    const TemplateLibrary& templates() const;
    std::shared_ptr<const ReferenceSpectrum> trace_reference() const;
    const std::string& hash() const;
    const std::string& name() const;  // as the item was first loaded

   private:
    friend class WarmCache;
    Lease(WarmCache* cache, std::shared_ptr<Entry> entry) : cache_(cache), entry_(std::move(entry)) {}
    WarmCache* cache_;
    std::shared_ptr<Entry> entry_;
    std::shared_ptr<const PreparedPsf> prepared_;
  };

  // How to keep an item: for a job (no caller), or for an identity.
  struct Keep {
    const Identity* caller = nullptr;
    bool pinned = false;
  };
  using Loader = std::function<absl::StatusOr<WarmItem>()>;

  // `engine` is not owned.
  WarmCache(Engine* engine, int64_t budget_bytes) : engine_(engine), budget_bytes_(budget_bytes) {}

  // Returns a warm item. FailedPrecondition: it is not warm.
  absl::StatusOr<Lease> Get(const std::string& hash, WarmKind kind = WarmKind::kPsf);

  // Returns a warm item; nullopt: it is not warm.
  std::optional<Lease> Find(const std::string& hash, WarmKind kind = WarmKind::kPsf);

  // Returns the item of a hash, and loads it by `load` if it is not warm. Concurrent calls for one hash load
  // it once. Cancelled: a stop was requested while another call loaded it. If there is a caller also
  // ResourceExhausted: pinned items leave no room for it; PermissionDenied: the caller may not pin it. Other
  // errors are those of `load`.
  absl::StatusOr<Lease> GetOrLoad(const std::string& hash, const std::string& name, const Keep& keep,
                                  const Loader& load, const std::stop_token& stop,
                                  WarmKind kind = WarmKind::kPsf);

  // ResourceExhausted: GetOrLoad would refuse an item of `item_bytes` to a caller.
  absl::Status CheckRoom(int64_t item_bytes, WarmKind kind = WarmKind::kPsf) const;

  // Returns the leased PSF prepared for a grid, and lets the engine prepare it if it is not warm. Concurrent
  // calls for one grid prepare it once. Cancelled: a stop was requested; a call that waited for the same grid
  // then prepares it.
  absl::StatusOr<std::shared_ptr<const PreparedPsf>> Prepare(Lease* lease, const WavelengthGrid& grid,
                                                             int bundle_size, const std::stop_token& stop);

  // Removes an item. Its memory is released when no job uses it. NotFound: it is not warm. PermissionDenied:
  // it is not the caller's.
  absl::Status Unload(const std::string& hash, const Identity& caller, WarmKind kind = WarmKind::kPsf);

  // Returns all items of a kind, most recently used first.
  std::vector<Info> List(WarmKind kind = WarmKind::kPsf) const {
    return ListPage(UINT64_MAX, INT_MAX, kind).items;
  }
  // Returns up to `most` items that were last used before `before`.
  Page ListPage(uint64_t before, int most, WarmKind kind = WarmKind::kPsf) const;
  Stats stats() const;
  int64_t budget_bytes() const { return budget_bytes_; }

 private:
  struct Grid;
  using Key = std::pair<WarmKind, std::string>;

  void Release(Lease* lease);
  void Trim() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool EvictOne() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Gives a loaded item an owner, and pins it if `keep` asks for it.
  absl::Status Claim(Entry* entry, const Keep& keep) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // ResourceExhausted: pinned items other than `entry` (may be null) leave no room for `item_bytes`.
  absl::Status FitBesidePinned(const Entry* entry, int64_t item_bytes, WarmKind kind) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int64_t TotalBytes() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Engine* const engine_;
  const int64_t budget_bytes_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::map<Key, std::shared_ptr<Entry>> entries_ ABSL_GUARDED_BY(mutex_);
  uint64_t clock_ ABSL_GUARDED_BY(mutex_) = 0;  // number of uses
  Stats stats_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace spexd

#endif  // SPEXD_SERVER_ADMISSION_WARM_CACHE_H_
