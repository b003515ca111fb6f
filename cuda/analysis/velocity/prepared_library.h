// A library of templates in a device's memory, ready for frames on one grid.
#ifndef SPEXD_CUDA_ANALYSIS_VELOCITY_PREPARED_LIBRARY_H_
#define SPEXD_CUDA_ANALYSIS_VELOCITY_PREPARED_LIBRARY_H_

#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "core/analysis/velocity/template_library.h"
#include "core/analysis/velocity/velocity.h"
#include "core/analysis/velocity/velocity_fit.h"
#include "cuda/analysis/analysis_device.h"
#include "cuda/analysis/velocity/fit.h"

namespace spexd::cuda {

// A library prepared for a frame's grid and options; immutable. Its arrays in device memory: `flux`
// [template, sample], `coefficients` as in FitArgs, `log_wave` [bin], `polynomials` T_0 .. T_2degree [term,
// bin], `velocities` of the scan, `axes`.
class PreparedLibrary : public TemplatePreparation {
 public:
  // Returns InvalidArgument as BinnedTemplates::Make; ResourceExhausted if no block of the device can hold
  // even a part of the library. REQUIRES: the device is current.
  static absl::StatusOr<std::shared_ptr<const PreparedLibrary>> Make(AnalysisDevice* device,
                                                                     const std::vector<double>& wave,
                                                                     const TemplateLibrary& library,
                                                                     const VelocityOptions& options);

  // Returns whether Make would return an equal library for these arguments.
  bool Serves(const std::vector<double>& wave, const TemplateLibrary& library,
              const VelocityOptions& options) const;

  struct Arrays {
    double *flux, *log_wave, *polynomials, *velocities, *axes;
    float* coefficients;
  };
  const Arrays& arrays() const { return arrays_; }
  const TemplateLibrary& library() const { return library_; }
  const std::vector<double>& wave() const { return wave_; }
  const std::vector<double>& scanned() const { return scanned_; }  // velocities
  const Array<double, 2>& polynomials() const { return polynomials_; }
  const FitRanges& ranges() const { return ranges_; }
  const FitPlan& plan() const { return plan_; }
  int filter_half() const { return filter_half_; }  // half length of the smoothing filter, in samples
  TemplateAxes axes_on_device() const;

 private:
  PreparedLibrary() = default;
  int64_t LayOut(std::byte* block);
  absl::Status Upload(const AnalysisDevice& device, const BinnedTemplates& templates);

  TemplateLibrary library_;
  std::vector<double> wave_, scanned_;
  VelocityOptions options_;
  Array<double, 2> polynomials_;
  FitRanges ranges_;
  FitPlan plan_;
  int filter_half_ = 0;
  DeviceMemory::Block block_;
  Arrays arrays_;
};

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_ANALYSIS_VELOCITY_PREPARED_LIBRARY_H_
