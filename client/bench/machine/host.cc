#include "client/bench/machine/host.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <vector>

#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"

namespace spexd::bench {
namespace {

std::string ReadAll(const char* path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

double SecondsSinceProcessStart() {
  constexpr int kStartTime = 22;  // the field of proc(5), counted from 1
  const std::string stat = ReadAll("/proc/self/stat");
  // The second field is the program's name in brackets, which may contain blanks.
  const size_t name_end = stat.rfind(')');
  if (name_end == std::string::npos) return 0;
  std::istringstream fields(stat.substr(name_end + 1));
  std::string field;
  for (int k = 3; k < kStartTime; ++k) fields >> field;
  double ticks = 0;
  timespec now = {};
  if (!(fields >> ticks) || clock_gettime(CLOCK_BOOTTIME, &now) != 0) return 0;
  const double seconds = static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec) -
                         ticks / static_cast<double>(sysconf(_SC_CLK_TCK));
  return seconds > 0 ? seconds : 0;
}

std::string CommandLine() {
  const std::string bytes = ReadAll("/proc/self/cmdline");
  std::vector<std::string> arguments;
  for (size_t begin = 0; begin < bytes.size();) {
    const size_t end = std::min(bytes.find('\0', begin), bytes.size());
    arguments.push_back(bytes.substr(begin, end - begin));
    begin = end + 1;
  }
  if (!arguments.empty()) arguments[0] = std::filesystem::path(arguments[0]).filename().string();
  return absl::StrJoin(arguments, " ");
}

std::string ProcessorName() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const size_t colon = line.find(": ");
    if (line.rfind("model name", 0) == 0 && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "";
}

std::string TimeNow() { return absl::FormatTime("%Y-%m-%dT%H:%M:%SZ", absl::Now(), absl::UTCTimeZone()); }

}  // namespace spexd::bench
