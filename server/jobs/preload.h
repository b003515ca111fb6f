// PSFs that are loaded when the server starts. Only readiness waits for them.
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

// Checks the headers of the file, and the grid. InvalidArgument names the file and what is wrong.
absl::Status CheckPreload(const Preload& preload, int64_t max_bytes);

// Loads PSFs on a thread of its own, one after the other. If jobs hold the memory for one, it waits.
class Preloader {
 public:
  // `done` is called on the thread when all are loaded, but not if one cannot be loaded.
  Preloader(const ServerParts& parts, std::vector<Preload> preloads, std::function<void()> done);
  // Stops loading, and waits for steps that cannot be stopped.
  ~Preloader();

  // Returns why the server is not ready ("loading PSFs: 1 of 3 are there"); "" when all are loaded.
  std::string WhyNotReady() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the error of a PSF that cannot be loaded. InvalidArgument: its file or the grid is wrong.
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
