// Which of a machine's GPUs an engine takes.
#ifndef SPEXD_CUDA_RUNTIME_DEVICE_CHOICE_H_
#define SPEXD_CUDA_RUNTIME_DEVICE_CHOICE_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace spexd::cuda {

struct FoundDevice {
  int index = 0;
  std::string name;
  int major = 0, minor = 0;  // compute capability
  int shared_bytes = 0;      // of shared memory that a block may take
};

// Compute capability: the first with matrix units for float64 and copies beside the arithmetic.
inline constexpr int kLeastMajor = 8;

// Those asked for; where none are, all that are new enough. FailedPrecondition: an index that is not there
// or comes twice (the message lists those that are), a device too old, or none new enough.
absl::StatusOr<std::vector<FoundDevice>> ChooseDevices(const std::vector<int>& asked,
                                                       const std::vector<FoundDevice>& found);

// What stages may take of shared memory so that they run on all of these, beside a little that they hold
// statically; at most `most`.
int CommonSharedBytes(const std::vector<FoundDevice>& devices, int most);

// "NVIDIA H200", "2 x NVIDIA H200", "NVIDIA A100, NVIDIA H200".
std::string DescribeDevices(const std::vector<std::string>& names);

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_RUNTIME_DEVICE_CHOICE_H_
