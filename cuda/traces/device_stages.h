// The stages of a measurement of trace shifts on a device.
#ifndef SPEXD_CUDA_TRACES_DEVICE_STAGES_H_
#define SPEXD_CUDA_TRACES_DEVICE_STAGES_H_

#include <memory>
#include <stop_token>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/model/psf.h"
#include "core/traces/stages.h"
#include "cuda/memory/cuda_status.h"
#include "cuda/memory/pinned_pool.h"
#include "cuda/traces/prepared_traces.h"
#include "cuda/traces/trace_arrays.h"

namespace spexd::cuda {

// An image in a device's memory, after the mask rule: float32 [row, column], in electrons and 1 /
// electrons^2; 0 where unusable. Not owned.
struct ImageOnDevice {
  const float *pixels, *ivar;
  int rows, columns;
};

// Enqueues kernels on the stream, and waits for it where the host needs a result. The destructor waits for
// the stream. The PSF, `prepared`, the reference, the options and `work` must outlive it.
class DeviceStages : public traces::Stages {
 public:
  // Returns the bytes of `work`. Uses only the shape of `prepared`.
  static int64_t WorkBytes(const PreparedTraces& prepared, const Psf& psf, const TraceShiftOptions& options);
  // Returns InvalidArgument if a bundle has more fibres than a block has threads, ResourceExhausted if
  // page-locked memory is short. `reference`: the one that the stages are called with, or null.
  static absl::StatusOr<std::unique_ptr<DeviceStages>> Make(const TraceDevice& device,
                                                            const ImageOnDevice& image, const Psf& psf,
                                                            const PreparedTraces& prepared, std::byte* work,
                                                            const traces::PreparedReference* reference,
                                                            const TraceShiftOptions& options,
                                                            std::stop_token stop);
  ~DeviceStages() override;

  absl::Status SetTraces(const ShiftSeries& x, const ShiftSeries& y) override;
  absl::StatusOr<traces::CoarseShift> FindCoarseShift(int stride) override;
  absl::StatusOr<SeriesFit> FitRows(double profile_error, int stride, const ShiftSeries& current) override;
  absl::Status FindCommonLight() override;
  absl::StatusOr<SeriesFit> FitBetweenFibres(const ShiftSeries& current) override;
  absl::StatusOr<double> ScanShift(const traces::PreparedReference& reference) override;
  absl::StatusOr<traces::LineSeriesFit> FitLines(const traces::PreparedReference& reference,
                                                 const ShiftSeries& trial) override;
  absl::Status FindBesideLines() override;

 private:
  // Page-locked copies of arrays on the device.
  struct Staging {
    double *wave, *normal, *spectrum;
    traces::CoarseProfile* coarse;
    int *first_row, *end_row;
    SeriesState* series;
  };
  struct LineStaging {
    double *reference_wave, *reference_light, *line, *wave, *light, *score;
    int* seen;
  };
  DeviceStages(const TraceDevice& device, const Psf& psf, const PreparedTraces& prepared,
               const TraceShiftOptions& options, std::stop_token stop);
  absl::Status Start(const ImageOnDevice& image, std::byte* work, const traces::PreparedReference* reference);
  absl::Status StartLines(const traces::PreparedReference& reference, std::byte* work);
  // Checks the error of a CUDA call. `name`: for `enqueued` and for messages.
  absl::Status Enqueue(const char* name, cudaError_t error);
  absl::Status Wait(const char* name);
  absl::StatusOr<SeriesFit> FitMeasured(int64_t count, const std::array<int, 2>& degrees,
                                        const ShiftSeries& current, SeriesTerms which);
  // Returns the fibre with rows that is nearest to the middle one. REQUIRES: a wait since the traces were
  // set.
  int MiddleFibre() const;

  const TraceDevice device_;
  const Psf& psf_;
  const TraceShiftOptions& options_;
  const std::stop_token stop_;
  const PreparedTraces& prepared_;
  const std::vector<double> wave_;
  PinnedBuffer pinned_, line_pinned_;
  TraceArrays arrays_;
  LineArrays lines_;
  Staging staging_ = {};
  LineStaging line_staging_ = {};
  bool knows_lines_ = false;  // whether the effect of lines on profiles is known
};

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_TRACES_DEVICE_STAGES_H_
