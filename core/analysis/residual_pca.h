// Principal components of sky residuals over many frames, from sums that grow frame by frame. They monitor
// what the sky model misses. Subtracting them would take light of emission lines away (Wild & Hewett 2005).
#ifndef SPEXD_CORE_ANALYSIS_RESIDUAL_PCA_H_
#define SPEXD_CORE_ANALYSIS_RESIDUAL_PCA_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/base/array.h"

namespace spexd {

struct PrincipalComponents {
  std::vector<double> values;  // variances, the largest first
  Array<double, 2> vectors;    // [component, bin], of length 1; their largest element is positive
  std::vector<double> mean;    // [bin]
  double snapshots = 0;        // weight of the spectra in the sums
};

struct PcaOptions {
  double forget = 1;  // factor on the sums each time a frame is added; 0 < forget <= 1
  double clip = 5;    // sigma; clipping keeps missed cosmic rays out of the components
};

// Rows of residual / sigma, clipped, of the fibres that ResidualPca::Add uses.
Array<double, 2> SnapshotsOf(const Array<double, 2>& residuals, const Array<double, 2>& ivar, double clip);

class ResidualPca {
 public:
  // Takes 8 bins^2 bytes. REQUIRES: bins > 0.
  ResidualPca(int64_t bins, const PcaOptions& options);

  // Adds a frame's residuals [fibre, bin] with their ivar, as rows of residual / sigma, clipped. A bin
  // without data counts 0. Fibres with data in no more than 80 % of their bins are left out. Returns the
  // number of rows added. InvalidArgument if the shapes differ.
  absl::StatusOr<int64_t> Add(const Array<double, 2>& residuals, const Array<double, 2>& ivar);

  // The first `count` components of the covariance about the mean. FailedPrecondition unless two spectra were
  // added; InvalidArgument unless 1 <= count <= bins.
  absl::StatusOr<PrincipalComponents> Solve(int count) const;

 private:
  PcaOptions options_;
  Array<double, 2> products_;  // sum of x x^T, [bin, bin]; only its lower triangle
  std::vector<double> sums_;   // sum of x
  double snapshots_ = 0;       // weight of the spectra added
};

// The variance that the first component of pure noise exceeds once in ten thousand times. `spectra`: the
// number of spectra of each frame, in the order of time. They are residuals of a sky that was fitted to them.
// The fit takes one of the frame's degrees of freedom in each bin, so n spectra count as n - 1 of variance n
// / (n - 1). `forget`: as in PcaOptions. Infinite if no frame has two spectra.
//
// The spectrum of noise ends (Marchenko & Pastur 1967; Silverstein & Choi 1995) at the minimum over s of
//   lambda(s) = 1 / s + sum_i t_i / (1 - bins t_i s),
// with a weight t_i in the covariance for each degree of freedom. The largest variance scatters about this
// edge by Tracy & Widom's law with the scale (lambda'' / (2 bins^2))^(1/3) (El Karoui 2007); for equal
// weights these are Johnstone's (2001) centre and scale.
double LargestNoiseVariance(int64_t bins, const std::vector<int64_t>& spectra, double forget);

}  // namespace spexd

#endif  // SPEXD_CORE_ANALYSIS_RESIDUAL_PCA_H_
