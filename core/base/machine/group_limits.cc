#include "core/base/machine/group_limits.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>

namespace spexd {
namespace {

constexpr char kVersion2[] = "0::/";  // begins the version 2 line of /proc/self/cgroup

// The text of a file; empty if there is no such file.
std::string TextOf(const std::filesystem::path& path) {
  std::ifstream file(path);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

// The limit in a file, which holds "BYTES" or "MICROSECONDS PERIOD" (the period in microseconds, too). Empty
// for "max".
std::optional<double> LimitIn(const std::filesystem::path& path) {
  std::istringstream text(TextOf(path));
  double amount = 0, period = 0;
  if (!(text >> amount)) return std::nullopt;
  return text >> period && period > 0 ? amount / period : amount;
}

}  // namespace

std::optional<double> GroupLimit(const std::string& file, const std::string& membership,
                                 const std::filesystem::path& mount) {
  std::optional<double> lowest;
  const auto look_in = [&](const std::filesystem::path& group) {
    const std::optional<double> limit = LimitIn(group / file);
    if (limit.has_value()) lowest = std::min(lowest.value_or(*limit), *limit);
  };
  std::istringstream lines(membership);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(kVersion2)) continue;
    std::filesystem::path group = mount;
    look_in(group);
    for (const std::filesystem::path& part : std::filesystem::path(line.substr(sizeof(kVersion2) - 1))) {
      look_in(group /= part);
    }
  }
  return lowest;
}

std::optional<double> GroupLimit(const std::string& file) {
  return GroupLimit(file, TextOf("/proc/self/cgroup"), "/sys/fs/cgroup");
}

}  // namespace spexd
