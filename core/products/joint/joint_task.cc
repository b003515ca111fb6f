#include "core/products/joint/joint_task.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>

#include "core/analysis/lines/line_stack.h"
#include "core/analysis/velocity_units.h"
#include "core/base/status_macros.h"
#include "core/base/threads/deadline.h"
#include "core/products/analyse.h"
#include "core/products/joint/joint_analysis.h"
#include "core/products/joint/redrock_table.h"

namespace spexd {
namespace {

class JointRun {
 public:
  JointRun(const TargetSpectra& spectra, SpectraKind kind, const JointTask& task, const JointSink& sink)
      : spectra_(spectra), kind_(kind), task_(task), sink_(sink) {}

  absl::StatusOr<int64_t> Run() {
    SPEXD_ASSIGN_OR_RETURN(const JointRequest request, Request());
    SPEXD_ASSIGN_OR_RETURN(
        const JointProducts products,
        AnalyseJointly(spectra_, request, [this](const JointProducts& made) { SendLines(made); }));
    if (task_.velocities && fits_velocities()) {
      Send(JointProduct::kVelocities, products.velocities, &StarVelocity::flag, [&] {
        return JointVelocityFile(spectra_, products, task_.templates->names, request.velocity_options,
                                 redrock_, task_.threads);
      });
    }
    if (task_.models && fits_velocities()) {
      Send(JointProduct::kModels, products.velocities, &StarVelocity::flag,
           [&] { return JointModelFile(spectra_, products, task_.threads); });
    }
    SPEXD_RETURN_IF_ERROR(CheckStop(task_.stop));
    return static_cast<int64_t>(products.targets.size());
  }

 private:
  bool fits_velocities() const { return task_.templates != nullptr && (task_.velocities || task_.models); }

  absl::StatusOr<JointRequest> Request() {
    JointRequest request;
    RowSelection selection = task_.rows;
    if (task_.redrock != nullptr) {
      SPEXD_ASSIGN_OR_RETURN(redrock_, ReadRedrock(*task_.redrock, spectra_));
    }
    if (task_.select_by_redrock) {
      if (!redrock_.has_value()) {
        return absl::InvalidArgumentError(
            "rows: are to be selected by redrock, whose file is not given; give it, or select them without");
      }
      selection.stars = &*redrock_;
    }
    SPEXD_ASSIGN_OR_RETURN(const std::vector<int> rows, SelectRows(spectra_, selection));
    SPEXD_ASSIGN_OR_RETURN(request.targets, GroupRows(spectra_, rows, task_.per_target));
    if (fits_velocities()) request.templates = task_.templates;
    VelocityOptions& options = request.velocity_options;
    if (task_.exclude.has_value()) {
      options.exclude = *task_.exclude;
    } else if (kind_ == SpectraKind::kTargets) {
      options.exclude = {kExcludedOfTargets};
    }
    if (task_.coefficients.has_value()) options.degree = *task_.coefficients - 1;
    options.scan_degree = std::min(options.scan_degree, options.degree);
    request.lines = task_.lines;
    request.analyser = task_.analyser;
    request.fall_back = task_.fall_back;
    request.threads = task_.threads;
    request.stop = task_.stop;
    return request;
  }

  void SendLines(const JointProducts& products) const {
    Send(JointProduct::kRedshifts, products.lines, &LineRedshift::warning,
         [&] { return JointLineFile(spectra_, products, task_.threads); });
  }

  template <typename Result, typename Make>
  void Send(JointProduct product, const absl::StatusOr<std::vector<Result>>& results, int Result::*warning,
            const Make& make) const {
    if (task_.stop.stop_requested()) return;
    if (!results.ok()) return sink_(product, results.status());
    absl::StatusOr<std::string> bytes = make();
    if (!bytes.ok()) return sink_(product, bytes.status());
    const auto good = std::count_if(results->begin(), results->end(),
                                    [warning](const Result& result) { return result.*warning == 0; });
    sink_(product, JointFile{*std::move(bytes), static_cast<int64_t>(results->size()), good});
  }

  const TargetSpectra& spectra_;
  const SpectraKind kind_;
  const JointTask& task_;
  const JointSink& sink_;
  std::optional<RedrockTable> redrock_;
};

// Sums over the arms of all inputs. `cut`: the widest arm that is cut into parts.
struct ArmSums {
  int64_t rows = 0, arms = 0, parts = 0, bins = 0, widest = 0, cut = 0;
};
ArmSums SumsOf(const JointSize& size) {
  ArmSums sums;
  for (const SpectraOutline& input : size.inputs) {
    sums.rows = std::max(sums.rows, input.rows);
    for (const SpectraOutline::Arm& arm : input.arms) {
      constexpr int64_t kMaxParts = 3;
      ++sums.arms;
      sums.parts += arm.combined ? kMaxParts : 1;
      sums.bins += arm.bins;
      sums.widest = std::max(sums.widest, arm.bins);
      if (arm.combined) sums.cut = std::max(sums.cut, arm.bins);
    }
  }
  return sums;
}

int64_t TableBytes(const JointSize& size) {
  int64_t bytes = 0;
  for (const SpectraOutline& input : size.inputs) bytes += input.table_bytes;
  return bytes;
}

// Bytes of the line positions at all redshifts, for an arm.
int64_t LinePlanBytes() {
  const LineOptions options = JointRequest().line_options;
  int64_t lines = 0;
  for (const LineGroup& group : EmissionLines()) lines += static_cast<int64_t>(group.lines.size());
  const double redshifts = std::log1p(options.max_redshift) / (options.step / kLightSpeed);
  return lines * static_cast<int64_t>(redshifts * sizeof(LineDelays::Position));
}

}  // namespace

absl::StatusOr<int64_t> RunJointTask(const TargetSpectra& spectra, SpectraKind kind, const JointTask& task,
                                     const JointSink& sink) {
  return JointRun(spectra, kind, task, sink).Run();
}

int64_t JointBytes(const JointSize& size) {
  constexpr int64_t kFloat = 4, kUsable = 20, kResolution = 4 * kResolutionDiagonals;
  constexpr int64_t kSegment = 400;  // bytes for each row and bin in the fit of a target with many exposures
  constexpr int64_t kRow = 1024;     // bytes for each row of redrock's table and of the tables that are made
  const ArmSums sums = SumsOf(size);
  int64_t spectra = TableBytes(size), fits = 0, sky = 0;
  for (const SpectraOutline& input : size.inputs) {
    const bool of_targets = input.kind == SpectraKind::kTargets;
    for (const SpectraOutline::Arm& arm : input.arms) {
      // flux, ivar, mask, and chi2pix until frames are joined
      spectra += kFloat * (arm.diagonals + (of_targets ? 3 : 4)) * input.rows * arm.bins;
      fits += LinePlanBytes() + (size.per_target ? kSegment * input.rows * arm.bins : 0);
      AnalysisSize of_arm = {input.rows, arm.bins, size.templates, 0, size.threads, /*sky=*/false};
      fits += AnalysisPartsOf(of_arm).kept;
      of_arm.templates = 0;
      of_arm.sky = true;
      if (!of_targets) sky = std::max(sky, AnalysisBytes(of_arm));
    }
  }
  // The library, prepared for up to three parts of arms and in between; larger if there are more parts.
  constexpr int64_t kParts = 4;
  const int64_t samples = size.samples * std::max(kParts, sums.parts) / kParts;
  fits += AnalysisPartsOf({0, 0, size.templates, samples, size.threads}).kept;
  // An arm before it is cut, or its scan. This is enough for the fits, which take all arms together, of up to
  // eight arms.
  constexpr int64_t kArmsOfFit = 8;
  const int64_t bins = std::max(sums.widest, sums.bins / kArmsOfFit);
  fits += std::max((kUsable + kResolution) * sums.rows * sums.cut,
                   AnalysisPartsOf({sums.rows, bins, size.templates, 0, size.threads}).working);
  // A file while it is made from copies of its tables, and all files until they are sent.
  fits += 2 * JointFileBytes(size) + 4 * TableBytes(size) + kRow * sums.rows;
  return spectra + std::max(sky, fits);
}

int64_t JointFileBytes(const JointSize& size) {
  constexpr int64_t kRow = 1024, kPartRow = 64;         // bytes for each row of the tables
  constexpr int64_t kHdu = 2 * 2880, kFirst = 1 << 20;  // initial memory of a file
  const ArmSums sums = SumsOf(size);
  const int64_t parts = sums.parts;
  // FIBERMAP is in two files, and some of its columns are in two tables.
  int64_t bytes = kFirst + 4 * TableBytes(size) + kRow * sums.rows;
  if (size.templates == 0) return bytes;
  const int64_t velocities = static_cast<int64_t>(ScannedVelocities(VelocityOptions()).size());
  const auto scans = static_cast<int64_t>(sizeof(float)) * velocities * (1 + parts);
  bytes += (scans + kPartRow * parts) * sums.rows + kHdu * (2 * parts + 8);
  if (size.models)
    bytes += kHdu * 2 * sums.arms + static_cast<int64_t>(sizeof(float)) * sums.rows * sums.bins +
             static_cast<int64_t>(sizeof(double)) * sums.bins;
  return bytes;
}

}  // namespace spexd
