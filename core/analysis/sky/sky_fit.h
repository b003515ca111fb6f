// The deconvolved sky of sky fibres and its variance, by least squares with rejection of outliers.
#ifndef SPEXD_CORE_ANALYSIS_SKY_SKY_FIT_H_
#define SPEXD_CORE_ANALYSIS_SKY_SKY_FIT_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "core/analysis/sky/symmetric_band.h"
#include "core/analysis/usable_spectra.h"
#include "core/base/array.h"

namespace spexd {

struct SkyFit {
  std::vector<double> sky;      // deconvolved sky s, [bin]
  SymmetricBand covariance;     // the band of A^-1, with half band 2 kResolutionHalfWidth
  std::vector<bool> known;      // [bin]: whether a sky fibre has data that depend on it
  std::vector<int64_t> values;  // [bin]: number of sky fibres whose data were kept
  std::vector<bool> dropped;    // [sky fibre]: whether it has light of its own
  int rounds = 0;
  int64_t rejected = 0;  // number of rejected bins
};

// Fits the sky, with A = sum of R_i^T W_i R_i over the sky fibres and a small prior. FailedPrecondition if A
// is singular.
absl::StatusOr<SkyFit> FitDeconvolvedSky(const UsableSpectra& spectra, const std::vector<int>& sky_fibres,
                                         double rejection);

// Computes the variance diag(R Z R^T), [bin], of a fibre, where Z is the covariance of a fit.
void CarryVariance(const UsableSpectra& spectra, int64_t fibre, const SymmetricBand& covariance,
                   double* variance);

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_SKY_SKY_FIT_H_
