// Redshifts of emission lines on a device, from spectra that are there.
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

// Rows of targets, those of each target after those of the one before.
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

// Keeps the tables of the last few grids on the device, as frames follow each other that have the same.
// Thread-safe. The device must outlive it.
class LineFinder {
 public:
  explicit LineFinder(AnalysisDevice* device) : device_(*device) {}

  // Whether a block's shared memory holds a spectrum of so many bins.
  bool Fits(int64_t bins) const;

  // Does what FindLineRedshifts of core/analysis does; `seconds`: that the device took. REQUIRES: at most
  // kMaxLineArms arms, each of bins that fit; the device is current.
  absl::StatusOr<std::vector<LineRedshift>> Find(const std::vector<ArmOnDevice>& arms,
                                                 const TargetRows& targets, const LineOptions& options,
                                                 double* seconds);

  // The tables of a grid, made by processors unless they are there: by the first who asks for them, while
  // others of this grid wait and those of other grids do not. Errors as PlanStack's. Nobody needs the device
  // for it.
  absl::StatusOr<std::shared_ptr<LineGrid>> GridOf(const std::vector<double>& wave,
                                                   const LineOptions& options) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  // Arms as kernels take them, with the spectra that they see.
  struct Batch;
  // Appends the maxima of the batch's targets. REQUIRES: the device is current, its mutex held.
  absl::Status FindMaxima(const Batch& batch, std::vector<LineMaxima>* maxima, double* seconds);

  AnalysisDevice& device_;
  Mutex mutex_;
  std::list<std::shared_ptr<LineGrid>> grids_ ABSL_GUARDED_BY(mutex_);  // the latest first
};

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_ANALYSIS_LINES_LINE_FINDER_H_
