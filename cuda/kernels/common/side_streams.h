// Streams beside a job's own, for kernels that need not wait for each other. Each belongs to one job at a
// time, and is idle from each join to the next fork.
#ifndef SPEXD_CUDA_KERNELS_COMMON_SIDE_STREAMS_H_
#define SPEXD_CUDA_KERNELS_COMMON_SIDE_STREAMS_H_

#include <cuda_runtime_api.h>

#include <array>

#include "cuda/kernels/common/first_error.h"

namespace spexd::cuda {

// The streams and events are not owned.
struct SideStreams {
  static constexpr int kCount = 4;
  std::array<cudaStream_t, kCount> streams{};
  std::array<cudaEvent_t, kCount> done{};
  cudaEvent_t begun = nullptr;

  // Makes later work on the side streams wait for all work that `stream` has so far.
  [[nodiscard]] cudaError_t Fork(cudaStream_t stream) const {
    cudaError_t error = cudaEventRecord(begun, stream);
    for (cudaStream_t side : streams) error = FirstError({error, cudaStreamWaitEvent(side, begun, 0)});
    return error;
  }
  // Makes later work on side stream `second` wait for all work that `first` has so far.
  [[nodiscard]] cudaError_t Order(int first, int second) const {
    return FirstError(
        {cudaEventRecord(done[first], streams[first]), cudaStreamWaitEvent(streams[second], done[first], 0)});
  }
  // Makes later work on `stream` wait for the side streams. Call it also if something in between failed.
  [[nodiscard]] cudaError_t Join(cudaStream_t stream) const {
    cudaError_t error = cudaSuccess;
    for (int i = 0; i < kCount; ++i) {
      error =
          FirstError({error, cudaEventRecord(done[i], streams[i]), cudaStreamWaitEvent(stream, done[i], 0)});
    }
    return error;
  }
};

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_KERNELS_COMMON_SIDE_STREAMS_H_
