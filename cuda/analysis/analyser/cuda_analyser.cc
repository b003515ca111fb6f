#include "cuda/analysis/analyser/cuda_analyser.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "core/base/status_macros.h"
#include "cuda/analysis/analysis_device.h"
#include "cuda/analysis/frame_on_device.h"
#include "cuda/analysis/lines/line_finder.h"
#include "cuda/analysis/sky/sky_on_device.h"
#include "cuda/analysis/velocity/velocities.h"
#include "cuda/memory/on_device.h"

namespace spexd::cuda {
namespace {

// Objects that the analyses of a device share. They keep tables for later frames.
struct Makers {
  explicit Makers(AnalysisDevice* on) : device(on), lines(on), velocities(on) {}

  AnalysisDevice* device;
  LineFinder lines;
  Velocities velocities;
};

class CudaFrameAnalysis : public FrameAnalysis {
 public:
  CudaFrameAnalysis(Makers* makers, UsableSpectra usable, const DeviceSpectra* resident)
      : FrameAnalysis(std::move(usable)), makers_(*makers), frame_(makers->device, spectra(), resident) {}

  absl::StatusOr<Sky> FitSky(const std::vector<int>& sky_fibres, const SkyOptions& options) override {
    Begin();
    if (!SkyFits(*makers_.device, spectra(), sky_fibres)) {
      by_device_ = false;
      frame_.Outdate();
      return FrameAnalysis::FitSky(sky_fibres, options);
    }
    absl::StatusOr<Sky> sky =
        FitSkyOnDevice(makers_.device, spectra(), &frame_, sky_fibres, options, &seconds_);
    if (!sky.ok()) return sky;
    SPEXD_RETURN_IF_ERROR(FrameAnalysis::TakeSky(*sky));
    frame_.SetCurrent();  // a kernel has also subtracted the sky on the device
    return sky;
  }
  absl::StatusOr<std::vector<LineRedshift>> FindLineRedshifts(const std::vector<int>& rows,
                                                              const LineOptions& options) override {
    Begin();
    by_device_ = makers_.lines.Fits(spectra().bins());
    if (!by_device_) return FrameAnalysis::FindLineRedshifts(rows, options);
    const OnDevice current(makers_.device->name.index);
    SPEXD_CUDA_RETURN_IF_ERROR(current.error(), makers_.device->name, "redshifts of lines");
    TargetRows targets;
    for (const int& row : rows) targets.Add({&row, 1});
    return makers_.lines.Find({{&spectra(), &frame_}}, targets, options, &seconds_);
  }
  absl::StatusOr<std::vector<StarVelocity>> FitVelocities(const std::vector<int>& rows,
                                                          const TemplateLibrary& library,
                                                          const VelocityOptions& options) override {
    Begin();
    const OnDevice current(makers_.device->name.index);
    SPEXD_CUDA_RETURN_IF_ERROR(current.error(), makers_.device->name, "velocities");
    SPEXD_RETURN_IF_ERROR(frame_.Stage(spectra(), {options.threads, options.stop}));
    std::vector<std::vector<int>> targets;
    for (const int row : rows) targets.push_back({row});
    return makers_.velocities.Fit({{&spectra(), &frame_}}, targets, library, options);
  }
  absl::Status TakeSky(const Sky& sky) override {
    frame_.Outdate();
    return FrameAnalysis::TakeSky(sky);
  }
  double device_seconds() const override { return seconds_; }
  bool by_device() const override { return by_device_; }

 private:
  void Begin() {
    seconds_ = 0;
    by_device_ = true;
  }

  Makers& makers_;
  FrameOnDevice frame_;
  double seconds_ = 0;
  bool by_device_ = false;
};

class CudaJointAnalysis : public JointAnalysis {
 public:
  CudaJointAnalysis(Makers* makers, std::vector<UsableSpectra> usable)
      : JointAnalysis(std::move(usable)), makers_(*makers) {
    for (const UsableSpectra& arm : arms()) frames_.emplace_back(makers->device, arm, nullptr);
  }

  absl::StatusOr<std::vector<LineRedshift>> FindLineRedshifts(const std::vector<std::vector<int>>& targets,
                                                              const LineOptions& options) override {
    const bool fits = arms().size() <= kMaxLineArms &&
                      std::all_of(arms().begin(), arms().end(), [this](const UsableSpectra& arm) {
                        return makers_.lines.Fits(arm.bins());
                      });
    if (!fits) return JointAnalysis::FindLineRedshifts(targets, options);
    const OnDevice current(makers_.device->name.index);
    SPEXD_CUDA_RETURN_IF_ERROR(current.error(), makers_.device->name, "redshifts of lines");
    TargetRows rows;
    for (const std::vector<int>& target : targets) rows.Add(target);
    double seconds = 0;
    return makers_.lines.Find(OnDevices(), rows, options, &seconds);
  }
  absl::StatusOr<std::vector<StarVelocity>> FitVelocities(const std::vector<std::vector<int>>& targets,
                                                          const TemplateLibrary& library,
                                                          const VelocityOptions& options) override {
    if (arms().size() > kMaxFitArms) return JointAnalysis::FitVelocities(targets, library, options);
    const OnDevice current(makers_.device->name.index);
    SPEXD_CUDA_RETURN_IF_ERROR(current.error(), makers_.device->name, "velocities");
    for (size_t a = 0; a < arms().size(); ++a)
      SPEXD_RETURN_IF_ERROR(frames_[a].Stage(arms()[a], {options.threads, options.stop}));
    return makers_.velocities.Fit(OnDevices(), targets, library, options);
  }

 private:
  std::vector<ArmOnDevice> OnDevices() {
    std::vector<ArmOnDevice> on_device;
    for (size_t a = 0; a < arms().size(); ++a) on_device.push_back({&arms()[a], &frames_[a]});
    return on_device;
  }

  Makers& makers_;
  std::deque<FrameOnDevice> frames_;  // [arm]
};

class CudaAnalyser : public Analyser {
 public:
  explicit CudaAnalyser(std::unique_ptr<AnalysisDevice> device)
      : device_(std::move(device)), makers_(device_.get()) {}

  absl::StatusOr<std::unique_ptr<FrameAnalysis>> Begin(UsableSpectra spectra,
                                                       const DeviceSpectra* resident) override {
    return std::make_unique<CudaFrameAnalysis>(&makers_, std::move(spectra), resident);
  }
  std::unique_ptr<JointAnalysis> BeginJoint(std::vector<UsableSpectra> arms) override {
    return std::make_unique<CudaJointAnalysis>(&makers_, std::move(arms));
  }

 private:
  const std::unique_ptr<AnalysisDevice> device_;
  Makers makers_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Analyser>> MakeCudaAnalyser(const CudaAnalyserOptions& options) {
  SPEXD_ASSIGN_OR_RETURN(std::unique_ptr<AnalysisDevice> device,
                         AnalysisDevice::Make(options.device, options.memory_bytes));
  return std::make_unique<CudaAnalyser>(std::move(device));
}

}  // namespace spexd::cuda
