#include "core/analysis/analyser/analyser.h"

#include "absl/strings/str_format.h"
#include "core/base/status_macros.h"

namespace spexd {

absl::StatusOr<Sky> FrameAnalysis::FitSky(const std::vector<int>& sky_fibres, const SkyOptions& options) {
  SPEXD_ASSIGN_OR_RETURN(Sky sky, spexd::FitSky(spectra_, sky_fibres, options));
  SPEXD_RETURN_IF_ERROR(TakeSky(sky));
  return sky;
}

absl::StatusOr<std::vector<LineRedshift>> FrameAnalysis::FindLineRedshifts(const std::vector<int>& rows,
                                                                           const LineOptions& options) {
  return spexd::FindLineRedshifts(spectra_, rows, options);
}

absl::StatusOr<std::vector<StarVelocity>> FrameAnalysis::FitVelocities(const std::vector<int>& rows,
                                                                       const TemplateLibrary& library,
                                                                       const VelocityOptions& options) {
  return spexd::FitVelocities(spectra_, rows, library, options);
}

absl::StatusOr<std::vector<LineRedshift>> JointAnalysis::FindLineRedshifts(
    const std::vector<std::vector<int>>& targets, const LineOptions& options) {
  return spexd::FindLineRedshifts(arms_, targets, options);
}

absl::StatusOr<std::vector<StarVelocity>> JointAnalysis::FitVelocities(
    const std::vector<std::vector<int>>& targets, const TemplateLibrary& library,
    const VelocityOptions& options) {
  return spexd::FitVelocities(arms_, targets, library, options);
}

std::unique_ptr<JointAnalysis> Analyser::BeginJoint(std::vector<UsableSpectra> arms) {
  return std::make_unique<JointAnalysis>(std::move(arms));
}

absl::Status FrameAnalysis::TakeSky(const Sky& sky) {
  if (sky.flux.shape() != spectra_.flux.shape()) {
    return absl::InvalidArgumentError(
        absl::StrFormat("sky: it is of %d fibres x %d bins, the frame has %d x %d", sky.flux.shape(0),
                        sky.flux.shape(1), spectra_.fibres(), spectra_.bins()));
  }
  spectra_.flux.AssignFrom(sky.flux.shape(), sky.flux.data());
  spectra_.ivar.AssignFrom(sky.ivar.shape(), sky.ivar.data());
  return absl::OkStatus();
}

}  // namespace spexd
