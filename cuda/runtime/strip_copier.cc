#include "cuda/runtime/strip_copier.h"

#include <algorithm>
#include <cstring>

#include "core/base/mutex.h"

namespace spexd::cuda {
namespace {

constexpr size_t kStrip = size_t{4} << 20;

// The strips of one copy, taken in turn by whoever is free.
class Strips {
 public:
  Strips(const void* from, size_t bytes, void* to)
      : from_(static_cast<const std::byte*>(from)), to_(static_cast<std::byte*>(to)), bytes_(bytes) {}

  void CopyAll() ABSL_LOCKS_EXCLUDED(mutex_) {
    while (true) {
      size_t first = 0;
      {
        MutexLock lock(&mutex_);
        if (next_ >= bytes_) return;
        first = next_;
        next_ += kStrip;
      }
      std::memcpy(to_ + first, from_ + first, std::min(kStrip, bytes_ - first));
    }
  }

  void Join() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    ++helpers_;
  }
  void Leave() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    if (--helpers_ == 0) done_.NotifyAll();
  }
  void WaitForHelpers() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    while (helpers_ > 0) done_.Wait(&mutex_);
  }

 private:
  const std::byte* const from_;
  std::byte* const to_;
  const size_t bytes_;
  Mutex mutex_;
  CondVar done_;
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;
  int helpers_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace

void StripCopier::Copy(const void* from, size_t bytes, void* to) {
  if (bytes == 0) return;
  Strips strips(from, bytes, to);
  const size_t useful = (bytes - 1) / kStrip;  // this thread takes one at least
  const int helpers = static_cast<int>(std::min<size_t>(useful, static_cast<size_t>(pool_.threads())));
  for (int k = 0; k < helpers; ++k) {
    strips.Join();
    pool_.Run([&strips](int) {
      strips.CopyAll();
      strips.Leave();
    });
  }
  strips.CopyAll();
  strips.WaitForHelpers();
}

}  // namespace spexd::cuda
