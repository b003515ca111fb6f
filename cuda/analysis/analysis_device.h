// A device that makes products, with its stream, memory and matrix products.
#ifndef SPEXD_CUDA_ANALYSIS_ANALYSIS_DEVICE_H_
#define SPEXD_CUDA_ANALYSIS_ANALYSIS_DEVICE_H_

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "core/base/threads/mutex.h"
#include "cuda/analysis/gemm.h"
#include "cuda/memory/cuda_status.h"
#include "cuda/memory/device_memory.h"
#include "cuda/memory/handles.h"
#include "cuda/memory/pinned_pool.h"

namespace spexd::cuda {

// A device that makes one product at a time, because each fills the device. A caller that takes the device's
// memory or uses its stream holds `mutex`, has the device current (OnDevice), and waits for the stream before
// it returns memory (IdleGuard). Work that processors do before and after needs no `mutex`.
struct AnalysisDevice {
  AnalysisDevice(DeviceName device, const DeviceMemory::Limits& limits)
      : name(device), memory(std::move(device), limits) {}
  // `memory_bytes`: see DeviceMemory::Limits. Returns FailedPrecondition if there is no driver, no such
  // device, the device is too old, or cuBLAS is missing.
  static absl::StatusOr<std::unique_ptr<AnalysisDevice>> Make(int device, int64_t memory_bytes);

  const DeviceName name;
  int shared_bytes = 0;  // shared memory that a block may take
  DeviceMemory memory;
  std::shared_ptr<PinnedPool> pinned;  // host memory for copies to and from the device
  Mutex mutex;
  Stream stream;
  std::unique_ptr<Gemm> gemm;
};

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_ANALYSIS_ANALYSIS_DEVICE_H_
