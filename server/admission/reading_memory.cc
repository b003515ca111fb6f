#include "server/admission/reading_memory.h"

#include <algorithm>

#include "core/base/status_macros.h"

namespace spexd {

absl::Status ReadingMemory::Take(int64_t bytes) {
  MutexLock lock(&mutex_);
  const int64_t missing = std::max<int64_t>(0, bytes - unused_);
  if (missing > 0) SPEXD_RETURN_IF_ERROR(files_.Grow(missing));
  unused_ += missing - bytes;
  return absl::OkStatus();
}

// After Release, bytes that come back are not counted: their reservation is gone.
void ReadingMemory::GiveBack(int64_t bytes) {
  MutexLock lock(&mutex_);
  if (!released_) unused_ += bytes;
}

void ReadingMemory::Allow(int64_t bytes) {
  MutexLock lock(&mutex_);
  unused_ += bytes;
}

void ReadingMemory::Release() {
  MutexLock lock(&mutex_);
  files_.Release();
  unused_ = 0;
  released_ = true;
}

}  // namespace spexd
