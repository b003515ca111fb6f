// Facts from NVIDIA's driver about itself and its devices, without the CUDA engine. The values come from
// the driver's own libraries, which are loaded where they are installed and never linked.
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
  bool mig = false;          // whether it is a part of a divided device (MIG)
};

struct DriverFacts {
  std::string version;                // "580.65.06"; "" if the management library does not report it
  int cuda_version = 0;               // newest CUDA version that it supports, 13000 for 13.0
  std::vector<DriverDevice> devices;  // in CUDA's order
};

// Returns FailedPrecondition if the driver's library is not installed, is damaged, or cannot start; the
// message says which.
absl::StatusOr<DriverFacts> AskDriver(const std::string& management = "libnvidia-ml.so.1",
                                      const std::string& driver = "libcuda.so.1");

}  // namespace spexd

#endif  // SPEXD_CUDA_LOADER_DRIVER_FACTS_H_
