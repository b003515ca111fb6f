// The sky of a frame, from its sky fibres: one deconvolved spectrum that each fibre's resolution carries to
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
  double rejection = 4;             // bins of sky fibres beyond so many sigma are left out
  bool systematic_variance = true;  // near bright lines
  bool line_throughput = true;      // bright lines are scaled by each fibre
  int threads = 1;                  // the result does not depend on it
  std::stop_token stop = {};        // ends the work with Cancelled
};

struct Sky {
  std::vector<double> deconvolved;    // [bin], electrons / Angstrom
  Array<double, 2> model;             // [fibre, bin]; 0 in bins without a sky
  Array<double, 2> model_variance;    // statistical and systematic; infinite in bins without a sky
  Array<double, 2> statistical_ivar;  // of the model, from the fibre's own resolution
  Array<double, 2> flux, ivar;        // the spectra without the sky
  Array<uint32_t, 2> mask;            // that of the spectra, and kMaskBadSky
  std::vector<double> throughput;     // [fibre], that bright lines were scaled by
  std::vector<int> sky_fibres;        // rows whose spectra the sky is made of
  int rounds = 0;                     // of rejection
  int64_t rejected = 0;               // bins of sky fibres
};

// Those of some rows that have any data.
std::vector<int> SkyFibresWithData(const UsableSpectra& spectra, const std::vector<int>& rows);
// Bins of too few sky values, and their neighbours.
std::vector<bool> BinsWithoutSky(const std::vector<bool>& few);

// `sky_fibres`: rows of sky fibres; those without any data take no part. `spectra` are flat-fielded.
// FailedPrecondition if no sky fibre has data.
absl::StatusOr<Sky> FitSky(const UsableSpectra& spectra, const std::vector<int>& sky_fibres,
                           const SkyOptions& options);

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_SKY_SKY_H_
