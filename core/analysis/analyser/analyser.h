// The makers of products of spectra: CPUs, or a device that has the spectra in its memory.
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

// The spectra of one frame and the products made of them, one after the other. This class makes all products
// on CPUs; derived classes make some on a device. Not thread-safe.
class FrameAnalysis {
 public:
  // `spectra` are flat-fielded. The frame whose resolution they refer to must outlive this object.
  explicit FrameAnalysis(UsableSpectra spectra) : spectra_(std::move(spectra)) {}
  virtual ~FrameAnalysis() = default;
  FrameAnalysis(const FrameAnalysis&) = delete;
  FrameAnalysis& operator=(const FrameAnalysis&) = delete;

  // Products of the functions with the same names. After FitSky, the spectra are those without the sky.
  virtual absl::StatusOr<Sky> FitSky(const std::vector<int>& sky_fibres, const SkyOptions& options);
  virtual absl::StatusOr<std::vector<LineRedshift>> FindLineRedshifts(const std::vector<int>& rows,
                                                                      const LineOptions& options);
  virtual absl::StatusOr<std::vector<StarVelocity>> FitVelocities(const std::vector<int>& rows,
                                                                  const TemplateLibrary& library,
                                                                  const VelocityOptions& options);

  // Continues with a sky that was made before: the spectra become those without it. InvalidArgument if it has
  // another shape.
  virtual absl::Status TakeSky(const Sky& sky);

  const UsableSpectra& spectra() const { return spectra_; }

  // Seconds that the device took for the latest product, from its first kernel to its last; 0 if CPUs made
  // it.
  virtual double device_seconds() const { return 0; }
  // Whether a device made the latest product.
  virtual bool by_device() const { return false; }

 private:
  UsableSpectra spectra_;
};

// The spectra of targets in several arms, and the products made of all arms and exposures together. This
// class makes all products on CPUs; derived classes make some on a device. Not thread-safe.
class JointAnalysis {
 public:
  // The arrays whose resolutions the arms refer to must outlive this object.
  explicit JointAnalysis(std::vector<UsableSpectra> arms) : arms_(std::move(arms)) {}
  virtual ~JointAnalysis() = default;
  JointAnalysis(const JointAnalysis&) = delete;
  JointAnalysis& operator=(const JointAnalysis&) = delete;

  // Products of the functions with the same names.
  virtual absl::StatusOr<std::vector<LineRedshift>> FindLineRedshifts(
      const std::vector<std::vector<int>>& targets, const LineOptions& options);
  virtual absl::StatusOr<std::vector<StarVelocity>> FitVelocities(
      const std::vector<std::vector<int>>& targets, const TemplateLibrary& library,
      const VelocityOptions& options);

  const std::vector<UsableSpectra>& arms() const { return arms_; }

 private:
  const std::vector<UsableSpectra> arms_;
};

// Begins analyses, also of several frames at once. Thread-safe. It must outlive its analyses.
class Analyser {
 public:
  virtual ~Analyser() = default;
  // Begins the analysis of a frame. `resident`: null, or the frame as its extraction left it on a device,
  // before the fiberflat. It must outlive the analysis and is not changed. Errors are those of a device:
  // ResourceExhausted if its memory is too small, Unavailable if it failed.
  virtual absl::StatusOr<std::unique_ptr<FrameAnalysis>> Begin(UsableSpectra spectra,
                                                               const DeviceSpectra* resident) = 0;
  // Begins the analysis of several arms, whose spectra are on the host.
  virtual std::unique_ptr<JointAnalysis> BeginJoint(std::vector<UsableSpectra> arms);
};

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_ANALYSER_ANALYSER_H_
