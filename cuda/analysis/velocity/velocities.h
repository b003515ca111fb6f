// Velocities of stars on a GPU: FitVelocities of core/analysis, with its scans and its fits there.
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

// Libraries stay prepared on the device as long as their owner keeps them (TemplateLibrary::prepared).
// Thread-safe.
class Velocities {
 public:
  explicit Velocities(AnalysisDevice* device) : device_(*device) {}

  // Does what FitVelocities does; ResourceExhausted and Unavailable name what the device lacks or did. Uses
  // `options.threads` threads where processors have a part in it. REQUIRES: at most kMaxFitArms arms.
  absl::StatusOr<std::vector<StarVelocity>> Fit(const std::vector<ArmOnDevice>& arms,
                                                const std::vector<std::vector<int>>& targets,
                                                const TemplateLibrary& library,
                                                const VelocityOptions& options);

 private:
  absl::StatusOr<std::shared_ptr<const PreparedLibrary>> Prepare(const std::vector<double>& wave,
                                                                 const TemplateLibrary& library,
                                                                 const VelocityOptions& options)
      ABSL_LOCKS_EXCLUDED(device_.mutex);
  // Gives the arm weights of its own, with 0 where options leave wavelengths out; `weights` keeps their
  // memory.
  absl::Status LeaveOut(const UsableSpectra& spectra, const VelocityOptions& options, SpectraArrays* arrays,
                        std::vector<DeviceMemory::Block>* weights)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(device_.mutex);

  AnalysisDevice& device_;
};

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_ANALYSIS_VELOCITY_VELOCITIES_H_
