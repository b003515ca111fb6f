// Stages without arithmetic that replace the real ones. They check the contents of the memory that they are
// given, and write each bin's fibre into its values.
#ifndef SPEXD_TESTS_CUDA_RUNTIME_FAKE_PIPELINE_H_
#define SPEXD_TESTS_CUDA_RUNTIME_FAKE_PIPELINE_H_

#include <optional>

#include "core/base/threads/mutex.h"
#include "core/extract/stage.h"

namespace spexd::testing {

// State of the stages that tests set and read. Thread-safe.
class FakePipeline {
 public:
  static FakePipeline& Get();

  void Reset() ABSL_LOCKS_EXCLUDED(mutex_);
  // While the gate is closed, jobs wait in their first stage.
  void CloseGate(bool closed) ABSL_LOCKS_EXCLUDED(mutex_);
  void WaitUntilAtGate(int jobs) ABSL_LOCKS_EXCLUDED(mutex_);
  // Makes the next job lose the device in that stage.
  void LoseDeviceIn(Stage stage, int device) ABSL_LOCKS_EXCLUDED(mutex_);

  // Makes the next job find no memory while its stages are enqueued.
  void ThrowNext() ABSL_LOCKS_EXCLUDED(mutex_);

  int spots_made() const ABSL_LOCKS_EXCLUDED(mutex_);
  int located() const ABSL_LOCKS_EXCLUDED(mutex_);

  // ---- For the stages.
  void Located() ABSL_LOCKS_EXCLUDED(mutex_);
  void MadeSpots() ABSL_LOCKS_EXCLUDED(mutex_);
  void PassGate() ABSL_LOCKS_EXCLUDED(mutex_);
  bool Throwing() ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns the device to lose in that stage, once; -1: none.
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

// Returns the value that a job writes for a bin, from the fibre, the bin, and the image's first pixel.
inline double FakeFlux(int fibre, int bin, float first_pixel) {
  return 1000.0 * fibre + bin + static_cast<double>(first_pixel);
}
// The number of pixels with negative ivar that decoding an image reports.
inline constexpr uint32_t kFakeNegativeIvar = 37;

}  // namespace spexd::testing

#endif  // SPEXD_TESTS_CUDA_RUNTIME_FAKE_PIPELINE_H_
