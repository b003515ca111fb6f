#include "cuda/analysis/analysis_device.h"

#include "core/base/status_macros.h"
#include "cuda/memory/on_device.h"
#include "cuda/runtime/devices/device_choice.h"
#include "cuda/runtime/devices/find_devices.h"

namespace spexd::cuda {

absl::StatusOr<std::unique_ptr<AnalysisDevice>> AnalysisDevice::Make(int device, int64_t memory_bytes) {
  SPEXD_ASSIGN_OR_RETURN(const std::vector<FoundDevice> found, FindDevices({device}));
  SPEXD_ASSIGN_OR_RETURN(const std::vector<FoundDevice> chosen, ChooseDevices({device}, found));
  // Enough for the blocks of a dozen frames at once. If more are idle, all are freed, which waits for the
  // extractions.
  constexpr int kMaxIdleBlocks = 64;
  auto made =
      std::make_unique<AnalysisDevice>(DeviceName{chosen[0].index, chosen[0].name},
                                       DeviceMemory::Limits{.bytes = memory_bytes, .idle = kMaxIdleBlocks});
  // Enough for the results of ten frames of 500 fibres at once. Freeing page-locked memory may wait for all
  // work of the device.
  constexpr int64_t kMaxIdlePinnedBytes = int64_t{512} << 20;
  made->pinned = std::make_shared<PinnedPool>(PinnedPool::CudaSource({chosen[0].index}), kMaxIdlePinnedBytes);
  made->shared_bytes = chosen[0].shared_bytes;
  const OnDevice current(device);
  SPEXD_CUDA_RETURN_IF_ERROR(current.error(), made->name, "making it current");
  // The stream of all products of the device. Its kernels are short, and many wait for the previous one.
  // Behind the extractions' kernels they would limit the frames per second, so the stream has the highest
  // priority.
  int least = 0, greatest = 0;
  SPEXD_CUDA_RETURN_IF_ERROR(cudaDeviceGetStreamPriorityRange(&least, &greatest), made->name, "starting");
  SPEXD_CUDA_RETURN_IF_ERROR(MakeStream(greatest, &made->stream), made->name, "making a stream");
  SPEXD_ASSIGN_OR_RETURN(made->gemm, MakeGemm(made->stream.get()));
  return made;
}

}  // namespace spexd::cuda
