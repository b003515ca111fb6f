// Coadds of exposures on one grid whose sums stay on a device.
#ifndef SPEXD_CUDA_ANALYSIS_SUMS_EXPOSURE_SUMS_H_
#define SPEXD_CUDA_ANALYSIS_SUMS_EXPOSURE_SUMS_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "core/analysis/analyser/frame_sums.h"
#include "core/analysis/usable_spectra.h"
#include "cuda/analysis/analysis_device.h"
#include "cuda/analysis/frame_on_device.h"
#include "cuda/analysis/sums/sums.h"

namespace spexd::cuda {

// A frame that an analysis has, on the host and on the device.
struct AnalysedFrame {
  const UsableSpectra* spectra;
  FrameOnDevice* there;
};
using FindAnalysedFrame = std::function<AnalysedFrame(FrameAnalysis*)>;

// For one thread at a time; the device must outlive it. It takes 64 bytes for each bin of a target.
class CudaExposureSums : public ExposureSums {
 public:
  // `find`: tells what an analysis of this device has. Errors: InvalidArgument unless there are targets and
  // bins; the device's.
  static absl::StatusOr<std::unique_ptr<ExposureSums>> Make(AnalysisDevice* device, int64_t targets,
                                                            int64_t bins, FindAnalysedFrame find);

  absl::Status Add(FrameAnalysis* frame, const std::vector<int>& rows,
                   const std::vector<int>& targets) override;
  absl::StatusOr<Spectra> Read() override;
  double device_seconds() const override { return seconds_; }

 private:
  CudaExposureSums(AnalysisDevice* device, FindAnalysedFrame find)
      : device_(*device), find_(std::move(find)) {}
  absl::Status TakeMemory();
  absl::Status CheckRows(const UsableSpectra& spectra, const std::vector<int>& rows,
                         const std::vector<int>& targets) const;

  AnalysisDevice& device_;
  const FindAnalysedFrame find_;
  ExposureArrays sums_;  // in block_
  DeviceMemory::Block block_;
  Array<uint32_t, 2> masks_;  // [target, bin]: all of the exposures'
  double seconds_ = 0;
};

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_ANALYSIS_SUMS_EXPOSURE_SUMS_H_
