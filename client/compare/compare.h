// Differences between two frames, or between a frame and the truth.
#ifndef SPEXD_CLIENT_COMPARE_COMPARE_H_
#define SPEXD_CLIENT_COMPARE_COMPARE_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "core/model/frame.h"
#include "core/model/truth.h"

namespace spexd::cli {

// The differences of two frames, over bins with MASK 0 in both and the fibres that both have.
struct FrameDifference {
  FibreRange fibres;
  int64_t bins = 0;           // bins of these fibres
  int64_t compared = 0;       // bins with MASK 0 in both
  int64_t mask_differs = 0;   // bins whose MASK differs
  std::vector<double> pulls;  // sorted |flux A - flux B| sqrt(ivar B); infinite where a value is not finite
  double rms_pull = 0;
  double max_sqrt_ivar = 0;   // |sqrt(ivar A) / sqrt(ivar B) - 1|
  double max_resolution = 0;  // |R A - R B|, elements whose row and column are both compared

  double max_pull() const { return pulls.empty() ? 0 : pulls.back(); }
  // Fraction of the pulls that are below `limit`.
  double Within(double limit) const;
};

// InvalidArgument: the wavelength grids differ, or no fibre is in both.
absl::StatusOr<FrameDifference> CompareFrames(const Frame& a, const Frame& b);

// The pulls (flux - R truth) sqrt(ivar) of a frame against the truth, which is band-limited to the bins
// (core/model/low_pass.h). Bins count if MASK is 0, chi2pix < 10 and the bin's row of R lies within the grid.
// A bin that is left out is counted for the first of these reasons that applies.
struct TruthDifference {
  int fibres = 0;           // fibres that the frame and the truth have
  int other_fibres = 0;     // fibres of the frame that the truth does not have
  int64_t compared = 0;     // bins of these fibres
  int64_t masked = 0;       // left out: MASK is not 0
  int64_t bad_fit = 0;      // left out: chi2pix is not below 10
  int64_t at_the_ends = 0;  // left out: the row of R reaches beyond the grid

  int64_t left_out() const { return masked + bad_fit + at_the_ends; }
  double mean = 0, median = 0;
  double sigma = 0;         // standard deviation
  double robust_sigma = 0;  // half of the range between the 15.87 % and 84.13 % quantiles
  double beyond_5 = 0;      // fraction of |pull| > 5
};

// InvalidArgument: the truth and the frame have no fibre or bin in common.
absl::StatusOr<TruthDifference> CompareTruth(const Frame& frame, const Truth& truth);

}  // namespace spexd::cli

#endif  // SPEXD_CLIENT_COMPARE_COMPARE_H_
