// How long a stream takes from one point to another.
#ifndef SPEXD_CUDA_ANALYSIS_STREAM_TIMER_H_
#define SPEXD_CUDA_ANALYSIS_STREAM_TIMER_H_

#include "cuda/memory/handles.h"

namespace spexd::cuda {

// Without events, where none can be made, it tells 0.
class StreamTimer {
 public:
  void Start(cudaStream_t stream) { Record(stream, &start_); }
  void Stop(cudaStream_t stream) { Record(stream, &stop_); }
  // REQUIRES: the stream was waited for.
  double Seconds() const { return start_ && stop_ ? SecondsBetween(start_, stop_) : 0; }

 private:
  static void Record(cudaStream_t stream, Event* event) {
    if (MakeEvent(event) == cudaSuccess && cudaEventRecord(event->get(), stream) == cudaSuccess) return;
    cudaGetLastError();
    event->reset();
  }

  Event start_, stop_;
};

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_ANALYSIS_STREAM_TIMER_H_
