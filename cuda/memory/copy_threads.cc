#include "cuda/memory/copy_threads.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <utility>

#include "core/base/threads/mutex.h"

namespace spexd::cuda {
namespace {

constexpr size_t kStrip = size_t{4} << 20;

// The pieces of one loop. Any free thread takes the next one. Helpers share this object and may start long
// after the loop has ended; then no piece is left, and they do not touch its body.
class Pieces {
 public:
  Pieces(int64_t count, const std::function<void(int64_t)>* body) : count_(count), body_(body) {}

  void TakeAll() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    while (next_ < count_) {
      const int64_t piece = next_++;
      ++working_;
      mutex_.Unlock();
      (*body_)(piece);
      mutex_.Lock();
      if (--working_ == 0) done_.NotifyAll();
    }
  }

  // REQUIRES: TakeAll has returned, so all pieces are taken.
  void WaitUntilDone() ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    while (working_ > 0) done_.Wait(&mutex_);
  }

 private:
  const int64_t count_;
  const std::function<void(int64_t)>* const body_;
  Mutex mutex_;
  CondVar done_;
  int64_t next_ ABSL_GUARDED_BY(mutex_) = 0;
  int working_ ABSL_GUARDED_BY(mutex_) = 0;
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

CopyThreads::CopyThreads(int threads)
    : pool_(MakePool(threads)),
      run_([pool = pool_.get()](std::function<void()> task) {
        pool->Run([task = std::move(task)](int) { task(); });
      }),
      helpers_(pool_ == nullptr ? 0 : threads) {}

CopyThreads::CopyThreads(Run run, int helpers) : run_(std::move(run)), helpers_(helpers) {}

void CopyThreads::ForEach(int64_t count, const std::function<void(int64_t)>& body) noexcept {
  std::shared_ptr<Pieces> pieces;
  try {
    pieces = std::make_shared<Pieces>(count, &body);
    const int64_t helpers = std::min<int64_t>(count - 1, helpers_);  // this thread takes at least one piece
    for (int64_t k = 0; k < helpers; ++k) run_([pieces] { pieces->TakeAll(); });
  } catch (const std::exception&) {
    // Continues with the helpers that have started.
  }
  if (pieces == nullptr) {
    for (int64_t k = 0; k < count; ++k) body(k);
    return;
  }
  pieces->TakeAll();
  pieces->WaitUntilDone();
}

void CopyThreads::Copy(const void* from, size_t bytes, void* to) noexcept {
  const auto copy = [&](int64_t strip) {
    const size_t first = static_cast<size_t>(strip) * kStrip;
    std::memcpy(static_cast<std::byte*>(to) + first, static_cast<const std::byte*>(from) + first,
                std::min(kStrip, bytes - first));
  };
  // Passed by reference, so that std::function allocates no memory.
  ForEach(static_cast<int64_t>((bytes + kStrip - 1) / kStrip), std::cref(copy));
}

}  // namespace spexd::cuda
