// Disk that is kept for the journal, so that the end of a job can be noted on a disk that is full.
#ifndef SPEXD_SERVER_DETACHED_STORE_JOURNAL_DISK_RESERVE_H_
#define SPEXD_SERVER_DETACHED_STORE_JOURNAL_DISK_RESERVE_H_

#include <cstdint>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "core/base/file_descriptor.h"
#include "core/base/threads/mutex.h"

namespace spexd {

// A file that does nothing but hold room. Safe to use from many threads.
class DiskReserve {
 public:
  static constexpr int64_t kBytes = 8 << 20;

  // Takes up the file as it is, if it is there.
  explicit DiskReserve(std::string path);

  // Takes what is missing. Unavailable: the disk has less; what it had is held.
  absl::Status Fill() ABSL_LOCKS_EXCLUDED(mutex_);
  // Gives up a part of it, so that others take little of what the journal needs. False: nothing was left.
  bool GiveUpPart() ABSL_LOCKS_EXCLUDED(mutex_);
  bool whole() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const std::string path_;
  mutable Mutex mutex_;
  FileDescriptor file_ ABSL_GUARDED_BY(mutex_){-1};
  int64_t held_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_DETACHED_STORE_JOURNAL_DISK_RESERVE_H_
