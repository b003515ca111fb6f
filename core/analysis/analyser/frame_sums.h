// Sums over frames that an Analyser keeps where it works: coadds of exposures on one grid, and what sky
// residuals have in common.
#ifndef SPEXD_CORE_ANALYSIS_ANALYSER_FRAME_SUMS_H_
#define SPEXD_CORE_ANALYSIS_ANALYSER_FRAME_SUMS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/analysis/residual_pca.h"
#include "core/base/array.h"
#include "core/model/frame.h"

namespace spexd {

class FrameAnalysis;

// Both are for one thread at a time. Errors beside those that are named are a device's; after one of these
// the sums are undefined.
class ExposureSums {
 public:
  virtual ~ExposureSums() = default;

  // Row rows[k] of the frame, as products left its spectra, is an exposure of target targets[k].
  // InvalidArgument, and nothing is added, for another number of bins than the sums have, a row or a target
  // that is not there, or a target twice. REQUIRES: the Analyser that made the sums began `frame`.
  virtual absl::Status Add(FrameAnalysis* frame, const std::vector<int>& rows,
                           const std::vector<int>& targets) = 0;
  // The coadds [target], as CoaddExposures makes them of the exposures, but for bins that all of them mask:
  // these have no data, and all masks. No chi2pix.
  virtual absl::StatusOr<Spectra> Read() = 0;

  // Seconds of a device from the first kernel of the latest call to its last.
  virtual double device_seconds() const = 0;
};

class ResidualSums {
 public:
  virtual ~ResidualSums() = default;

  // Does what ResidualPca::Add does.
  virtual absl::StatusOr<int64_t> Add(const Array<double, 2>& residuals, const Array<double, 2>& ivar) = 0;
  // The first `count` components by subspace iteration, which goes on from those of the latest call. Values
  // and vectors are those of Solve where a value stands out of its neighbours; nearly equal ones mix. Errors
  // as ResidualPca::Solve's.
  virtual absl::StatusOr<PrincipalComponents> Leading(int count) = 0;
  // Any number of them, by ResidualPca on processors: seconds.
  virtual absl::StatusOr<PrincipalComponents> Solve(int count) = 0;

  virtual double device_seconds() const = 0;
};

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_ANALYSER_FRAME_SUMS_H_
