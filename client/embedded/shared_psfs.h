// PSFs that several jobs of this process use: each is read and prepared once.
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

// Safe to use from many threads. A PSF is kept until its last job has ended, or as long as this lives, with
// the grid that was prepared last.
class SharedPsfs {
 public:
  // Whether jobs end; kAlways: others come at any time.
  enum class Keep { kUntilTheLastJob, kAlways };
  // `paths`: the PSF of each job; those that stand there once are not shared. With kAlways, the PSFs of all
  // jobs.
  explicit SharedPsfs(const std::vector<std::string>& paths, Keep keep = Keep::kUntilTheLastJob);

  bool Shares(const std::string& path) const;
  // REQUIRES for the following: Shares(path).
  // Whoever comes while another job reads or prepares the same PSF waits, until a stop is requested.
  // Errors as ReadPsf; the next call reads the file again then.
  absl::StatusOr<std::shared_ptr<const Psf>> Load(const std::string& path, const std::stop_token& stop);
  // Errors as Engine::Prepare.
  absl::StatusOr<std::shared_ptr<const PreparedPsf>> Prepare(Engine* engine, const std::string& path,
                                                             const WavelengthGrid& grid, int bundle_size,
                                                             const std::stop_token& stop);
  // One of the PSF's jobs has ended.
  void EndJob(const std::string& path);

 private:
  class Hold;
  struct Entry {
    Mutex mutex;
    CondVar free;
    bool taken ABSL_GUARDED_BY(mutex) = false;  // a job holds it
    int jobs ABSL_GUARDED_BY(mutex) = 0;        // that have not ended
    // Those of the job that holds it; once no job is left, of the last one's end.
    std::shared_ptr<const Psf> psf;
    std::shared_ptr<const PreparedPsf> prepared;
  };

  const Keep keep_;
  std::map<std::string, std::unique_ptr<Entry>> entries_;  // not changed after the constructor
};

}  // namespace spexd::client

#endif  // SPEXD_CLIENT_EMBEDDED_SHARED_PSFS_H_
