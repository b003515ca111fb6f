// Passes events from a job's thread to the thread that talks to the client. The engine never waits here: the
// memory that results may take was reserved before the job began.
#ifndef SPEXD_SERVER_JOBS_JOB_MAILBOX_H_
#define SPEXD_SERVER_JOBS_JOB_MAILBOX_H_

#include <deque>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <variant>

#include "absl/status/status.h"
#include "core/base/deadline.h"
#include "core/base/mutex.h"
#include "core/frame/bundle_spectra.h"
#include "core/frame/job.h"

namespace spexd {

struct StateEvent {
  std::string state;
  int bundles_done = 0;
  int bundles_total = 0;
};
struct PlanEvent {
  std::shared_ptr<const JobPlan> plan;
  int rows = 0;  // CCD rows of the image
  int columns = 0;
};
struct BundleEvent {
  std::shared_ptr<const BundleSpectra> bundle;
  int bins = 0;
};
using JobEvent = std::variant<StateEvent, PlanEvent, BundleEvent>;

class JobMailbox {
 public:
  enum class Got { kEvent, kStopped, kEnd };

  void Push(JobEvent event) {
    MutexLock lock(&mutex_);
    events_.push_back(std::move(event));
    changed_.NotifyOne();
  }
  void Close() {
    MutexLock lock(&mutex_);
    closed_ = true;
    changed_.NotifyOne();
  }
  // The next event, kEnd once all were taken from a closed mailbox, kStopped once a stop is requested.
  Got Next(const std::stop_token& stop, JobEvent* event) {
    const WakeOnStop wake(stop, &mutex_, &changed_);
    MutexLock lock(&mutex_);
    while (events_.empty() && !closed_ && !stop.stop_requested()) changed_.Wait(&mutex_);
    if (stop.stop_requested()) return Got::kStopped;
    if (!events_.empty()) {
      *event = std::move(events_.front());
      events_.pop_front();
      return Got::kEvent;
    }
    return Got::kEnd;
  }

 private:
  Mutex mutex_;
  CondVar changed_;
  std::deque<JobEvent> events_ ABSL_GUARDED_BY(mutex_);
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_JOBS_JOB_MAILBOX_H_
