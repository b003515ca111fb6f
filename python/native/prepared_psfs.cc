#include "python/native/prepared_psfs.h"

#include <algorithm>
#include <utility>

#include "core/base/status_macros.h"

namespace spexd::python {

namespace {

// Returns whether both are the same PSF. A PSF that is not from a file has no hash.
bool AreSame(const std::shared_ptr<const Psf>& a, const std::shared_ptr<const Psf>& b) {
  return a == b || (!a->content_hash.empty() && a->content_hash == b->content_hash);
}

}  // namespace

std::shared_ptr<const PreparedPsf> PreparedPsfs::Find(const std::shared_ptr<const Psf>& psf,
                                                      const WavelengthGrid& grid, int bundle_size) {
  const MutexLock lock(&mutex_);
  const auto found = std::find_if(kept_.begin(), kept_.end(), [&](const auto& prepared) {
    return AreSame(prepared->psf(), psf) && prepared->grid() == grid &&
           prepared->bundle_size() == bundle_size;
  });
  if (found == kept_.end()) return nullptr;
  kept_.splice(kept_.begin(), kept_, found);
  return kept_.front();
}

void PreparedPsfs::Keep(std::shared_ptr<const PreparedPsf> prepared) {
  const MutexLock lock(&mutex_);
  bytes_ += prepared->bytes();
  kept_.push_front(std::move(prepared));
  while (bytes_ > budget_) {
    bytes_ -= kept_.back()->bytes();
    kept_.pop_back();
  }
}

absl::StatusOr<std::shared_ptr<const PreparedPsf>> PreparedPsfs::Get(Engine* engine,
                                                                     const std::shared_ptr<const Psf>& psf,
                                                                     const WavelengthGrid& grid,
                                                                     int bundle_size,
                                                                     const std::stop_token& stop) {
  if (auto found = Find(psf, grid, bundle_size); found != nullptr) return found;
  SPEXD_ASSIGN_OR_RETURN(auto prepared, engine->Prepare(psf, grid, bundle_size, stop));
  Keep(prepared);
  return prepared;
}

}  // namespace spexd::python
