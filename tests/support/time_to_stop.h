// The time for which work continues after a stop was requested. Only tests of the second tier measure it
// (docs/development.md). Tests of the first tier show only that work ends after a stop was requested.
#ifndef SPEXD_TESTS_SUPPORT_TIME_TO_STOP_H_
#define SPEXD_TESTS_SUPPORT_TIME_TO_STOP_H_

#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <optional>
#include <stop_token>

#include "absl/status/status.h"
#include "core/base/threads/deadline.h"

namespace spexd::testing {

inline double ProcessorSeconds() {
  timespec time = {};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// Returns the processor seconds for which `work`, which has one thread, continues after a deadline `after`
// seconds from now. Other programs on the machine do not count. Negative if the work ended before the
// deadline.
template <typename Work>
double SecondsToStop(double after, const Work& work) {
  std::stop_source stop;
  std::atomic<double> at_stop = 0;
  const std::stop_callback note(stop.get_token(), [&at_stop] {
    at_stop = ProcessorSeconds();
    at_stop.notify_one();
  });
  const auto when = Deadline::Clock::now() + std::chrono::duration_cast<Deadline::Clock::duration>(
                                                 std::chrono::duration<double>(after));
  const Deadline deadline(stop, std::optional(when));
  const bool stopped = work(stop.get_token()).code() == absl::StatusCode::kCancelled;
  if (!stopped) return -1;
  const double end = ProcessorSeconds();
  at_stop.wait(0);  // the work may end before the time is recorded
  return std::max(end - at_stop, 0.0);
}

inline constexpr double kStopSeconds = 0.1;

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_SUPPORT_TIME_TO_STOP_H_
