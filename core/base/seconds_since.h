// Elapsed time.
#ifndef SPEXD_CORE_BASE_SECONDS_SINCE_H_
#define SPEXD_CORE_BASE_SECONDS_SINCE_H_

#include <chrono>

namespace spexd {

// Seconds from `start` until now.
inline double SecondsSince(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// The time of day, in seconds since 1970 (UTC).
inline double SecondsSince1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace spexd

#endif  // SPEXD_CORE_BASE_SECONDS_SINCE_H_
