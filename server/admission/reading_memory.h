// The memory with which a job or a call reads its files: all of it is reserved before it is allocated.
#ifndef SPEXD_SERVER_ADMISSION_READING_MEMORY_H_
#define SPEXD_SERVER_ADMISSION_READING_MEMORY_H_

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "core/base/memory/memory_account.h"
#include "core/base/threads/mutex.h"
#include "server/admission/byte_budget.h"

namespace spexd {

// Starts with what was reserved for files as they are on disk. What readers take beyond that and what Allow
// adds is reserved with it at once, or the reading ends with the error of Reservation::Grow.
class ReadingMemory : public MemoryAccount {
 public:
  // `files` holds `bytes`.
  ReadingMemory(ByteBudget::Reservation files, int64_t bytes) : files_(std::move(files)), unused_(bytes) {}

  absl::Status Take(int64_t bytes) override ABSL_LOCKS_EXCLUDED(mutex_);
  void GiveBack(int64_t bytes) override ABSL_LOCKS_EXCLUDED(mutex_);
  // Readers may take `bytes` more, which somebody else has reserved.
  void Allow(int64_t bytes) ABSL_LOCKS_EXCLUDED(mutex_);
  // Gives back what is reserved for files. REQUIRES: all of them are read, but for those that take what is
  // allowed afterwards.
  void Release() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  Mutex mutex_;
  ByteBudget::Reservation files_ ABSL_GUARDED_BY(mutex_);
  int64_t unused_ ABSL_GUARDED_BY(mutex_);
  bool released_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_ADMISSION_READING_MEMORY_H_
