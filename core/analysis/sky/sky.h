// The sky of a frame, from its sky fibres: one deconvolved spectrum, which each fibre's resolution carries to
// its data (Guy et al. 2023, AJ 165, 144, section 4.7).
#ifndef SPEXD_CORE_ANALYSIS_SKY_SKY_H_
#define SPEXD_CORE_ANALYSIS_SKY_SKY_H_

#include <cstdint>
#include <stop_token>
#include <vector>

#include "absl/status/statusor.h"
#include "core/analysis/usable_spectra.h"
#include "core/base/array.h"

namespace spexd {

struct SkyOptions {
  double rejection = 4;             // sigma above which bins of sky fibres are left out
  bool systematic_variance = true;  // whether variance is added near bright lines
  bool line_throughput = true;      // whether bright lines are scaled in each fibre
  int threads = 1;                  // the result does not depend on it
  std::stop_token stop = {};        // ends the work with Cancelled
};

struct Sky {
  std::vector<double> deconvolved;    // [bin], electrons / Angstrom
  Array<double, 2> model;             // [fibre, bin]; 0 in bins without a sky
  Array<double, 2> model_variance;    // statistical and systematic; infinite in bins without a sky
  Array<double, 2> statistical_ivar;  // statistical ivar of the model, from the fibre's own resolution
  Array<double, 2> flux, ivar;        // the spectra without the sky
  Array<uint32_t, 2> mask;            // the mask of the spectra, with kMaskBadSky
  std::vector<double> throughput;     // [fibre]: scale of bright lines
  std::vector<int> sky_fibres;        // rows from which the sky is made
  int rounds = 0;                     // number of rounds of rejection
  int64_t rejected = 0;               // number of rejected bins of sky fibres
};

// Those of the rows that have any data.
std::vector<int> SkyFibresWithData(const UsableSpectra& spectra, const std::vector<int>& rows);
// Bins with too few sky values, and their neighbours.
std::vector<bool> BinsWithoutSky(const std::vector<bool>& few);

// Fits the sky and subtracts it. `spectra` are flat-fielded. `sky_fibres`: rows of sky fibres; those without
// any data do not take part. FailedPrecondition if no sky fibre has data.
absl::StatusOr<Sky> FitSky(const UsableSpectra& spectra, const std::vector<int>& sky_fibres,
                           const SkyOptions& options);

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_SKY_SKY_H_
