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

// See ScanProfile.
struct ScannedBest {
  ScanProfile profile() const { return {chi2, templates, refined}; }
  std::vector<double> chi2;
  std::vector<int> templates;
  std::vector<double> refined;
};

// What is best at each velocity of a spectrum's scan, chi-square [row, template, velocity].
ScannedBest BestOf(const Array<double, 3>& chi2, int64_t row, const std::vector<double>& velocities) {
  const int64_t steps = static_cast<int64_t>(velocities.size());
  ScannedBest profile;
  for (int64_t v = 0; v < steps; ++v) {
    int best = 0;
    for (int t = 1; t < chi2.shape(1); ++t) best = chi2(row, t, v) < chi2(row, best, v) ? t : best;
    profile.chi2.push_back(chi2(row, best, v));
    profile.templates.push_back(best);
    const bool inner = v > 0 && v + 1 < steps;
    profile.refined.push_back(inner
                                  ? RefinedVelocity(chi2(row, best, v - 1), chi2(row, best, v),
                                                    chi2(row, best, v + 1), velocities[v], velocities[v + 1])
                                  : velocities[v]);
  }
  return profile;
}

// Templates for the bins of a grid, as processors keep them with their library.
struct KeptTemplates : TemplatePreparation {
  KeptTemplates(const TemplateLibrary& of, const std::vector<double>& bins, double reach,
                std::optional<double> width, BinnedTemplates made)
      : library(of), wave(bins), most(reach), gaussian(width), templates(std::move(made)) {
    library.prepared.reset();  // which holds this
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

// The library's, if it has them already; otherwise those of BinnedTemplates::Make.
absl::StatusOr<std::shared_ptr<const BinnedTemplates>> Binned(const TemplateLibrary& library,
                                                              const std::vector<double>& wave, double most,
                                                              std::optional<double> gaussian,
                                                              const Workers& workers) {
  constexpr char kMaker[] = "cpu";
  constexpr size_t kMax = 2;  // those of a scan and those of the fits
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

}  // namespace

absl::StatusOr<std::vector<StarVelocity>> FitVelocities(const UsableSpectra& spectra,
                                                        const std::vector<int>& rows,
                                                        const TemplateLibrary& library,
                                                        const VelocityOptions& options) {
  SPEXD_RETURN_IF_ERROR(CheckVelocityOptions(spectra, options));
  if (rows.empty()) return std::vector<StarVelocity>();
  const OneBlasThread one_blas_thread;
  const Workers workers = {options.threads, options.stop};
  const std::vector<double> velocities = ScannedVelocities(options);
  const double reach = std::max(options.most, velocities.back());
  SPEXD_ASSIGN_OR_RETURN(const auto smooth,
                         Binned(library, spectra.wave, reach, MeanResolution(spectra, rows), workers));
  SPEXD_ASSIGN_OR_RETURN(const auto templates, Binned(library, spectra.wave, reach, std::nullopt, workers));
  SPEXD_ASSIGN_OR_RETURN(const auto chi2,
                         ScanVelocities(spectra, rows, *smooth, velocities, options.scan_degree, workers));
  const VelocityModel model = {&library, templates.get(), Chebyshev(spectra.wave, 2 * options.degree),
                               options.degree, options.rotation};
  std::vector<StarVelocity> stars(rows.size());
  SPEXD_RETURN_IF_ERROR(ParallelFor(static_cast<int64_t>(rows.size()), workers, [&](int64_t i) {
    const std::vector<double> ivar = InnerIvar(spectra, rows[i]);
    const StarlessSpectrum starless = WithoutStar(spectra, rows[i], ivar, model.polynomials, options.degree);
    if (starless.bins < LeastVelocityBins(options)) {
      stars[i] = StarWithoutData(library.axes.size(), starless.bins);
      return absl::OkStatus();
    }
    const ScannedBest best = BestOf(chi2, i, velocities);
    const ScanProfile profile = best.profile();
    const VelocityData data = {spectra.flux.Row(rows[i]), ivar,
                               ResolutionMatrix(*spectra.resolution, rows[i])};
    const std::vector<ScanMinimum> minima = MinimaOf(profile, velocities, library);
    std::vector<VelocityFit> fits;
    for (const ScanMinimum& minimum : minima) {
      if (!minimum.start.empty()) fits.push_back(FitVelocity(model, data, minimum.start));
    }
    stars[i] = StarOf(profile, velocities, minima, std::move(fits), starless, options);
    return absl::OkStatus();
  }));
  return stars;
}

}  // namespace spexd
