// Redshifts of emission lines on a device, from spectra that are there.
#ifndef SPEXD_CUDA_ANALYSIS_LINES_LINE_FINDER_H_
#define SPEXD_CUDA_ANALYSIS_LINES_LINE_FINDER_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "core/analysis/lines/line_stack.h"
#include "cuda/analysis/analysis_device.h"
#include "cuda/analysis/frame_on_device.h"
#include "cuda/analysis/lines/line_tables.h"
#include "cuda/analysis/spectra_arrays.h"

namespace spexd::cuda {

// Keeps the tables of the latest wavelengths and options on the device, as frames follow each other that have
// the same. Thread-safe. The device must outlive it.
class LineFinder {
 public:
  explicit LineFinder(AnalysisDevice* device) : device_(*device) {}

  // Whether a block's shared memory holds a spectrum of so many bins.
  bool Fits(int64_t bins) const;

  // Does what FindLineRedshifts of core/analysis does; `seconds`: that the device took. REQUIRES: Fits.
  absl::StatusOr<std::vector<LineRedshift>> Find(const UsableSpectra& spectra, FrameOnDevice* frame,
                                                 const std::vector<int>& rows, const LineOptions& options,
                                                 double* seconds);

 private:
  // REQUIRES: the device is current, its mutex held; so for all that follows.
  absl::Status Prepare(const std::vector<double>& wave, const LineOptions& options);
  absl::StatusOr<std::vector<LineMaxima>> FindMaxima(const SpectraArrays& spectra,
                                                     const std::vector<int>& rows, double* seconds);

  AnalysisDevice& device_;
  std::vector<double> wave_;
  LineOptions options_;
  StackPlan plan_;
  LineStackArrays stack_;  // in `tables_`
  DeviceMemory::Block tables_;
};

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_ANALYSIS_LINES_LINE_FINDER_H_
