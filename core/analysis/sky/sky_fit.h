// The deconvolved sky of sky fibres by least squares, with outliers rejected, and the variance that it has.
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
  std::vector<double> sky;      // s [bin]
  SymmetricBand covariance;     // the band of A^-1, half band 2 kResolutionHalfWidth
  std::vector<bool> known;      // [bin]: a sky fibre has data that depend on it
  std::vector<int64_t> values;  // [bin]: sky fibres whose data were kept
  std::vector<bool> dropped;    // [sky fibre]: has light of its own
  int rounds = 0;
  int64_t rejected = 0;  // bins
};

// A = sum of R_i^T W_i R_i over the sky fibres, with a small prior. FailedPrecondition if A is singular.
absl::StatusOr<SkyFit> FitDeconvolvedSky(const UsableSpectra& spectra, const std::vector<int>& sky_fibres,
                                         double rejection);

// diag(R Z R^T) [bin] for the band Z of a fit.
void CarryVariance(const UsableSpectra& spectra, int64_t fibre, const SymmetricBand& covariance,
                   double* variance);

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_SKY_SKY_FIT_H_
