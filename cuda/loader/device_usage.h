// The load of devices, and the memory that all programs hold there. The values come from the libraries of
// NVIDIA's driver, which are loaded where they are installed and never linked.
#ifndef SPEXD_CUDA_LOADER_DEVICE_USAGE_H_
#define SPEXD_CUDA_LOADER_DEVICE_USAGE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace spexd {

// Values that the driver does not report, for example for a part of a device (MIG), are empty.
struct DeviceUsage {
  std::optional<double> busy;         // share of the last second or less in which it computed, 0 to 1
  std::optional<int64_t> used_bytes;  // memory, by all programs
};

// Thread-safe.
class DeviceMonitor {
 public:
  // Returns null if a library is not installed or finds no driver.
  static std::unique_ptr<DeviceMonitor> Load(const std::string& management = "libnvidia-ml.so.1",
                                             const std::string& driver = "libcuda.so.1");
  ~DeviceMonitor();
  DeviceMonitor(const DeviceMonitor&) = delete;
  DeviceMonitor& operator=(const DeviceMonitor&) = delete;

  DeviceUsage UsageOf(int index) const;  // `index`: CUDA index

 private:
  struct Functions;
  explicit DeviceMonitor(std::unique_ptr<const Functions> functions);

  const std::unique_ptr<const Functions> functions_;
};

}  // namespace spexd

#endif  // SPEXD_CUDA_LOADER_DEVICE_USAGE_H_
