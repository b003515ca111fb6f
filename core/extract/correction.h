// Correction of time estimates, learnt from the times of earlier jobs.
#ifndef SPEXD_CORE_EXTRACT_CORRECTION_H_
#define SPEXD_CORE_EXTRACT_CORRECTION_H_

#include <algorithm>
#include <cmath>

#include "core/base/threads/mutex.h"

namespace spexd {

// An exponentially weighted mean of the logarithm of actual / estimated, so that half and twice the time
// weigh the same. Thread-safe.
class Correction {
 public:
  static constexpr double kMaxFactor = 100;  // a larger factor is learnt as this

  // Learns from one job. `estimated`: the estimate before any correction. Nothing is learnt unless both are >
  // 0.
  void Learn(double estimated, double actual) ABSL_LOCKS_EXCLUDED(mutex_) {
    if (!(estimated > 0) || !(actual > 0)) return;
    // A job that was held up should not spoil the estimates of the next ones.
    const double ratio = std::log(std::clamp(actual / estimated, 1 / kMaxFactor, kMaxFactor));
    MutexLock lock(&mutex_);
    const double weight = std::max(kWeight, 1.0 / (1 + jobs_));  // the first jobs count alike
    log_ratio_ += weight * (ratio - log_ratio_);
    ++jobs_;
  }
  double factor() const ABSL_LOCKS_EXCLUDED(mutex_) {
    MutexLock lock(&mutex_);
    return std::exp(log_ratio_);
  }

 private:
  static constexpr double kWeight = 0.2;

  mutable Mutex mutex_;
  double log_ratio_ ABSL_GUARDED_BY(mutex_) = 0;
  double jobs_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace spexd

#endif  // SPEXD_CORE_EXTRACT_CORRECTION_H_
