#include "core/base/threads/deadline.h"

#include <condition_variable>
#include <mutex>

namespace spexd {
namespace {

// Waits until `when` or until a stop is requested.
void WaitUntil(Deadline::Clock::time_point when, const std::stop_token& stop) {
  std::mutex mutex;
  std::condition_variable_any condition;
  std::unique_lock<std::mutex> lock(mutex);
  condition.wait_until(lock, stop, when, [] { return false; });
}

std::optional<Deadline::Clock::time_point> OnSteadyClock(
    const std::optional<std::chrono::system_clock::time_point>& when) {
  if (!when.has_value()) return std::nullopt;
  const auto now = std::chrono::system_clock::now();
  // A time so far ahead never comes, and arithmetic with it would overflow.
  constexpr auto kFar = std::chrono::hours(24 * 365 * 10);
  if (*when > now + kFar) return std::nullopt;
  return Deadline::Clock::now() + std::chrono::duration_cast<Deadline::Clock::duration>(*when - now);
}

}  // namespace

Deadline::Deadline(std::stop_source source, std::optional<Clock::time_point> when) : when_(when) {
  if (!when_.has_value()) return;
  thread_ = std::jthread([source = std::move(source), when = *when_](const std::stop_token& gone) mutable {
    WaitUntil(when, gone);
    if (!gone.stop_requested()) source.request_stop();
  });
}

Deadline::Deadline(std::stop_source source, std::optional<std::chrono::system_clock::time_point> when)
    : Deadline(std::move(source), OnSteadyClock(when)) {}

absl::Status CheckStop(const std::stop_token& stop) {
  return stop.stop_requested() ? absl::CancelledError("cancelled") : absl::OkStatus();
}

bool SleepUnlessStopped(std::chrono::nanoseconds duration, std::stop_token stop) {
  WaitUntil(Deadline::Clock::now() + std::chrono::duration_cast<Deadline::Clock::duration>(duration), stop);
  return stop.stop_requested();
}

}  // namespace spexd
