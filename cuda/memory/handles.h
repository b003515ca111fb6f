// Owning handles of CUDA streams and events. The device must be current when one is made, but not when it is
// used or destroyed.
#ifndef SPEXD_CUDA_MEMORY_HANDLES_H_
#define SPEXD_CUDA_MEMORY_HANDLES_H_

#include <cuda_runtime_api.h>

#include <memory>
#include <type_traits>

namespace spexd::cuda {

struct StreamDeleter {
  void operator()(cudaStream_t stream) const { cudaStreamDestroy(stream); }
};
using Stream = std::unique_ptr<std::remove_pointer_t<cudaStream_t>, StreamDeleter>;

struct EventDeleter {
  void operator()(cudaEvent_t event) const { cudaEventDestroy(event); }
};
using Event = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, EventDeleter>;

// Makes a stream that does not synchronise with the default stream. Smaller priorities run first.
inline cudaError_t MakeStream(int priority, Stream* stream) {
  cudaStream_t made = nullptr;
  const cudaError_t error = cudaStreamCreateWithPriority(&made, cudaStreamNonBlocking, priority);
  if (error == cudaSuccess) stream->reset(made);
  return error;
}

// Waits for a stream on destruction, so that the stream's use of memory has ended before others get the
// memory, also after an error or an exception. Does nothing after Dismiss, which says that the stream was
// already waited for.
class IdleGuard {
 public:
  explicit IdleGuard(cudaStream_t stream) : stream_(stream) {}
  ~IdleGuard() {
    if (!dismissed_) cudaStreamSynchronize(stream_);
  }
  IdleGuard(const IdleGuard&) = delete;
  IdleGuard& operator=(const IdleGuard&) = delete;
  void Dismiss() { dismissed_ = true; }

 private:
  cudaStream_t const stream_;
  bool dismissed_ = false;
};

// Makes an event that records its time and is waited for without spinning.
inline cudaError_t MakeEvent(Event* event) {
  cudaEvent_t made = nullptr;
  const cudaError_t error = cudaEventCreateWithFlags(&made, cudaEventBlockingSync);
  if (error == cudaSuccess) event->reset(made);
  return error;
}

// Seconds between two events that have completed; 0 if unknown.
inline double SecondsBetween(const Event& from, const Event& to) {
  float milliseconds = 0;
  if (cudaEventElapsedTime(&milliseconds, from.get(), to.get()) != cudaSuccess) {
    cudaGetLastError();
    return 0;
  }
  return milliseconds * 1e-3;
}

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_MEMORY_HANDLES_H_
