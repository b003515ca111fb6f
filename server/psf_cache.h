// Warm PSFs: models by content hash, each with the grids that were prepared for it, within a byte budget.
#ifndef SPEXD_SERVER_PSF_CACHE_H_
#define SPEXD_SERVER_PSF_CACHE_H_

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/mutex.h"
#include "core/extract/engine.h"
#include "core/model/psf.h"

namespace spexd {

// When the budget is exceeded, the least recently used grid or model that is neither pinned nor in use is
// removed. Pinning keeps the model; its grids may still be removed. Safe to use from many threads; outlives
// its leases.
class PsfCache {
 public:
  struct Info {
    std::string hash, name;
    std::shared_ptr<const Psf> psf;
    int64_t bytes = 0;
    int prepared_grids = 0;
    bool pinned = false;
    bool in_use = false;
  };
  struct Stats {
    int64_t psf_hits = 0, psf_misses = 0, grid_hits = 0, grid_misses = 0, evictions = 0;
    int64_t bytes = 0, entries = 0;
  };
  struct Entry;

  // Keeps a PSF, and the grid prepared through it, from being removed.
  class Lease {
   public:
    Lease(Lease&& other) noexcept;
    Lease& operator=(Lease&&) = delete;
    ~Lease();
    const std::shared_ptr<const Psf>& psf() const;
    const std::string& hash() const;
    const std::string& name() const;  // name as first loaded

   private:
    friend class PsfCache;
    Lease(PsfCache* cache, std::shared_ptr<Entry> entry) : cache_(cache), entry_(std::move(entry)) {}
    PsfCache* cache_;
    std::shared_ptr<Entry> entry_;
    std::shared_ptr<const PreparedPsf> prepared_;
  };

  enum class Keep { kForJob, kLoaded, kPinned };
  using Loader = std::function<absl::StatusOr<Psf>()>;

  // `engine` is not owned.
  PsfCache(Engine* engine, int64_t budget_bytes) : engine_(engine), budget_bytes_(budget_bytes) {}

  // FailedPrecondition: not there.
  absl::StatusOr<Lease> Get(const std::string& hash);

  // The PSF of that hash, loaded by `load` unless it is there; calls for one hash at once load it once.
  // ResourceExhausted (not for jobs): pinned PSFs leave no room for it. Cancelled: a stop was requested while
  // somebody else loaded it. Else what `load` returns.
  absl::StatusOr<Lease> GetOrLoad(const std::string& hash, const std::string& name, Keep keep,
                                  const Loader& load, const std::stop_token& stop);

  // The leased PSF on a grid, from the engine unless it is there; calls for one grid at once prepare it once.
  // Cancelled when a stop is requested; whoever waited for the same grid prepares it then.
  absl::StatusOr<std::shared_ptr<const PreparedPsf>> Prepare(Lease* lease, const WavelengthGrid& grid,
                                                             int bundle_size, const std::stop_token& stop);

  // NotFound: not there. What jobs hold is released when they end.
  absl::Status Unload(const std::string& hash);

  std::vector<Info> List() const;  // most recently used first
  Stats stats() const;
  int64_t budget_bytes() const { return budget_bytes_; }

 private:
  struct Grid;

  void Release(Lease* lease);
  void Trim() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool EvictOne() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status FitBesidePinned(const Entry& entry) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  int64_t TotalBytes() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  Engine* const engine_;
  const int64_t budget_bytes_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::map<std::string, std::shared_ptr<Entry>> entries_ ABSL_GUARDED_BY(mutex_);
  uint64_t clock_ ABSL_GUARDED_BY(mutex_) = 0;  // ticks with every use
  Stats stats_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace spexd

#endif  // SPEXD_SERVER_PSF_CACHE_H_
