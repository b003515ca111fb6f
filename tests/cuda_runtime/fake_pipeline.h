// Stages without arithmetic, in the place of the real ones: they check that the memory they are given holds
// what it should, and tell each bin its fibre.
#ifndef SPEXD_TESTS_CUDA_RUNTIME_FAKE_PIPELINE_H_
#define SPEXD_TESTS_CUDA_RUNTIME_FAKE_PIPELINE_H_

#include <optional>

#include "core/base/threads/mutex.h"
#include "core/extract/stage.h"

namespace spexd::testing {

// State of the stages that tests set and see. Thread-safe.
class FakePipeline {
 public:
  static FakePipeline& Get();

  void Reset() ABSL_LOCKS_EXCLUDED(mutex_);
  // Jobs wait in their first stage while it is closed.
  void CloseGate(bool closed) ABSL_LOCKS_EXCLUDED(mutex_);
  void WaitUntilAtGate(int jobs) ABSL_LOCKS_EXCLUDED(mutex_);
  // The device is lost in that stage of the next job.
  void LoseDeviceIn(Stage stage, int device) ABSL_LOCKS_EXCLUDED(mutex_);

  // The next job finds no memory while its stages are enqueued.
  void ThrowNext() ABSL_LOCKS_EXCLUDED(mutex_);

  int spots_made() const ABSL_LOCKS_EXCLUDED(mutex_);
  int located() const ABSL_LOCKS_EXCLUDED(mutex_);

  // ---- For the stages.
  void Located() ABSL_LOCKS_EXCLUDED(mutex_);
  void MadeSpots() ABSL_LOCKS_EXCLUDED(mutex_);
  void PassGate() ABSL_LOCKS_EXCLUDED(mutex_);
  bool Throwing() ABSL_LOCKS_EXCLUDED(mutex_);
  // The device to lose in that stage, once; -1: none.
  int Losing(Stage stage) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  mutable Mutex mutex_;
  CondVar changed_;
  bool closed_ ABSL_GUARDED_BY(mutex_) = false;
  int at_gate_ ABSL_GUARDED_BY(mutex_) = 0;
  int located_ ABSL_GUARDED_BY(mutex_) = 0;
  int spots_ ABSL_GUARDED_BY(mutex_) = 0;
  bool throwing_ ABSL_GUARDED_BY(mutex_) = false;
  std::optional<Stage> losing_stage_ ABSL_GUARDED_BY(mutex_);
  int losing_device_ ABSL_GUARDED_BY(mutex_) = -1;
};

// The values that a job writes for a bin: the fibre, the bin, and the image's first pixel.
inline double FakeFlux(int fibre, int bin, float first_pixel) {
  return 1000.0 * fibre + bin + static_cast<double>(first_pixel);
}
// Pixels of negative ivar that decoding an image finds.
inline constexpr uint32_t kFakeNegativeIvar = 37;

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_CUDA_RUNTIME_FAKE_PIPELINE_H_
