// Retry delays of refused clients.
#ifndef SPEXD_SERVER_SCHEDULE_RETRY_DELAY_H_
#define SPEXD_SERVER_SCHEDULE_RETRY_DELAY_H_

#include <algorithm>
#include <chrono>
#include <cmath>

namespace spexd {

// The shortest delay of a call that is refused because there are too many.
inline constexpr std::chrono::milliseconds kWhenTooMany(2000);

// Returns the delay for an estimated time until there is room, limited to 0.5 to 300 s.
inline std::chrono::milliseconds RetryDelayFor(double seconds) {
  return std::chrono::milliseconds(std::llround(1000 * std::clamp(seconds, 0.5, 300.0)));
}

}  // namespace spexd

#endif  // SPEXD_SERVER_SCHEDULE_RETRY_DELAY_H_
