// The structure of a bundle's solve, known before any pixel is read: how far its spots overlap, where they
// lie on the CCD, and how many fibres are eliminated at a time.
#ifndef SPEXD_CORE_PLAN_BUNDLE_PLAN_H_
#define SPEXD_CORE_PLAN_BUNDLE_PLAN_H_

#include <stop_token>

#include "absl/status/statusor.h"
#include "core/model/fibre_range.h"
#include "core/model/psf.h"
#include "core/model/wavelength_grid.h"

namespace spexd {

struct BundlePlan {
  FibreRange fibres;    // fibres of the PSF
  int bins = 0;         // bins of the grid that is solved on, including pads
  int pad = 0;          // bins solved for beyond each end of the grid
  int reach = 0;        // distance in bins beyond which spots do not overlap
  int fibre_reach = 0;  // distance in fibres beyond which spots do not overlap
  int block = 1;        // fibres eliminated at a time (FibresPerBlock)
  // CCD columns, [first, end), of the spots that touch the CCD. Parts of them may lie off the CCD. Empty if
  // no spot touches it.
  int first_column = 0, end_column = 0;

  // The number of steps of a sweep. The last block may have fewer fibres.
  int blocks() const { return (fibres.count + block - 1) / block; }
};

// Plans a bundle. `padded`: the grid with `pad` more bins at each end. The call takes 8 bytes for each spot
// of the bundle. Cancelled within 100 ms of a stop request.
absl::StatusOr<BundlePlan> MakeBundlePlan(const Psf& psf, const WavelengthGrid& padded, int pad,
                                          FibreRange fibres, std::stop_token stop = {});

// The fibres of a bundle: bundle_size fibres, or fewer in the last one.
inline FibreRange FibresOfBundle(int bundle, int bundle_size, int psf_fibres) {
  return Intersect({bundle * bundle_size, bundle_size}, {0, psf_fibres});
}

}  // namespace spexd

#endif  // SPEXD_CORE_PLAN_BUNDLE_PLAN_H_
