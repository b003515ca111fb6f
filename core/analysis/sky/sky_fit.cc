#include "core/analysis/sky/sky_fit.h"

#include <algorithm>
#include <cmath>

#include "absl/strings/str_format.h"
#include "core/analysis/resolution_matrix.h"
#include "core/analysis/sky/sky_constants.h"
#include "core/base/median.h"

namespace spexd {
namespace {

constexpr int kHalfBand = 2 * kResolutionHalfWidth;  // half band of R^T W R

// The data of the sky fibres. Rejection removes weights.
struct SkyData {
  const UsableSpectra* spectra;
  const std::vector<int>* fibres;
  Array<double, 2> weights;    // [sky fibre, bin]
  Array<double, 2> residuals;  // 0 where the weight is 0
};

// Adds R^T W R of a fibre to A. `weighted`: scratch of `bins` elements.
void AddNormalBand(const ResolutionMatrix& r, const double* weights, std::vector<double>* weighted,
                   SymmetricBand* a) {
  for (int k = 0; k < kResolutionDiagonals; ++k) {  // the element of a row in column j,
    const Diagonal diagonal = ResolutionMatrix::DiagonalAt(k, r.bins());
    std::fill(weighted->begin(), weighted->end(), 0.0);
    for (int64_t j = diagonal.first; j < diagonal.end; ++j) {
      (*weighted)[j] = weights[j + diagonal.offset] * r.values(k)[j];
    }
    for (int o = 0; o <= k; ++o) {  // times the one in column j + o
      const float* const other = r.values(k - o) + o;
      double* const band = &(*a)(o, 0);
      for (int64_t j = diagonal.first; j < std::min(diagonal.end, r.bins() - o); ++j) {
        band[j] += (*weighted)[j] * other[j];
      }
    }
  }
}

// Computes the right-hand side, A with its prior, and the bins that A knows.
void MakeNormal(const SkyData& data, SymmetricBand* a, std::vector<double>* b, std::vector<bool>* known) {
  const int64_t bins = data.spectra->bins();
  a->Assign({kHalfBand + 1, bins});
  b->assign(bins, 0);
  std::vector<double> weighted(bins), carried(bins);
  for (size_t i = 0; i < data.fibres->size(); ++i) {
    const int fibre = (*data.fibres)[i];
    const ResolutionMatrix r(*data.spectra->resolution, fibre);
    const double* const weights = &data.weights(i, 0);
    AddNormalBand(r, weights, &weighted, a);
    for (int64_t j = 0; j < bins; ++j) weighted[j] = weights[j] * data.spectra->flux(fibre, j);
    r.MultiplyTransposed(weighted.data(), carried.data());
    for (int64_t j = 0; j < bins; ++j) (*b)[j] += carried[j];
  }
  known->assign(bins, false);
  std::vector<double> diagonal;
  for (int64_t j = 0; j < bins; ++j) {
    (*known)[j] = (*a)(0, j) > 0;
    if ((*known)[j]) diagonal.push_back((*a)(0, j));
  }
  const double prior = kSkyPrior * Median(diagonal);
  for (double& value : a->Row(0)) value += prior;
}

void FindResiduals(const std::vector<double>& sky, SkyData* data) {
  const int64_t bins = data->spectra->bins();
  std::vector<double> model(bins);
  for (size_t i = 0; i < data->fibres->size(); ++i) {
    const int fibre = (*data->fibres)[i];
    ResolutionMatrix(*data->spectra->resolution, fibre).Multiply(sky.data(), model.data());
    for (int64_t j = 0; j < bins; ++j) {
      data->residuals(i, j) = data->weights(i, j) > 0 ? data->spectra->flux(fibre, j) - model[j] : 0;
    }
  }
}

// Finds fibres whose residuals are not about 0, because a source fell on them.
std::vector<bool> FindFibresWithSources(const SkyData& data) {
  const int64_t fibres = data.weights.shape(0), bins = data.weights.shape(1);
  std::vector<double> medians(fibres), values, sizes;
  for (int64_t i = 0; i < fibres; ++i) {
    values.clear();
    for (int64_t j = 0; j < bins; ++j) {
      if (data.weights(i, j) > 0) values.push_back(data.residuals(i, j));
    }
    medians[i] = std::abs(Median(values));
    if (medians[i] > 0) sizes.push_back(medians[i]);
  }
  std::vector<bool> found(fibres, false);
  if (sizes.size() < static_cast<size_t>(kMinSkyMedians)) return found;
  const double most = kMaxSkyMedian * Median(sizes);
  for (int64_t i = 0; i < fibres; ++i) found[i] = medians[i] > most;
  return found;
}

// Removes the weights of outlying bins. With `only_worst`, in the first round, only the worst fibre of a bin
// loses its weight, because it may have made others outliers. Returns the number of rejected bins.
int64_t RejectBins(const std::vector<bool>& excepted, double rejection, bool only_worst, SkyData* data) {
  const int64_t fibres = data->weights.shape(0), bins = data->weights.shape(1);
  const double limit = rejection * rejection;
  int64_t rejected = 0;
  for (int64_t j = 0; j < bins; ++j) {
    const auto chi2 = [&](int64_t i) {
      return data->weights(i, j) * data->residuals(i, j) * data->residuals(i, j);
    };
    int64_t first = 0, end = fibres;
    if (only_worst) {
      for (int64_t i = 1; i < fibres; ++i) first = chi2(i) > chi2(first) ? i : first;
      end = first + 1;
    }
    for (int64_t i = first; i < end; ++i) {
      if (excepted[i] || !(chi2(i) > limit)) continue;
      data->weights(i, j) = 0;
      ++rejected;
    }
  }
  return rejected;
}

// Rejects outliers. Returns whether there were any.
bool Reject(double rejection, SkyData* data, SkyFit* fit) {
  const std::vector<bool> sources = FindFibresWithSources(*data);
  const int64_t rejected = RejectBins(sources, rejection, fit->rounds == 1, data);
  fit->rejected += rejected;
  bool any = rejected > 0;
  for (size_t i = 0; i < sources.size(); ++i) {
    if (!sources[i]) continue;
    any = fit->dropped[i] = true;
    for (double& weight : data->weights.Row(i)) weight = 0;
  }
  return any;
}

}  // namespace

absl::StatusOr<SkyFit> FitDeconvolvedSky(const UsableSpectra& spectra, const std::vector<int>& sky_fibres,
                                         double rejection) {
  const int64_t fibres = static_cast<int64_t>(sky_fibres.size()), bins = spectra.bins();
  SkyData data{&spectra, &sky_fibres, Array<double, 2>({fibres, bins}), Array<double, 2>({fibres, bins})};
  for (int64_t i = 0; i < fibres; ++i) {
    std::copy_n(&spectra.ivar(sky_fibres[i], 0), bins, &data.weights(i, 0));
  }
  SkyFit fit;
  fit.dropped.assign(fibres, false);
  SymmetricBand normal;
  BandCholesky factor;
  do {
    ++fit.rounds;
    MakeNormal(data, &normal, &fit.sky, &fit.known);
    if (!factor.Factor(normal)) {
      return absl::FailedPreconditionError(
          absl::StrFormat("sky: the equations of %d sky fibres are singular", fibres));
    }
    factor.Solve(&fit.sky);
    FindResiduals(fit.sky, &data);
  } while (Reject(rejection, &data, &fit) && fit.rounds < kMaxSkyRounds);
  fit.covariance = factor.SelectedInverse();
  fit.values.assign(bins, 0);
  for (int64_t i = 0; i < fibres; ++i) {
    for (int64_t j = 0; j < bins; ++j) fit.values[j] += data.weights(i, j) > 0 ? 1 : 0;
  }
  return fit;
}

void CarryVariance(const UsableSpectra& spectra, int64_t fibre, const SymmetricBand& covariance,
                   double* variance) {
  const int64_t bins = spectra.bins();
  const ResolutionMatrix r(*spectra.resolution, fibre);
  // Elements of diagonal k by row: element j is that of row j in column j - offset.
  Array<double, 2> rows({kResolutionDiagonals, bins});
  for (int k = 0; k < kResolutionDiagonals; ++k) {
    const Diagonal diagonal = ResolutionMatrix::DiagonalAt(k, bins);
    for (int64_t j = diagonal.first; j < diagonal.end; ++j) rows(k, j + diagonal.offset) = r.values(k)[j];
  }
  std::fill_n(variance, bins, 0.0);
  for (int k = 0; k < kResolutionDiagonals; ++k) {
    const Diagonal diagonal = ResolutionMatrix::DiagonalAt(k, bins);
    // The other column, j - offset + o, belongs to diagonal k - o.
    for (int o = 0; o <= k; ++o) {
      const double factor = o == 0 ? 1 : 2, *const one = &rows(k, 0), *const other = &rows(k - o, 0);
      const double* const z = &covariance(o, 0);
      for (int64_t j = diagonal.first + diagonal.offset; j < diagonal.end + diagonal.offset; ++j) {
        variance[j] += factor * one[j] * other[j] * z[j - diagonal.offset];
      }
    }
  }
}

}  // namespace spexd
