#include "client/embedded/shared_psfs.h"

#include <utility>

#include "core/base/status_macros.h"
#include "core/base/threads/deadline.h"
#include "core/fits/hdu/source.h"
#include "core/fits/readers.h"

namespace spexd::client {

// Holds an entry while a job reads or prepares its PSF.
class SharedPsfs::Hold {
 public:
  // Waits until no other job holds the entry. Cancelled: a stop was requested.
  static absl::StatusOr<Hold> Of(Entry* entry, const std::stop_token& stop) {
    const WakeOnStop wake(stop, &entry->mutex, &entry->free);
    const MutexLock lock(&entry->mutex);
    while (entry->taken && !stop.stop_requested()) entry->free.Wait(&entry->mutex);
    SPEXD_RETURN_IF_ERROR(CheckStop(stop));
    entry->taken = true;
    return Hold(entry);
  }
  Hold(Hold&& other) noexcept : entry_(std::exchange(other.entry_, nullptr)) {}
  Hold& operator=(Hold&&) = delete;
  ~Hold() {
    if (entry_ == nullptr) return;
    const MutexLock lock(&entry_->mutex);
    entry_->taken = false;
    entry_->free.NotifyAll();
  }

 private:
  explicit Hold(Entry* entry) : entry_(entry) {}
  Entry* entry_;
};

SharedPsfs::SharedPsfs(const std::vector<std::string>& paths, Keep keep) : keep_(keep) {
  std::map<std::string, int> jobs;
  for (const std::string& path : paths) ++jobs[path];
  for (const auto& [path, count] : jobs) {
    if (count < 2 && keep == Keep::kUntilTheLastJob) continue;
    auto entry = std::make_unique<Entry>();
    {
      const MutexLock lock(&entry->mutex);
      entry->jobs = count;
    }
    entries_[path] = std::move(entry);
  }
}

bool SharedPsfs::Shares(const std::string& path) const { return entries_.count(path) > 0; }

absl::StatusOr<std::shared_ptr<const Psf>> SharedPsfs::Load(const std::string& path,
                                                            const std::stop_token& stop) {
  Entry& entry = *entries_.at(path);
  SPEXD_ASSIGN_OR_RETURN(const Hold hold, Hold::Of(&entry, stop));
  if (entry.psf == nullptr) {
    SPEXD_ASSIGN_OR_RETURN(const Source source, Source::FromFile(path, {.stop = stop}));
    SPEXD_ASSIGN_OR_RETURN(Psf psf, ReadPsf(source, stop));
    entry.psf = std::make_shared<const Psf>(std::move(psf));
  }
  return entry.psf;
}

absl::StatusOr<std::shared_ptr<const PreparedPsf>> SharedPsfs::Prepare(Engine* engine,
                                                                       const std::string& path,
                                                                       const WavelengthGrid& grid,
                                                                       int bundle_size,
                                                                       const std::stop_token& stop) {
  Entry& entry = *entries_.at(path);
  SPEXD_ASSIGN_OR_RETURN(const Hold hold, Hold::Of(&entry, stop));
  const bool same = entry.prepared != nullptr && entry.prepared->grid() == grid &&
                    entry.prepared->bundle_size() == bundle_size;
  if (!same) {
    entry.prepared = nullptr;  // frees memory before the next one is prepared
    SPEXD_ASSIGN_OR_RETURN(entry.prepared, engine->Prepare(entry.psf, grid, bundle_size, stop));
  }
  return entry.prepared;
}

void SharedPsfs::EndJob(const std::string& path) {
  if (keep_ == Keep::kAlways) return;
  Entry& entry = *entries_.at(path);
  const MutexLock lock(&entry.mutex);
  if (--entry.jobs > 0) return;
  entry.prepared = nullptr;
  entry.psf = nullptr;
}

}  // namespace spexd::client
