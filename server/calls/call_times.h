// The time limits of a call: for its header, for all of its input, between two messages, and in all.
#ifndef SPEXD_SERVER_CALLS_CALL_TIMES_H_
#define SPEXD_SERVER_CALLS_CALL_TIMES_H_

#include <chrono>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "server/base/stall_watchdog.h"
#include "server/config/options.h"

namespace spexd {

// The times begin with construction. Not safe to use from many threads at once.
class CallTimes {
 public:
  using Clock = StallWatchdog::Clock;

  // `max_seconds`: the limit of the whole call. `wake`: called when a time has passed (see
  // StallWatchdog::Watch).
  CallTimes(const ServerOptions& options, double max_seconds, StallWatchdog* watchdog,
            std::function<void()> wake);

  // These set what the call waits for next. The time for the input begins with the header.
  void WaitForHeader() { WaitUntil(Limit::kHeader, start_ + header_); }
  void WaitForInput();
  void WaitForClientToRead() { WaitUntil(Limit::kStall, Clock::now() + stall_); }
  void WaitForServer() { WaitUntil(Limit::kJob, job_deadline()); }
  void HeaderCame() { input_deadline_ = Clock::now() + input_; }

  // Gives the client, after a time has passed, a moment to read the message that is being written.
  void AllowLastMessage();

  // OK until a time has passed. Then DeadlineExceeded or, for a stall, Cancelled; the message names the
  // limit.
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
  Limit limit_ = Limit::kJob;  // the limit of deadline_
  Clock::time_point deadline_ = Clock::time_point::max();
  StallWatchdog::Watch watch_;
};

}  // namespace spexd

#endif  // SPEXD_SERVER_CALLS_CALL_TIMES_H_
