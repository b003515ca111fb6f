// The time that a stream takes between two points.
#ifndef SPEXD_CUDA_ANALYSIS_STREAM_TIMER_H_
#define SPEXD_CUDA_ANALYSIS_STREAM_TIMER_H_

#include "cuda/memory/handles.h"

namespace spexd::cuda {

// Measures the time between Start and Stop on the device. Reports 0 where no events can be made.
class StreamTimer {
 public:
  void Start(cudaStream_t stream) { Record(stream, &start_); }
  void Stop(cudaStream_t stream) { Record(stream, &stop_); }
  // REQUIRES: the caller has waited for the stream.
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
