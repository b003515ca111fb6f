// How long a call may take: for its header, for all of its input, between two messages, and in all.
#ifndef SPEXD_SERVER_CALLS_CALL_TIMES_H_
#define SPEXD_SERVER_CALLS_CALL_TIMES_H_

#include <chrono>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "server/base/stall_watchdog.h"
#include "server/config/options.h"

namespace spexd {

// Not safe to use from many threads at once. The times begin with its construction.
class CallTimes {
 public:
  using Clock = StallWatchdog::Clock;

  // `max_seconds`: for the whole call. `wake` is called when a time has passed: see StallWatchdog::Watch.
  CallTimes(const ServerOptions& options, double max_seconds, StallWatchdog* watchdog,
            std::function<void()> wake);

  // What the call waits for from now on. The time for the input begins with the header.
  void WaitForHeader() { WaitUntil(Limit::kHeader, start_ + header_); }
  void WaitForInput();
  void WaitForClientToRead() { WaitUntil(Limit::kStall, Clock::now() + stall_); }
  void WaitForServer() { WaitUntil(Limit::kJob, job_deadline()); }
  void HeaderCame() { input_deadline_ = Clock::now() + input_; }

  // Once a time has passed: a message on its way may still be read for a moment, before the time passes
  // again.
  void AllowLastMessage();

  // DeadlineExceeded or, for a stall, Cancelled once a time has passed, naming its limit; else OK.
  absl::Status Passed() const;
  bool stalled() const { return limit_ == Limit::kStall && !Passed().ok(); }

  double seconds() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  Clock::time_point start() const { return start_; }

 private:
  enum class Limit { kHeader, kInput, kStall, kJob };
  Clock::time_point job_deadline() const { return start_ + job_; }
  void WaitUntil(Limit limit, Clock::time_point deadline);

  const Clock::time_point start_ = Clock::now();
  const Clock::duration header_, input_, stall_, job_;
  Clock::time_point input_deadline_ = Clock::time_point::max();
  Limit limit_ = Limit::kJob;  // which passes next
  Clock::time_point deadline_ = Clock::time_point::max();
  StallWatchdog::Watch watch_;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_CALLS_CALL_TIMES_H_
