// Velocities of stars on a GPU: FitVelocities of core/analysis with scans and fits on the device.
#ifndef SPEXD_CUDA_ANALYSIS_VELOCITY_VELOCITIES_H_
#define SPEXD_CUDA_ANALYSIS_VELOCITY_VELOCITIES_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "core/analysis/usable_spectra.h"
#include "core/analysis/velocity/velocity.h"
#include "cuda/analysis/analysis_device.h"
#include "cuda/analysis/frame_on_device.h"
#include "cuda/analysis/velocity/prepared_library.h"

namespace spexd::cuda {

// Fits velocities. A library stays prepared on the device as long as its owner keeps it
// (TemplateLibrary::prepared). Thread-safe.
class Velocities {
 public:
  explicit Velocities(AnalysisDevice* device) : device_(*device) {}

  // Does what FitVelocities does. ResourceExhausted and Unavailable name what the device lacks or what
  // failed. Uses `options.threads` threads for the processors' part. REQUIRES: at most kMaxFitArms arms.
  absl::StatusOr<std::vector<StarVelocity>> Fit(const std::vector<ArmOnDevice>& arms,
                                                const std::vector<std::vector<int>>& targets,
                                                const TemplateLibrary& library,
                                                const VelocityOptions& options);

 private:
  absl::StatusOr<std::shared_ptr<const PreparedLibrary>> Prepare(const std::vector<double>& wave,
                                                                 const TemplateLibrary& library,
                                                                 const VelocityOptions& options)
      ABSL_LOCKS_EXCLUDED(device_.mutex);
  // Gives the arm its own weights, which are 0 at wavelengths that the options leave out. `weights` owns
  // their memory.
  absl::Status LeaveOut(const UsableSpectra& spectra, const VelocityOptions& options, SpectraArrays* arrays,
                        std::vector<DeviceMemory::Block>* weights)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(device_.mutex);

  AnalysisDevice& device_;
};

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_ANALYSIS_VELOCITY_VELOCITIES_H_
