#include "core/analysis/velocity/velocity.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "core/analysis/one_blas_thread.h"
#include "core/analysis/velocity/continuum_fit.h"
#include "core/analysis/velocity/shared/fit_steps.h"
#include "core/analysis/velocity/velocity_fit.h"
#include "core/analysis/velocity/velocity_minima.h"
#include "core/analysis/velocity/velocity_scan.h"
#include "core/base/status_macros.h"
#include "core/base/threads/parallel.h"

namespace spexd {
namespace {

// The arrays of a ScanProfile.
struct ScannedBest {
  ScanProfile profile() const { return {chi2, templates, refined}; }
  std::vector<double> chi2;
  std::vector<int> templates;
  std::vector<double> refined;
};

// The chi-square of a scan in each arm [target, template, velocity], all exposures added; empty without data.
using ScanOfArms = std::vector<Array<double, 3>>;

double SumOfArms(const ScanOfArms& arms, int64_t target, int64_t row, int64_t v) {
  double sum = 0;
  for (const Array<double, 3>& chi2 : arms) sum += chi2.empty() ? 0 : chi2(target, row, v);
  return sum;
}

// The best template at each velocity of a target's scan.
ScannedBest BestOf(const ScanOfArms& arms, int64_t target, int templates,
                   const std::vector<double>& velocities) {
  const int64_t steps = static_cast<int64_t>(velocities.size());
  const auto chi2 = [&](int64_t t, int64_t v) { return SumOfArms(arms, target, t, v); };
  ScannedBest profile;
  for (int64_t v = 0; v < steps; ++v) {
    int best = 0;
    double least = chi2(0, v);
    for (int t = 1; t < templates; ++t) {
      const double value = chi2(t, v);
      if (!(value < least)) continue;
      least = value;
      best = t;
    }
    profile.chi2.push_back(least);
    profile.templates.push_back(best);
    const bool inner = v > 0 && v + 1 < steps;
    profile.refined.push_back(
        inner ? RefinedVelocity(chi2(best, v - 1), least, chi2(best, v + 1), velocities[v], velocities[v + 1])
              : velocities[v]);
  }
  return profile;
}

// Templates for the bins of a grid, kept by CPUs with their library.
struct KeptTemplates : TemplatePreparation {
  KeptTemplates(const TemplateLibrary& of, const std::vector<double>& bins, double reach,
                std::optional<double> width, BinnedTemplates made)
      : library(of), wave(bins), most(reach), gaussian(width), templates(std::move(made)) {
    library.prepared.reset();  // it holds this object
  }
  bool Serves(const TemplateLibrary& of, const std::vector<double>& bins, double reach,
              std::optional<double> width) const {
    return most == reach && gaussian == width && wave == bins && of.SameSpectra(library);
  }

  TemplateLibrary library;
  const std::vector<double> wave;
  const double most;
  const std::optional<double> gaussian;
  const BinnedTemplates templates;
};

// The library's templates if it has prepared them; otherwise prepares them by BinnedTemplates::Make.
absl::StatusOr<std::shared_ptr<const BinnedTemplates>> Binned(const TemplateLibrary& library,
                                                              const std::vector<double>& wave, double most,
                                                              std::optional<double> gaussian,
                                                              const Workers& workers) {
  constexpr char kMaker[] = "cpu";
  constexpr size_t kMax = 6;  // those of the scan and those of the fits, for three arms
  std::shared_ptr<const KeptTemplates> kept;
  if (library.prepared != nullptr) {
    kept = std::static_pointer_cast<const KeptTemplates>(
        library.prepared->Find(kMaker, [&](const TemplatePreparation& made) {
          return static_cast<const KeptTemplates&>(made).Serves(library, wave, most, gaussian);
        }));
  }
  if (kept == nullptr) {
    SPEXD_ASSIGN_OR_RETURN(BinnedTemplates made,
                           BinnedTemplates::Make(library, wave, most, gaussian, workers));
    kept = std::make_shared<const KeptTemplates>(library, wave, most, gaussian, std::move(made));
    if (library.prepared != nullptr) library.prepared->Keep(kMaker, kept, kMax);
  }
  return std::shared_ptr<const BinnedTemplates>(kept, &kept->templates);
}

// Fits the velocities of targets, some at a time.
class JointVelocities {
 public:
  JointVelocities(absl::Span<const UsableSpectra> arms, const std::vector<std::vector<int>>& targets,
                  const TemplateLibrary& library, const VelocityOptions& options)
      : arms_(arms),
        targets_(targets),
        library_(library),
        options_(options),
        workers_{options.threads, options.stop},
        velocities_(ScannedVelocities(options)),
        at_once_(TargetsAtOnce(library.templates(), static_cast<int64_t>(velocities_.size()))),
        model_{&library, options.degree, options.rotation, {}, {}} {}

  absl::StatusOr<std::vector<StarVelocity>> Run() {
    SPEXD_RETURN_IF_ERROR(FindRowsThatCount());
    SPEXD_RETURN_IF_ERROR(PrepareTemplates());
    stars_.resize(targets_.size());
    const auto count = static_cast<int64_t>(targets_.size());
    for (int64_t first = 0; first < count; first += at_once_) {
      const int64_t end = std::min(count, first + at_once_);
      SPEXD_ASSIGN_OR_RETURN(const ScanOfArms scan, Scan(first, end));
      SPEXD_RETURN_IF_ERROR(ParallelFor(end - first, workers_, [&](int64_t i) {
        stars_[static_cast<size_t>(first + i)] = Fit(scan, i, targets_[static_cast<size_t>(first + i)]);
        return absl::OkStatus();
      }));
    }
    return std::move(stars_);
  }

 private:
  absl::Status FindRowsThatCount() {
    for (const UsableSpectra& arm : arms_) {
      std::vector<char>& counts = counts_.emplace_back(static_cast<size_t>(arm.fibres()), 0);
      SPEXD_RETURN_IF_ERROR(ParallelFor(static_cast<int64_t>(targets_.size()), workers_, [&](int64_t i) {
        for (const int row : targets_[static_cast<size_t>(i)]) {
          counts[static_cast<size_t>(row)] = HasVelocityBins(arm, row, options_);
        }
        return absl::OkStatus();
      }));
    }
    return absl::OkStatus();
  }
  bool Counts(size_t arm, int row) const { return counts_[arm][static_cast<size_t>(row)] != 0; }

  // Prepares templates for the arms that have data.
  absl::Status PrepareTemplates() {
    const double reach = std::max(options_.most, velocities_.back());
    std::vector<const BinnedTemplates*> with_data;
    for (size_t a = 0; a < arms_.size(); ++a) {
      const UsableSpectra& arm = arms_[a];
      auto& smooth = smooth_.emplace_back();
      auto& sharp = sharp_.emplace_back();
      ArmModel& model = model_.arms.emplace_back();
      std::vector<int> rows;
      for (const std::vector<int>& target : targets_) {
        for (const int row : target) {
          if (Counts(a, row)) rows.push_back(row);
        }
      }
      if (rows.empty()) continue;
      SPEXD_ASSIGN_OR_RETURN(smooth, Binned(library_, arm.wave, reach, MeanResolution(arm, rows), workers_));
      SPEXD_ASSIGN_OR_RETURN(sharp, Binned(library_, arm.wave, reach, std::nullopt, workers_));
      model = {sharp.get(), Chebyshev(arm.wave, 2 * options_.degree)};
      with_data.push_back(sharp.get());
    }
    if (!with_data.empty()) model_.ranges = RangesOf(library_, with_data, options_.rotation);
    return absl::OkStatus();
  }

  absl::StatusOr<ScanOfArms> Scan(int64_t first, int64_t end) const {
    ScanOfArms scan;
    for (size_t a = 0; a < arms_.size(); ++a) {
      Array<double, 3>& sums = scan.emplace_back();
      std::vector<int> rows;
      std::vector<int64_t> owners;
      for (int64_t i = first; i < end; ++i) {
        for (const int row : targets_[static_cast<size_t>(i)]) {
          if (!Counts(a, row)) continue;
          rows.push_back(row);
          owners.push_back(i - first);
        }
      }
      if (rows.empty()) continue;
      sums.Assign({end - first, library_.templates(), static_cast<int64_t>(velocities_.size())});
      // Rows are scanned in parts, because targets may have many exposures.
      for (size_t k = 0; k < rows.size(); k += static_cast<size_t>(at_once_)) {
        const size_t count = std::min(rows.size() - k, static_cast<size_t>(at_once_));
        SPEXD_RETURN_IF_ERROR(AddScans(a, absl::MakeConstSpan(rows).subspan(k, count), &owners[k], &sums));
      }
    }
    return scan;
  }

  // Adds the scan of each row to that of its owner.
  absl::Status AddScans(size_t arm, absl::Span<const int> rows, const int64_t* owners,
                        Array<double, 3>* sums) const {
    SPEXD_ASSIGN_OR_RETURN(const auto chi2, ScanVelocities(arms_[arm], {rows.begin(), rows.end()},
                                                           *smooth_[arm], velocities_, options_, workers_));
    const int64_t size = chi2.shape(1) * chi2.shape(2);
    for (size_t k = 0; k < rows.size(); ++k) {
      const double* const from = &chi2(static_cast<int64_t>(k), 0, 0);
      double* const to = &(*sums)(owners[k], 0, 0);
      for (int64_t n = 0; n < size; ++n) to[n] += from[n];
    }
    return absl::OkStatus();
  }

  // Fits a target. `i`: its position in the scan. `rows`: its rows.
  StarVelocity Fit(const ScanOfArms& scan, int64_t i, const std::vector<int>& rows) const {
    std::vector<VelocitySegment> segments;
    for (size_t a = 0; a < arms_.size(); ++a) {
      for (const int row : rows) {
        if (!Counts(a, row)) continue;
        segments.push_back({a, arms_[a].flux.Row(row), VelocityWeights(arms_[a], row, options_.exclude),
                            ResolutionMatrix(*arms_[a].resolution, row)});
      }
    }
    if (segments.empty()) return StarWithoutData(library_.axes.size(), arms_.size());
    std::vector<StarlessSegment> starless;
    for (const VelocitySegment& segment : segments)
      starless.push_back(WithoutStar(segment, model_.arms[segment.arm].polynomials, options_.degree));
    const ScannedBest best = BestOf(scan, i, library_.templates(), velocities_);
    const ScanProfile profile = best.profile();
    const std::vector<ScanMinimum> minima = MinimaOf(profile, velocities_, library_);
    std::vector<VelocityFit> fits;
    for (const ScanMinimum& minimum : minima) {
      if (!minimum.start.empty()) fits.push_back(FitVelocity(model_, segments, minimum.start));
    }
    StarVelocity star =
        StarOf(profile, velocities_, minima, std::move(fits), starless, arms_.size(), options_);
    for (size_t a = 0; a < arms_.size(); ++a) {
      if (star.arms[a].bins == 0) continue;
      for (size_t v = 0; v < velocities_.size(); ++v)
        star.arms[a].scan.push_back(scan[a](i, best.templates[v], static_cast<int64_t>(v)));
    }
    return star;
  }

  const absl::Span<const UsableSpectra> arms_;
  const std::vector<std::vector<int>>& targets_;
  const TemplateLibrary& library_;
  const VelocityOptions& options_;
  const Workers workers_;
  const std::vector<double> velocities_;
  const int64_t at_once_;                                               // targets, and rows of an arm
  std::vector<std::vector<char>> counts_;                               // [arm][row]: has enough bins
  std::vector<std::shared_ptr<const BinnedTemplates>> smooth_, sharp_;  // [arm]: for the scan, for the fits
  VelocityModel model_;
  std::vector<StarVelocity> stars_;
};

}  // namespace

int64_t TargetsAtOnce(int64_t templates, int64_t velocities) {
  // A multiple of the number of spectra in one task of the scan, so that tasks are the same for any number of
  // targets.
  constexpr int64_t kScanBytes = int64_t{64} << 20, kMultiple = 64;
  return std::max(kMultiple, kScanBytes / (8 * templates * velocities) / kMultiple * kMultiple);
}

absl::StatusOr<std::vector<StarVelocity>> FitVelocities(absl::Span<const UsableSpectra> arms,
                                                        const std::vector<std::vector<int>>& targets,
                                                        const TemplateLibrary& library,
                                                        const VelocityOptions& options) {
  SPEXD_RETURN_IF_ERROR(CheckVelocityOptions(options));
  for (const UsableSpectra& arm : arms) SPEXD_RETURN_IF_ERROR(CheckVelocityBins(arm));
  if (targets.empty()) return std::vector<StarVelocity>();
  const OneBlasThread one_blas_thread;
  return JointVelocities(arms, targets, library, options).Run();
}

absl::StatusOr<std::vector<StarVelocity>> FitVelocities(const UsableSpectra& spectra,
                                                        const std::vector<int>& rows,
                                                        const TemplateLibrary& library,
                                                        const VelocityOptions& options) {
  std::vector<std::vector<int>> targets;
  for (const int row : rows) targets.push_back({row});
  return FitVelocities(absl::MakeConstSpan(&spectra, 1), targets, library, options);
}

}  // namespace spexd
