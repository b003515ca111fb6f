// Numbers in units for people.
#ifndef SPEXD_SERVER_STATUS_HUMAN_UNITS_H_
#define SPEXD_SERVER_STATUS_HUMAN_UNITS_H_

#include <cstdint>
#include <string>

namespace spexd {

std::string HumanBytes(int64_t bytes);     // "512 B", "27.7 MB", "1.8 GB"; powers of 1000
std::string HumanSeconds(double seconds);  // "0.4 ms", "35 ms", "3.2 s", "4.1 min", "2.3 h", "12 days"
std::string HumanAge(double seconds);      // "just now", "12 s ago", "3 min ago", "2 h ago", "5 days ago"
std::string HumanCount(int64_t count);     // "1,157,915"; count >= 0

}  // namespace spexd

#endif  // SPEXD_SERVER_STATUS_HUMAN_UNITS_H_
