// The account of the memory with which a job or a call reads its files. All of it is reserved before it is
// allocated.
#ifndef SPEXD_SERVER_ADMISSION_READING_MEMORY_H_
#define SPEXD_SERVER_ADMISSION_READING_MEMORY_H_

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "core/base/memory/memory_account.h"
#include "core/base/threads/mutex.h"
#include "server/admission/byte_budget.h"

namespace spexd {

// Starts with the bytes that are reserved for files as they are on disk. If readers take more than these
// bytes and those of Allow, the rest is reserved too, without waiting; if that fails, the reading ends with
// the error of Reservation::Grow. Safe to use from many threads.
class ReadingMemory : public MemoryAccount {
 public:
  // `files`: the reservation of `bytes` bytes.
  ReadingMemory(ByteBudget::Reservation files, int64_t bytes) : files_(std::move(files)), unused_(bytes) {}

  absl::Status Take(int64_t bytes) override ABSL_LOCKS_EXCLUDED(mutex_);
  void GiveBack(int64_t bytes) override ABSL_LOCKS_EXCLUDED(mutex_);
  // Adds `bytes` that another reservation holds.
  void Allow(int64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // Gives back the reservation for files. REQUIRES: all files are read, except those whose memory is added by
  // Allow afterwards.
  void Release() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  Mutex mutex_;
  ByteBudget::Reservation files_ ABSL_GUARDED_BY(mutex_);
  int64_t unused_ ABSL_GUARDED_BY(mutex_);
  bool released_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_ADMISSION_READING_MEMORY_H_
