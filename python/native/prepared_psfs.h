// PSFs prepared on a grid, kept for later jobs with the same PSF and grid.
#ifndef SPEXD_PYTHON_NATIVE_PREPARED_PSFS_H_
#define SPEXD_PYTHON_NATIVE_PREPARED_PSFS_H_

#include <cstdint>
#include <list>
#include <memory>
#include <stop_token>
#include <string>

#include "core/base/threads/mutex.h"
#include "core/extract/engine.h"

namespace spexd::python {

// Evicts the least recently used PSF first. Thread-safe.
class PreparedPsfs {
 public:
  // Keeps at most `budget` bytes, not counting PSFs that jobs hold; 0 keeps none.
  explicit PreparedPsfs(int64_t budget) : budget_(budget) {}

  // Returns the prepared PSF, and prepares it if it is not kept. Errors as Engine::Prepare.
  absl::StatusOr<std::shared_ptr<const PreparedPsf>> Get(Engine* engine,
                                                         const std::shared_ptr<const Psf>& psf,
                                                         const WavelengthGrid& grid, int bundle_size,
                                                         const std::stop_token& stop)
      ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  std::shared_ptr<const PreparedPsf> Find(const std::shared_ptr<const Psf>& psf, const WavelengthGrid& grid,
                                          int bundle_size) ABSL_LOCKS_EXCLUDED(mutex_);
  void Keep(std::shared_ptr<const PreparedPsf> prepared) ABSL_LOCKS_EXCLUDED(mutex_);

  const int64_t budget_;
  Mutex mutex_;
  std::list<std::shared_ptr<const PreparedPsf>> kept_ ABSL_GUARDED_BY(mutex_);  // most recently used first
  int64_t bytes_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace spexd::python

#endif  // SPEXD_PYTHON_NATIVE_PREPARED_PSFS_H_
