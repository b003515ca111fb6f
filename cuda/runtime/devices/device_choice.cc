#include "cuda/runtime/devices/device_choice.h"

#include <algorithm>
#include <map>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"

namespace spexd::cuda {
namespace {

std::string Describe(const FoundDevice& device) {
  return absl::StrFormat("%d (%s, compute capability %d.%d)", device.index, device.name, device.major,
                         device.minor);
}

std::string List(const std::vector<FoundDevice>& devices) {
  if (devices.empty()) return "none";
  return absl::StrJoin(devices, ", ", [](std::string* text, const FoundDevice& device) {
    absl::StrAppend(text, Describe(device));
  });
}

absl::Status Refuse(const std::string& why) {
  return absl::FailedPreconditionError(absl::StrCat("CUDA: ", why));
}

}  // namespace

absl::StatusOr<std::vector<FoundDevice>> ChooseDevices(const std::vector<int>& asked,
                                                       const std::vector<FoundDevice>& found) {
  std::vector<FoundDevice> chosen;
  if (asked.empty()) {
    std::copy_if(found.begin(), found.end(), std::back_inserter(chosen),
                 [](const FoundDevice& device) { return device.major >= kMinMajor; });
    if (!chosen.empty()) return chosen;
    return Refuse(
        absl::StrFormat("no device of compute capability %d.0 or newer; found: %s", kMinMajor, List(found)));
  }
  for (const int index : asked) {
    const auto device =
        std::find_if(found.begin(), found.end(), [&](const FoundDevice& one) { return one.index == index; });
    if (device == found.end()) {
      return Refuse(absl::StrFormat("device %d: there is no such device; found: %s", index, List(found)));
    }
    if (std::count(asked.begin(), asked.end(), index) > 1) {
      return Refuse(absl::StrFormat("device %d: asked for twice", index));
    }
    if (device->major < kMinMajor) {
      return Refuse(absl::StrFormat("device %s: too old, the least is compute capability %d.0",
                                    Describe(*device), kMinMajor));
    }
    chosen.push_back(*device);
  }
  return chosen;
}

int CommonSharedBytes(const std::vector<FoundDevice>& devices, int most) {
  constexpr int kStatic = 4096;
  for (const FoundDevice& device : devices) most = std::min(most, device.shared_bytes - kStatic);
  return most;
}

std::string DescribeDevices(const std::vector<std::string>& names) {
  std::map<std::string, int> counts;
  for (const std::string& name : names) ++counts[name];
  return absl::StrJoin(counts, ", ", [](std::string* text, const auto& count) {
    if (count.second > 1) absl::StrAppend(text, count.second, " x ");
    absl::StrAppend(text, count.first);
  });
}

}  // namespace spexd::cuda
