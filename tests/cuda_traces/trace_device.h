// A device with an image on it.
#ifndef SPEXD_TESTS_CUDA_TRACES_TRACE_DEVICE_H_
#define SPEXD_TESTS_CUDA_TRACES_TRACE_DEVICE_H_

#include <memory>
#include <stop_token>

#include "absl/status/statusor.h"
#include "core/model/image.h"
#include "cuda/memory/device_memory.h"
#include "cuda/memory/handles.h"
#include "cuda/memory/pinned_pool.h"
#include "cuda/traces/measure.h"

namespace spexd::testing {

// Makes device 0 current; returns false if there is none. Each program defines it, for a device or for the
// emulator.
bool FindTraceDevice();

// REQUIRES: FindTraceDevice.
class TraceDeviceUnderTest {
 public:
  TraceDeviceUnderTest();
  ~TraceDeviceUnderTest();
  void Load(const Image& image);

  // Prepares the PSF's traces, in a block that stays until the next call.
  absl::StatusOr<cuda::PreparedTraces> Prepare(const Psf& psf);
  // Measures on `device`, which must be this one, in the image that was loaded.
  absl::StatusOr<TraceShifts> Measure(const cuda::TraceDevice& device, const Psf& psf,
                                      const cuda::PreparedTraces& prepared,
                                      const traces::PreparedReference* reference,
                                      const TraceShiftOptions& options, std::stop_token stop = {});

  cuda::TraceDevice device();
  const cuda::ImageOnDevice& image() const { return image_; }

 private:
  cuda::DeviceMemory memory_{cuda::DeviceName{0, "under test"}};
  std::shared_ptr<cuda::PinnedPool> pinned_ =
      std::make_shared<cuda::PinnedPool>(cuda::PinnedPool::CudaSource({0}), int64_t{1} << 24);
  cuda::Stream stream_;
  cuda::DeviceMemory::Block block_, prepared_;
  cuda::ImageOnDevice image_ = {};
};

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_CUDA_TRACES_TRACE_DEVICE_H_
