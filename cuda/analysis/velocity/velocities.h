// Velocities of stars on a GPU: FitVelocities of core/analysis, with its scan and its fits there.
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
  // `options.threads` threads where processors have a part in it.
  absl::StatusOr<std::vector<StarVelocity>> Fit(const UsableSpectra& spectra, FrameOnDevice* frame,
                                                const std::vector<int>& rows, const TemplateLibrary& library,
                                                const VelocityOptions& options);

 private:
  absl::StatusOr<std::shared_ptr<const PreparedLibrary>> Prepare(const std::vector<double>& wave,
                                                                 const TemplateLibrary& library,
                                                                 const VelocityOptions& options)
      ABSL_LOCKS_EXCLUDED(device_.mutex);

  AnalysisDevice& device_;
};

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_ANALYSIS_VELOCITY_VELOCITIES_H_
