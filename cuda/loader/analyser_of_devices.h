// An analyser for an engine with several devices.
#ifndef SPEXD_CUDA_LOADER_ANALYSER_OF_DEVICES_H_
#define SPEXD_CUDA_LOADER_ANALYSER_OF_DEVICES_H_

#include <atomic>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/analysis/analyser/analyser.h"

namespace spexd {

// Analyses a frame on the device that holds its spectra. Frames whose spectra are on no device are
// distributed over the devices in turn.
class AnalyserOfDevices : public Analyser {
 public:
  // `devices`: by CUDA index; at least one.
  explicit AnalyserOfDevices(std::map<int, std::unique_ptr<Analyser>> devices)
      : devices_(std::move(devices)) {}

  absl::StatusOr<std::unique_ptr<FrameAnalysis>> Begin(UsableSpectra spectra,
                                                       const DeviceSpectra* resident) override {
    const auto there = resident == nullptr ? devices_.end() : devices_.find(resident->device());
    if (there != devices_.end()) return there->second->Begin(std::move(spectra), resident);
    return Next().Begin(std::move(spectra), resident);
  }
  std::unique_ptr<JointAnalysis> BeginJoint(std::vector<UsableSpectra> arms) override {
    return Next().BeginJoint(std::move(arms));
  }

 private:
  Analyser& Next() {
    const auto index = static_cast<std::ptrdiff_t>(next_++ % devices_.size());
    return *std::next(devices_.begin(), index)->second;
  }

  const std::map<int, std::unique_ptr<Analyser>> devices_;
  std::atomic<size_t> next_ = 0;
};

}  // namespace spexd

#endif  // SPEXD_CUDA_LOADER_ANALYSER_OF_DEVICES_H_
