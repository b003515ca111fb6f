// PSFs that are loaded as the server starts: readiness waits for them, nothing else does.
#ifndef SPEXD_SERVER_JOBS_PRELOAD_H_
#define SPEXD_SERVER_JOBS_PRELOAD_H_

#include <functional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "core/base/threads/mutex.h"
#include "server/config/preload_option.h"
#include "server/jobs/server_parts.h"

namespace spexd {

// Looks at the file's headers, and at the grid. InvalidArgument names the file and what is wrong with either.
absl::Status CheckPreload(const Preload& preload, int64_t max_bytes);

// Loads PSFs on a thread of its own, one after the other; those who need more of the memory than jobs leave
// wait for it.
class Preloader {
 public:
  // `done` is called on the thread once all are loaded; not if one cannot be.
  Preloader(const ServerParts& parts, std::vector<Preload> preloads, std::function<void()> done);
  // Stops, and waits for what cannot be stopped.
  ~Preloader();

  // Why the server is not ready: "loading PSFs: 1 of 3 are there"; "" once all are.
  std::string WhyNotReady() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Not OK once a PSF cannot be loaded. InvalidArgument: for its file, or the grid.
  absl::Status status() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Run(const std::stop_token& stop);
  absl::Status Load(const Preload& preload, const std::stop_token& stop);
  absl::Status LoadWhenThereIsRoom(const Preload& preload, const std::stop_token& stop);

  const ServerParts parts_;
  const std::vector<Preload> preloads_;
  const std::function<void()> done_;
  mutable Mutex mutex_;
  CondVar stopped_;
  size_t loaded_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status status_ ABSL_GUARDED_BY(mutex_);
  std::jthread thread_;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_JOBS_PRELOAD_H_
