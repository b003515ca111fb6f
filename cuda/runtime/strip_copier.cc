#include "cuda/runtime/strip_copier.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "core/base/mutex.h"

namespace spexd::cuda {
namespace {

constexpr size_t kStrip = size_t{4} << 20;

// The strips of one copy; any free thread takes the next one. Helpers share this object and may come long
// after the copy has ended. Then no strip is left, and they touch neither array.
class Strips {
 public:
  Strips(const void* from, size_t bytes, void* to)
      : from_(static_cast<const std::byte*>(from)), to_(static_cast<std::byte*>(to)), bytes_(bytes) {}

  void CopyAll() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    while (next_ < bytes_) {
      const size_t first = next_;
      next_ += std::min(kStrip, bytes_ - next_);
      ++copying_;
      mutex_.Unlock();
      std::memcpy(to_ + first, from_ + first, std::min(kStrip, bytes_ - first));
      mutex_.Lock();
      if (--copying_ == 0) done_.NotifyAll();
    }
  }

  // REQUIRES: CopyAll has returned, so that all strips are taken.
  void WaitUntilCopied() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    while (copying_ > 0) done_.Wait(&mutex_);
  }

 private:
  const std::byte* const from_;
  std::byte* const to_;
  const size_t bytes_;
  Mutex mutex_;
  CondVar done_;
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;
  int copying_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Returns null if the threads cannot be started.
std::unique_ptr<WorkerPool> MakePool(int threads) {
  try {
    return std::make_unique<WorkerPool>(threads);
  } catch (const std::exception&) {
    return nullptr;
  }
}

}  // namespace

StripCopier::StripCopier(int threads)
    : pool_(MakePool(threads)),
      run_([pool = pool_.get()](std::function<void()> task) {
        pool->Run([task = std::move(task)](int) { task(); });
      }),
      helpers_(pool_ == nullptr ? 0 : threads) {}

StripCopier::StripCopier(Run run, int helpers) : run_(std::move(run)), helpers_(helpers) {}

void StripCopier::Copy(const void* from, size_t bytes, void* to) noexcept {
  if (bytes == 0) return;
  std::shared_ptr<Strips> strips;
  try {
    strips = std::make_shared<Strips>(from, bytes, to);
    const size_t useful = (bytes - 1) / kStrip;  // this thread takes at least one strip
    const size_t helpers = std::min(useful, static_cast<size_t>(helpers_));
    for (size_t k = 0; k < helpers; ++k) run_([strips] { strips->CopyAll(); });
  } catch (const std::exception&) {
    // Continues with the help that there is.
  }
  if (strips == nullptr) {
    std::memcpy(to, from, bytes);
    return;
  }
  strips->CopyAll();
  strips->WaitUntilCopied();
}

}  // namespace spexd::cuda
