#include "core/analysis/sky/sky.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "core/analysis/one_blas_thread.h"
#include "core/analysis/resolution_matrix.h"
#include "core/analysis/sky/sky_constants.h"
#include "core/analysis/sky/sky_fit.h"
#include "core/analysis/sky/sky_lines.h"
#include "core/base/status_macros.h"
#include "core/base/threads/parallel.h"

namespace spexd {
namespace {

std::vector<bool> BinsOfFewValues(const SkyFit& fit, size_t sky_fibres) {
  const int64_t least = LeastSkyValues(static_cast<int>(sky_fibres));
  std::vector<bool> few(fit.values.size());
  for (size_t j = 0; j < few.size(); ++j) few[j] = fit.values[j] < least || !fit.known[j];
  return few;
}

// Carries the sky and its variance to each fibre.
absl::Status CarrySky(const UsableSpectra& spectra, const SkyFit& fit, const Workers& workers, Sky* sky) {
  const Array<double, 2>::Shape& shape = spectra.flux.shape();
  sky->model.Reshape(shape);
  sky->model_variance.Reshape(shape);
  sky->statistical_ivar.Assign(shape);
  return ParallelFor(spectra.fibres(), workers, [&](int64_t i) {
    ResolutionMatrix(*spectra.resolution, i).Multiply(fit.sky.data(), &sky->model(i, 0));
    CarryVariance(spectra, i, fit.covariance, &sky->model_variance(i, 0));
    for (int64_t j = 0; j < spectra.bins(); ++j) {
      const double variance = sky->model_variance(i, j);
      if (variance > 0) sky->statistical_ivar(i, j) = 1 / variance;
    }
    return absl::OkStatus();
  });
}

absl::Status Subtract(const UsableSpectra& spectra, const SkyLines& lines, const Workers& workers, Sky* sky) {
  sky->flux.Reshape(spectra.flux.shape());
  sky->ivar.Assign(spectra.flux.shape());
  return ParallelFor(spectra.fibres(), workers, [&](int64_t i) {
    std::vector<double> line(spectra.bins(), 0);
    const double scale = sky->throughput[i] - 1;
    if (scale != 0) LinesAlone(spectra, lines, &sky->model(i, 0), line.data());
    for (int64_t j = 0; j < spectra.bins(); ++j) {
      sky->flux(i, j) = spectra.flux(i, j) - (sky->model(i, j) + scale * line[j]);
      const double ivar = spectra.ivar(i, j);
      if (ivar > 0) sky->ivar(i, j) = 1 / (1 / ivar + sky->model_variance(i, j));
    }
    return absl::OkStatus();
  });
}

}  // namespace

std::vector<int> SkyFibresWithData(const UsableSpectra& spectra, const std::vector<int>& rows) {
  std::vector<int> with_data;
  for (const int row : rows) {
    const auto ivar = spectra.ivar.Row(row);
    if (std::any_of(ivar.begin(), ivar.end(), [](double value) { return value > 0; }))
      with_data.push_back(row);
  }
  return with_data;
}

std::vector<bool> BinsWithoutSky(const std::vector<bool>& few) {
  std::vector<bool> without(few.size());
  for (size_t j = 0; j < few.size(); ++j) {
    const bool inside = j > 0 && j + 1 < few.size();
    without[j] = few[j] || (inside && (few[j - 1] || few[j + 1]));
  }
  return without;
}

absl::StatusOr<Sky> FitSky(const UsableSpectra& spectra, const std::vector<int>& sky_fibres,
                           const SkyOptions& options) {
  const std::vector<int> fibres = SkyFibresWithData(spectra, sky_fibres);
  if (fibres.empty()) return absl::FailedPreconditionError("sky: no sky fibre has data");
  const OneBlasThread one_blas_thread;
  SPEXD_ASSIGN_OR_RETURN(const SkyFit fit, FitDeconvolvedSky(spectra, fibres, options.rejection));
  const Workers workers = {options.threads, options.stop};
  Sky sky;
  sky.deconvolved = fit.sky;
  sky.rounds = fit.rounds;
  sky.rejected = fit.rejected;
  for (size_t i = 0; i < fibres.size(); ++i) {
    if (!fit.dropped[i]) sky.sky_fibres.push_back(fibres[i]);
  }
  SPEXD_RETURN_IF_ERROR(CarrySky(spectra, fit, workers, &sky));

  std::vector<double> extra(spectra.bins(), 0);
  if (options.systematic_variance && fibres.size() > 1) {
    extra = SystematicVariance(spectra, fibres, sky.model, sky.model_variance);
  }
  const std::vector<bool> without = BinsWithoutSky(BinsOfFewValues(fit, fibres.size()));
  sky.mask = spectra.mask;
  for (int64_t i = 0; i < spectra.fibres(); ++i) {
    for (int64_t j = 0; j < spectra.bins(); ++j) {
      sky.model_variance(i, j) += extra[j];
      if (!without[j]) continue;
      sky.model(i, j) = 0;
      sky.model_variance(i, j) = std::numeric_limits<double>::infinity();
      sky.mask(i, j) |= kMaskBadSky;
    }
  }

  std::vector<int> all(spectra.fibres());
  std::iota(all.begin(), all.end(), 0);
  const SkyLines lines = FindSkyLines(sky.model, all);
  sky.throughput.assign(spectra.fibres(), 1);
  if (options.line_throughput) sky.throughput = LineThroughput(spectra, lines, sky.model, without);
  SPEXD_RETURN_IF_ERROR(Subtract(spectra, lines, workers, &sky));
  return sky;
}

}  // namespace spexd
