#include "core/products/joint/joint_analysis.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/analysis/edge_bins.h"
#include "core/analysis/usable_spectra.h"
#include "core/base/status_macros.h"
#include "core/base/threads/parallel.h"

namespace spexd {
namespace {

// The wavelengths at which the cameras of DESI overlap, Angstrom, and the least distance of a cut from the
// ends of an arm.
constexpr double kCuts[] = {5780, 7570};
constexpr double kMinFromEnd = 100;

// The parts of an arm: one, unless the arm combines several cameras.
std::vector<ArmPart> PartsOf(const SpectraArm& arm, size_t index) {
  const std::vector<double> wave = arm.grid.Values();
  std::vector<int64_t> ends;
  for (const double cut : kCuts) {
    if (arm.name.size() < 2 || cut < wave.front() + kMinFromEnd || cut > wave.back() - kMinFromEnd) continue;
    ends.push_back(std::lower_bound(wave.begin(), wave.end(), cut) - wave.begin());
  }
  ends.push_back(arm.grid.count);
  const bool named = ends.size() > 1 && arm.name.size() == ends.size();  // there is a letter for each part
  std::vector<ArmPart> parts;
  int64_t first = 0;
  for (const int64_t end : ends) {
    const std::string name = named             ? std::string(1, arm.name[parts.size()])
                             : ends.size() > 1 ? absl::StrCat(arm.name, parts.size() + 1)
                                               : arm.name;
    // Bins beyond an inner end have no weight, but bins inside see their light.
    parts.push_back({name, index, std::max<int64_t>(0, first - kEdgeBins), first, end});
    first = end;
  }
  return parts;
}

// Whether an error is that of a device that has no room for a product, or failed.
bool IsOfDevice(const absl::Status& status) {
  return absl::IsResourceExhausted(status) || absl::IsUnavailable(status);
}

// The usable spectra of the parts, in their order.
absl::StatusOr<std::vector<UsableSpectra>> UsableParts(const TargetSpectra& spectra,
                                                       const std::vector<ArmPart>& parts,
                                                       const Workers& workers) {
  std::vector<UsableSpectra> usable;
  for (size_t a = 0; a < spectra.arms.size(); ++a) {
    const SpectraArm& arm = spectra.arms[a];
    SPEXD_ASSIGN_OR_RETURN(UsableSpectra whole, MakeUsable(absl::StrCat(spectra.name, ": arm ", arm.name),
                                                           arm.spectra, arm.grid.Values(), workers));
    SPEXD_RETURN_IF_ERROR(DropPartialBins(workers, &whole));
    const auto of_arm =
        std::count_if(parts.begin(), parts.end(), [a](const ArmPart& p) { return p.arm == a; });
    if (of_arm == 1) {
      usable.push_back(std::move(whole));
      continue;
    }
    for (const ArmPart& part : parts) {
      if (part.arm != a) continue;
      usable.push_back(BinsOf(whole, part.first, std::min<int64_t>(part.kept_end + kEdgeBins, whole.bins())));
    }
  }
  return usable;
}

}  // namespace

absl::StatusOr<JointProducts> AnalyseJointly(const TargetSpectra& spectra, const JointRequest& request,
                                             const LineObserver& lines_made) {
  if (spectra.arms.empty()) return absl::InvalidArgumentError(absl::StrCat(spectra.name, ": has no arms"));
  JointProducts products;
  products.targets = request.targets;
  for (size_t a = 0; a < spectra.arms.size(); ++a) {
    for (ArmPart& part : PartsOf(spectra.arms[a], a)) products.parts.push_back(std::move(part));
  }
  SPEXD_ASSIGN_OR_RETURN(std::vector<UsableSpectra> usable,
                         UsableParts(spectra, products.parts, {request.threads, request.stop}));
  const std::unique_ptr<JointAnalysis> analysis = request.analyser != nullptr
                                                      ? request.analyser->BeginJoint(std::move(usable))
                                                      : std::make_unique<JointAnalysis>(std::move(usable));
  if (request.lines) {
    LineOptions options = request.line_options;
    options.threads = request.threads;
    options.stop = request.stop;
    products.lines = analysis->FindLineRedshifts(request.targets, options);
    if (request.fall_back && IsOfDevice(products.lines.status()))
      products.lines = analysis->JointAnalysis::FindLineRedshifts(request.targets, options);
    if (lines_made) lines_made(products);
  }
  if (request.templates != nullptr) {
    VelocityOptions options = request.velocity_options;
    options.threads = request.threads;
    options.stop = request.stop;
    products.velocities = analysis->FitVelocities(request.targets, *request.templates, options);
    if (request.fall_back && IsOfDevice(products.velocities.status())) {
      products.velocities =
          analysis->JointAnalysis::FitVelocities(request.targets, *request.templates, options);
    }
  }
  return products;
}

}  // namespace spexd
