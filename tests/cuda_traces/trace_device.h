// A device with an image on it.
#ifndef SPEXD_TESTS_CUDA_TRACES_TRACE_DEVICE_H_
#define SPEXD_TESTS_CUDA_TRACES_TRACE_DEVICE_H_

#include <memory>

#include "absl/status/statusor.h"
#include "core/model/image.h"
#include "cuda/runtime/memory/device_memory.h"
#include "cuda/runtime/memory/handles.h"
#include "cuda/runtime/memory/pinned_pool.h"
#include "cuda/traces/device_stages.h"

namespace spexd::testing {

// Makes device 0 current. False: there is none. Device or emulator: each program has its own definition.
bool FindTraceDevice();

// REQUIRES: FindTraceDevice.
class TraceDeviceUnderTest {
 public:
  TraceDeviceUnderTest();
  ~TraceDeviceUnderTest();
  void Load(const Image& image);

  cuda::TraceDevice device();
  const cuda::ImageOnDevice& image() const { return image_; }

 private:
  cuda::DeviceMemory memory_{cuda::DeviceName{0, "under test"}};
  std::shared_ptr<cuda::PinnedPool> pinned_ =
      std::make_shared<cuda::PinnedPool>(cuda::PinnedPool::CudaSource({0}), int64_t{1} << 24);
  cuda::Stream stream_;
  cuda::DeviceMemory::Block block_;
  cuda::ImageOnDevice image_ = {};
};

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_CUDA_TRACES_TRACE_DEVICE_H_
