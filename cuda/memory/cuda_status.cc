#include "cuda/memory/cuda_status.h"

#include <algorithm>
#include <array>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace spexd::cuda {
namespace {

// Sticky errors by number, because older toolkits do not name the newest errors.
constexpr std::array<int, 19> kSticky = {
    53,   // cudaErrorPriorLaunchFailure
    214,  // cudaErrorECCUncorrectable
    220,  // cudaErrorNvlinkUncorrectable
    226,  // cudaErrorContained
    700,  // cudaErrorIllegalAddress
    702,  // cudaErrorLaunchTimeout
    709,  // cudaErrorContextIsDestroyed
    710,  // cudaErrorAssert
    714,  // cudaErrorHardwareStackError
    715,  // cudaErrorIllegalInstruction
    716,  // cudaErrorMisalignedAddress
    717,  // cudaErrorInvalidAddressSpace
    718,  // cudaErrorInvalidPc
    719,  // cudaErrorLaunchFailure
    721,  // cudaErrorTensorMemoryLeak
    806,  // cudaErrorMpsRpcFailure
    810,  // cudaErrorMpsClientTerminated
    911,  // cudaErrorExternalDevice
    999,  // cudaErrorUnknown
};

std::string Version(int version) { return absl::StrFormat("%d.%d", version / 1000, version % 1000 / 10); }

}  // namespace

std::string Text(const DeviceName& device) {
  return absl::StrFormat("cuda device %d (%s)", device.index, device.name);
}

bool IsSticky(cudaError_t error) {
  return std::find(kSticky.begin(), kSticky.end(), static_cast<int>(error)) != kSticky.end();
}

absl::Status ToStatus(cudaError_t error, const DeviceName& device, absl::string_view doing) {
  if (error == cudaSuccess) return absl::OkStatus();
  const std::string text = absl::StrCat(Text(device), ": ", doing, ": ", cudaGetErrorString(error));
  if (IsSticky(error)) return absl::UnavailableError(text);
  if (error == cudaErrorMemoryAllocation) return absl::ResourceExhaustedError(text);
  return absl::InternalError(text);
}

absl::Status MayBeTriedAgain(const absl::Status& failure) {
  return absl::UnavailableError(
      absl::StrCat(failure.message(), "; the device takes no more jobs, this one may be tried again"));
}

absl::Status NoCuda(cudaError_t error, int driver_version) {
  const std::string needs =
      absl::StrCat("this build needs a driver for CUDA ", Version(CUDART_VERSION), " or newer");
  std::string why;
  switch (error) {
    case cudaErrorInsufficientDriver:
      why =
          driver_version == 0
              ? absl::StrCat("no NVIDIA driver is installed, or this container has no access to it; ", needs)
              : absl::StrCat("the NVIDIA driver is for CUDA ", Version(driver_version), "; ", needs);
      break;
    case cudaErrorNoDevice:
      why =
          "the driver sees no GPU; is one visible to this process (CUDA_VISIBLE_DEVICES, the container's "
          "devices)?";
      break;
    case cudaErrorSystemDriverMismatch:
    case cudaErrorCompatNotSupportedOnDevice:
      why = absl::StrCat(cudaGetErrorString(error), "; kernel module and libcuda are of different versions");
      break;
    default:
      why = cudaGetErrorString(error);
  }
  return absl::FailedPreconditionError(absl::StrCat("CUDA: ", why));
}

}  // namespace spexd::cuda
