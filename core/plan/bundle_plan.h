// Structure of a bundle's solve, known before any pixel is read: how far its spots overlap, where they lie on
// the CCD, and how many fibres are eliminated at a time.
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
  int bins = 0;         // bins of the grid that is solved on, pads included
  int pad = 0;          // bins solved for beyond each end of the grid
  int reach = 0;        // spots more bins apart than this do not overlap,
  int fibre_reach = 0;  // nor do spots more fibres apart than this
  int block = 1;        // fibres eliminated at a time, see FibresPerBlock
  // CCD columns of the spots that touch the CCD, [first, end); parts of them may lie off it. Empty if none
  // does.
  int first_column = 0, end_column = 0;

  // Number of steps of a sweep; the last block may have fewer fibres.
  int blocks() const { return (fibres.count + block - 1) / block; }
};

// `padded` is the grid with `pad` more bins at each end. Takes 8 bytes a spot of the bundle while it runs.
// Cancelled within 100 ms of a stop request.
absl::StatusOr<BundlePlan> MakeBundlePlan(const Psf& psf, const WavelengthGrid& padded, int pad,
                                          FibreRange fibres, std::stop_token stop = {});

// Number of bundles of a PSF: bundle_size fibres each, the last maybe fewer.
inline FibreRange FibresOfBundle(int bundle, int bundle_size, int psf_fibres) {
  return Intersect({bundle * bundle_size, bundle_size}, {0, psf_fibres});
}

}  // namespace spexd

#endif  // SPEXD_CORE_PLAN_BUNDLE_PLAN_H_
