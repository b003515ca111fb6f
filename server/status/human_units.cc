#include "server/status/human_units.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace spexd {
namespace {

constexpr double kMinute = 60, kHour = 3600, kDay = 86400;

// Returns the value with one decimal below 100, otherwise without decimals.
std::string Rounded(double value, const char* unit) {
  return absl::StrFormat("%.*f %s", value < 99.95 ? 1 : 0, value, unit);
}

std::string Whole(double value, const char* unit, const char* end) {
  return absl::StrCat(static_cast<int64_t>(value), " ", unit, end);
}

}  // namespace

std::string HumanBytes(int64_t bytes) {
  if (bytes < 1000) return absl::StrCat(bytes, " B");
  double value = static_cast<double>(bytes) / 1000;
  const char* const units[] = {"kB", "MB", "GB", "TB"};
  size_t unit = 0;
  for (; value >= 999.5 && unit + 1 < std::size(units); ++unit) value /= 1000;
  return Rounded(value, units[unit]);
}

std::string HumanSeconds(double seconds) {
  seconds = std::max(seconds, 0.0);
  if (seconds < 0.00995) return absl::StrFormat("%.1f ms", 1000 * seconds);
  if (seconds < 0.9995) return absl::StrFormat("%.0f ms", 1000 * seconds);
  if (seconds < 2 * kMinute) return Rounded(seconds, "s");
  if (seconds < 2 * kHour) return Rounded(seconds / kMinute, "min");
  if (seconds < 2 * kDay) return Rounded(seconds / kHour, "h");
  return Rounded(seconds / kDay, "days");
}

std::string HumanAge(double seconds) {
  if (seconds < 1) return "just now";
  if (seconds < kMinute) return Whole(seconds, "s", " ago");
  if (seconds < kHour) return Whole(seconds / kMinute, "min", " ago");
  if (seconds < 2 * kDay) return Whole(seconds / kHour, "h", " ago");
  return Whole(seconds / kDay, "days", " ago");
}

std::string HumanCount(int64_t count) {
  if (count < 1000) return absl::StrCat(count);
  return absl::StrCat(HumanCount(count / 1000), ",", absl::Dec(count % 1000, absl::kZeroPad3));
}

}  // namespace spexd
