// Principal components of residuals whose sums stay on a device.
#ifndef SPEXD_CUDA_ANALYSIS_SUMS_RESIDUAL_SUMS_H_
#define SPEXD_CUDA_ANALYSIS_SUMS_RESIDUAL_SUMS_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "core/analysis/analyser/frame_sums.h"
#include "cuda/analysis/analysis_device.h"
#include "cuda/analysis/sums/subspace.h"

namespace spexd::cuda {

// All in float64. For one thread at a time; the device must outlive it. It takes 8 bins^2 bytes there.
class CudaResidualSums : public ResidualSums {
 public:
  // Errors: InvalidArgument for bins that are too many for cuBLAS or none; the device's.
  static absl::StatusOr<std::unique_ptr<ResidualSums>> Make(AnalysisDevice* device, int64_t bins,
                                                            const PcaOptions& options);

  absl::StatusOr<int64_t> Add(const Array<double, 2>& residuals, const Array<double, 2>& ivar) override;
  absl::StatusOr<PrincipalComponents> Leading(int count) override;
  absl::StatusOr<PrincipalComponents> Solve(int count) override;
  double device_seconds() const override { return seconds_; }

 private:
  CudaResidualSums(AnalysisDevice* device, int64_t bins, const PcaOptions& options)
      : device_(*device), bins_(bins), options_(options), subspace_(device) {}
  absl::Status TakeMemory();
  absl::StatusOr<PcaSums> ReadSums();

  AnalysisDevice& device_;
  const int64_t bins_;
  const PcaOptions options_;
  DeviceMemory::Block block_;
  double *products_ = nullptr, *sums_ = nullptr;  // in block_: G [bin, bin], its lower triangle; [bin]
  double snapshots_ = 0;
  Subspace subspace_;
  double seconds_ = 0;
};

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_ANALYSIS_SUMS_RESIDUAL_SUMS_H_
