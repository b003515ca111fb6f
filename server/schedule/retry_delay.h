// When a client that was refused should come again.
#ifndef SPEXD_SERVER_SCHEDULE_RETRY_DELAY_H_
#define SPEXD_SERVER_SCHEDULE_RETRY_DELAY_H_

#include <algorithm>
#include <chrono>
#include <cmath>

namespace spexd {

// A call that found too many others, at least.
inline constexpr std::chrono::milliseconds kWhenTooMany(2000);

// `seconds`: until there should be room for it. It comes no sooner and no later than 0.5 to 300 s.
inline std::chrono::milliseconds RetryDelayFor(double seconds) {
  return std::chrono::milliseconds(std::llround(1000 * std::clamp(seconds, 0.5, 300.0)));
}

}  // namespace spexd

#endif  // SPEXD_SERVER_SCHEDULE_RETRY_DELAY_H_
