// A memory budget for tests, which counts what readers take from it.
#ifndef SPEXD_TESTS_FITS_COUNTING_ACCOUNT_H_
#define SPEXD_TESTS_FITS_COUNTING_ACCOUNT_H_

#include <algorithm>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/str_format.h"
#include "core/base/memory/memory_account.h"
#include "core/base/threads/mutex.h"

namespace spexd::testing {

class CountingAccount : public MemoryAccount {
 public:
  // Returns ResourceExhausted if more than `limit` bytes would be taken at the same time.
  explicit CountingAccount(int64_t limit = INT64_MAX) : limit_(limit) {}

  absl::Status Take(int64_t bytes) override ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    if (bytes > limit_ - taken_)
      return absl::ResourceExhaustedError(
          absl::StrFormat("%d bytes beside %d, the limit is %d", bytes, taken_, limit_));
    taken_ += bytes;
    peak_ = std::max(peak_, taken_);
    return absl::OkStatus();
  }
  void GiveBack(int64_t bytes) override ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    taken_ -= bytes;
  }
  int64_t taken() const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return taken_;
  }
  // The largest number of bytes taken at the same time.
  int64_t peak() const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return peak_;
  }

 private:
  const int64_t limit_;
  mutable Mutex mutex_;
  int64_t taken_ ABSL_GUARDED_BY(mutex_) = 0, peak_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_FITS_COUNTING_ACCOUNT_H_
