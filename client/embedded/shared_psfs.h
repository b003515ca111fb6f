// PSFs that several jobs of this process share. Each is read and prepared once.
#ifndef SPEXD_CLIENT_EMBEDDED_SHARED_PSFS_H_
#define SPEXD_CLIENT_EMBEDDED_SHARED_PSFS_H_

#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/base/threads/mutex.h"
#include "core/extract/engine.h"
#include "core/model/psf.h"

namespace spexd::client {

// A PSF is kept, with the grid that was prepared last, until its last job has ended or as long as this object
// lives. Safe to use from many threads.
class SharedPsfs {
 public:
  // How long a PSF is kept. kAlways is for jobs that come at any time.
  enum class Keep { kUntilTheLastJob, kAlways };
  // `paths`: the PSF of each job. PSFs that occur only once are not shared, except with kAlways.
  explicit SharedPsfs(const std::vector<std::string>& paths, Keep keep = Keep::kUntilTheLastJob);

  bool Shares(const std::string& path) const;
  // Load, Prepare and EndJob REQUIRE Shares(path).
  //
  // Returns the PSF, and reads its file if necessary. Waits while another job reads or prepares the same PSF.
  // Errors as in ReadPsf, after which the next call reads the file again; Cancelled: a stop was requested.
  absl::StatusOr<std::shared_ptr<const Psf>> Load(const std::string& path, const std::stop_token& stop);
  // Returns the prepared PSF, and prepares it if necessary. Waits as Load does. Errors as in Engine::Prepare.
  absl::StatusOr<std::shared_ptr<const PreparedPsf>> Prepare(Engine* engine, const std::string& path,
                                                             const WavelengthGrid& grid, int bundle_size,
                                                             const std::stop_token& stop);
  // Says that a job of the PSF has ended.
  void EndJob(const std::string& path);

 private:
  class Hold;
  struct Entry {
    Mutex mutex;
    CondVar free;
    bool taken ABSL_GUARDED_BY(mutex) = false;  // a job reads or prepares the PSF
    int jobs ABSL_GUARDED_BY(mutex) = 0;        // jobs that have not ended
    // Only the job that has taken the entry uses these, and the last job at its end.
    std::shared_ptr<const Psf> psf;
    std::shared_ptr<const PreparedPsf> prepared;
  };

  const Keep keep_;
  std::map<std::string, std::unique_ptr<Entry>> entries_;  // constant after the constructor
};

}  // namespace spexd::client

#endif  // SPEXD_CLIENT_EMBEDDED_SHARED_PSFS_H_
