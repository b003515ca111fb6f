#include "cuda/loader/device_list.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "core/base/text.h"

namespace spexd {

absl::StatusOr<std::vector<int>> ParseDeviceList(const std::string& text) {
  std::vector<int> devices;
  for (const std::string& part : std::vector<std::string>(absl::StrSplit(text, ','))) {
    const bool digits = !part.empty() && std::all_of(part.begin(), part.end(),
                                                     [](unsigned char c) { return absl::ascii_isdigit(c); });
    int device = 0;
    if (!digits) {
      return absl::InvalidArgumentError(
          absl::StrFormat("--devices \"%s\": \"%s\" is no device; expected indices such as 0 or 0,2",
                          ForMessage(text), ForMessage(part)));
    }
    if (!absl::SimpleAtoi(part, &device) || device > kMaxDeviceIndex) {
      return absl::InvalidArgumentError(absl::StrFormat("--devices \"%s\": %s, must be 0 to %d",
                                                        ForMessage(text), ForMessage(part), kMaxDeviceIndex));
    }
    if (std::find(devices.begin(), devices.end(), device) != devices.end()) {
      return absl::InvalidArgumentError(
          absl::StrFormat("--devices \"%s\": %d is named twice", ForMessage(text), device));
    }
    devices.push_back(device);
  }
  return devices;
}

}  // namespace spexd
