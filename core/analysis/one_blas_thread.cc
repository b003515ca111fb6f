#include "core/analysis/one_blas_thread.h"

#include <cblas.h>

#include "core/base/threads/mutex.h"

namespace spexd {
namespace {

struct BlasThreads {
  Mutex mutex;
  int alive ABSL_GUARDED_BY(mutex) = 0;
  int before ABSL_GUARDED_BY(mutex) = 1;
};
BlasThreads& OfTheProcess() {
  static auto* const threads = new BlasThreads;
  return *threads;
}

}  // namespace

OneBlasThread::OneBlasThread() {
  BlasThreads& threads = OfTheProcess();
  const MutexLock lock(&threads.mutex);
  if (threads.alive++ > 0) return;
  threads.before = openblas_get_num_threads();
  openblas_set_num_threads(1);
}

OneBlasThread::~OneBlasThread() {
  BlasThreads& threads = OfTheProcess();
  const MutexLock lock(&threads.mutex);
  if (--threads.alive == 0) openblas_set_num_threads(threads.before);
}

}  // namespace spexd
