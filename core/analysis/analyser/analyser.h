// Who makes the products of spectra: processors, or a device that has the spectra in its memory.
#ifndef SPEXD_CORE_ANALYSIS_ANALYSER_ANALYSER_H_
#define SPEXD_CORE_ANALYSIS_ANALYSER_ANALYSER_H_

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/analysis/lines/emission_lines.h"
#include "core/analysis/sky/sky.h"
#include "core/analysis/usable_spectra.h"
#include "core/analysis/velocity/template_library.h"
#include "core/analysis/velocity/velocity.h"
#include "core/extract/device_spectra.h"

namespace spexd {

// One frame's spectra and what is made of them, one product after the other. This class makes all products by
// processors; those derived from it make some on a device. For one thread at a time.
class FrameAnalysis {
 public:
  // `spectra` are flat-fielded; the frame whose resolution they name must outlive this.
  explicit FrameAnalysis(UsableSpectra spectra) : spectra_(std::move(spectra)) {}
  virtual ~FrameAnalysis() = default;
  FrameAnalysis(const FrameAnalysis&) = delete;
  FrameAnalysis& operator=(const FrameAnalysis&) = delete;

  // Each does what the function of its name does. After FitSky, the spectra are those without the sky.
  virtual absl::StatusOr<Sky> FitSky(const std::vector<int>& sky_fibres, const SkyOptions& options);
  virtual absl::StatusOr<std::vector<LineRedshift>> FindLineRedshifts(const std::vector<int>& rows,
                                                                      const LineOptions& options);
  virtual absl::StatusOr<std::vector<StarVelocity>> FitVelocities(const std::vector<int>& rows,
                                                                  const TemplateLibrary& library,
                                                                  const VelocityOptions& options);

  // Goes on with the spectra of a sky made before. InvalidArgument if it is of another shape.
  virtual absl::Status TakeSky(const Sky& sky);

  const UsableSpectra& spectra() const { return spectra_; }

  // Seconds of a device from the first kernel of the latest product to its last; 0 if processors made it.
  virtual double device_seconds() const { return 0; }
  // Whether a device made the latest product.
  virtual bool by_device() const { return false; }

 private:
  UsableSpectra spectra_;
};

// Spectra of targets in several arms, and what is made of all arms and exposures together. This class makes
// all by processors; those derived from it make some on a device. For one thread at a time.
class JointAnalysis {
 public:
  // The arrays whose resolutions the arms name must outlive this.
  explicit JointAnalysis(std::vector<UsableSpectra> arms) : arms_(std::move(arms)) {}
  virtual ~JointAnalysis() = default;
  JointAnalysis(const JointAnalysis&) = delete;
  JointAnalysis& operator=(const JointAnalysis&) = delete;

  // Each does what the function of its name does.
  virtual absl::StatusOr<std::vector<LineRedshift>> FindLineRedshifts(
      const std::vector<std::vector<int>>& targets, const LineOptions& options);
  virtual absl::StatusOr<std::vector<StarVelocity>> FitVelocities(
      const std::vector<std::vector<int>>& targets, const TemplateLibrary& library,
      const VelocityOptions& options);

  const std::vector<UsableSpectra>& arms() const { return arms_; }

 private:
  const std::vector<UsableSpectra> arms_;
};

// Begins analyses, of several frames at once if asked. Thread-safe; must outlive its analyses.
class Analyser {
 public:
  virtual ~Analyser() = default;
  // `resident`: null, or the frame as its extraction left it on a device, before the fiberflat; it must
  // outlive the analysis, and is not changed. Errors are a device's: ResourceExhausted if its memory is
  // short, Unavailable if it failed.
  virtual absl::StatusOr<std::unique_ptr<FrameAnalysis>> Begin(UsableSpectra spectra,
                                                               const DeviceSpectra* resident) = 0;
  // The same of arms, whose spectra are on the host.
  virtual std::unique_ptr<JointAnalysis> BeginJoint(std::vector<UsableSpectra> arms);
};

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_ANALYSER_ANALYSER_H_
