// The tables of emission lines of one grid, on the host and on a device.
#ifndef SPEXD_CUDA_ANALYSIS_LINES_LINE_GRID_H_
#define SPEXD_CUDA_ANALYSIS_LINES_LINE_GRID_H_

#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/analysis/lines/line_stack.h"
#include "core/base/threads/mutex.h"
#include "cuda/analysis/analysis_device.h"
#include "cuda/analysis/lines/line_tables.h"

namespace spexd::cuda {

class LineGrid {
 public:
  LineGrid(const std::vector<double>& wave, const LineOptions& options) : wave_(wave), options_(options) {
    options_.stop = {};
  }

  bool Serves(const std::vector<double>& wave, const LineOptions& options) const;

  // Plans the tables on the host, once; concurrent callers wait. Errors as PlanStack's; after an error the
  // next call plans again.
  absl::Status Plan() ABSL_LOCKS_EXCLUDED(mutex_);
  const StackPlan& plan() const { return plan_; }  // REQUIRES: Plan was OK

  const LineStack& stack() const { return stack_; }  // REQUIRES: Plan was OK

  // Returns the arm with its tables on the device, which the first call copies there. REQUIRES: Plan was OK,
  // the device is current, its mutex held.
  absl::StatusOr<LineArm> On(AnalysisDevice* device);

 private:
  const std::vector<double> wave_;
  LineOptions options_;
  Mutex mutex_;
  bool planned_ ABSL_GUARDED_BY(mutex_) = false;
  StackPlan plan_;                    // does not change after Plan
  std::optional<LineTables> tables_;  // empty once they are on the device
  LineStack stack_;                   // does not change after Plan
  LineArm arm_;                       // its tables are in `block_`
  DeviceMemory::Block block_;
};

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_ANALYSIS_LINES_LINE_GRID_H_
