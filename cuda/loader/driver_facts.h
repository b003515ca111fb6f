// What NVIDIA's driver tells of itself and its devices, without the CUDA engine: from its own libraries,
// which are loaded where they are installed. Nothing is linked to them.
#ifndef SPEXD_CUDA_LOADER_DRIVER_FACTS_H_
#define SPEXD_CUDA_LOADER_DRIVER_FACTS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace spexd {

struct DriverDevice {
  std::string name;
  int64_t memory_bytes = 0;
  int major = 0, minor = 0;  // compute capability
  bool mig = false;          // a part of a device that is divided
};

struct DriverFacts {
  std::string version;                // "580.65.06"; "" if the management library does not tell
  int cuda_version = 0;               // newest CUDA that it runs, 13000 for 13.0
  std::vector<DriverDevice> devices;  // in the order in which CUDA counts them
};

// FailedPrecondition: the driver's library is not installed, is damaged, or cannot start; says which.
absl::StatusOr<DriverFacts> AskDriver(const std::string& management = "libnvidia-ml.so.1",
                                      const std::string& driver = "libcuda.so.1");

}  // namespace spexd

#endif  // SPEXD_CUDA_LOADER_DRIVER_FACTS_H_
