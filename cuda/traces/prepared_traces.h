// The device data that all measurements of trace shifts with a PSF share.
#ifndef SPEXD_CUDA_TRACES_PREPARED_TRACES_H_
#define SPEXD_CUDA_TRACES_PREPARED_TRACES_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "absl/status/status.h"
#include "core/model/psf.h"
#include "cuda/memory/cuda_status.h"
#include "cuda/memory/pinned_pool.h"
#include "cuda/traces/trace_arrays.h"

namespace spexd::cuda {

// The device on which a measurement runs. Not owned. REQUIRES: the device is current.
struct TraceDevice {
  DeviceName name;
  PinnedPool* pinned;
  cudaStream_t stream;
  // For timing: called with the name of a kernel or group of kernels after it was enqueued.
  std::function<void(const char*)> enqueued = nullptr;
};

// The PSF's traces and the table of its spots' shapes, in a block of device memory: 26 MB for 500 fibres and
// 49 Gauss-Hermite terms. Any number of measurements on the device may use it at once.
class PreparedTraces {
 public:
  static int64_t Bytes(const Psf& psf);
  // Uses a block of Bytes(psf) bytes, 256-byte aligned, which remains the caller's.
  PreparedTraces(const Psf& psf, std::byte* block);
  // Fills the block, and waits until it is filled.
  absl::Status Fill(const TraceDevice& device, const Psf& psf) const;

  // Returns the sizes that depend on the PSF alone; the others are 0.
  const TraceShape& shape() const { return shape_; }
  const TracePsf& arrays() const { return arrays_; }
  // Returns u of each fibre.
  const std::vector<double>& positions() const { return positions_; }

 private:
  std::vector<double> positions_;
  TraceShape shape_;
  TracePsf arrays_ = {};
};

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_TRACES_PREPARED_TRACES_H_
