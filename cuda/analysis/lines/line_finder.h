// Redshifts of emission lines on a device, from spectra in its memory.
#ifndef SPEXD_CUDA_ANALYSIS_LINES_LINE_FINDER_H_
#define SPEXD_CUDA_ANALYSIS_LINES_LINE_FINDER_H_

#include <cstdint>
#include <list>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "core/analysis/lines/line_stack.h"
#include "core/base/threads/mutex.h"
#include "cuda/analysis/analysis_device.h"
#include "cuda/analysis/frame_on_device.h"
#include "cuda/analysis/lines/line_grid.h"

namespace spexd::cuda {

// Rows of targets, target after target.
struct TargetRows {
  std::vector<int32_t> rows, first = {0};  // first: [target + 1]

  int64_t targets() const { return static_cast<int64_t>(first.size()) - 1; }
  absl::Span<const int32_t> Of(int64_t target) const {
    const auto t = static_cast<size_t>(target);
    return absl::MakeConstSpan(rows).subspan(static_cast<size_t>(first[t]),
                                             static_cast<size_t>(first[t + 1] - first[t]));
  }
  void Add(absl::Span<const int32_t> of_target) {
    rows.insert(rows.end(), of_target.begin(), of_target.end());
    first.push_back(static_cast<int32_t>(rows.size()));
  }
};

// Finds redshifts of lines. Keeps the tables of the last few grids on the device, because consecutive frames
// usually share their grid. Thread-safe. The device must outlive it.
class LineFinder {
 public:
  explicit LineFinder(AnalysisDevice* device) : device_(*device) {}

  // Returns whether a block's shared memory holds a spectrum of `bins` bins.
  bool Fits(int64_t bins) const;

  // Does what FindLineRedshifts of core/analysis does. `seconds`: time that the device took. REQUIRES: at
  // most kMaxLineArms arms, the bins of each of which fit (Fits); the device is current.
  absl::StatusOr<std::vector<LineRedshift>> Find(const std::vector<ArmOnDevice>& arms,
                                                 const TargetRows& targets, const LineOptions& options,
                                                 double* seconds);

  // Returns the tables of a grid. The first caller makes them on processors; callers for the same grid wait,
  // those for other grids do not. Errors as PlanStack's. Does not use the device.
  absl::StatusOr<std::shared_ptr<LineGrid>> GridOf(const std::vector<double>& wave,
                                                   const LineOptions& options) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Arms as the kernels take them, with their spectra.
  struct Batch;
  // Appends the maxima of the batch's targets. REQUIRES: the device is current, its mutex held.
  absl::Status FindMaxima(const Batch& batch, std::vector<LineMaxima>* maxima, double* seconds);

  AnalysisDevice& device_;
  Mutex mutex_;
  std::list<std::shared_ptr<LineGrid>> grids_ ABSL_GUARDED_BY(mutex_);  // most recent first
};

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_ANALYSIS_LINES_LINE_FINDER_H_
