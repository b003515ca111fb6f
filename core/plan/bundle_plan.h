// What a bundle's solve looks like: where its spots lie, how far they overlap, and which fibres are solved
// together.
#ifndef SPEXD_CORE_PLAN_BUNDLE_PLAN_H_
#define SPEXD_CORE_PLAN_BUNDLE_PLAN_H_

#include <cstdint>
#include <vector>

#include "core/base/array.h"
#include "core/model/fibre_range.h"
#include "core/model/psf.h"
#include "core/model/wavelength_grid.h"

namespace spexd {

// Fibres solved at once, counted within their bundle: those kept, and guards on each side.
struct FibreGroup {
  FibreRange solved;
  FibreRange kept;
};

// Groups of kGroupFibres with kGuardFibres on each side, clipped at the bundle's edges.
std::vector<FibreGroup> MakeGroups(int fibres);

struct BundlePlan {
  FibreRange fibres;  // of the PSF
  int pad = 0;        // bins solved for beyond each end of the grid
  Array<int32_t, 2> first_column,
      first_row;                        // [fibre, padded bin]: a spot's first pixel, may lie off the CCD
  Array<double, 2> offset_x, offset_y;  // centre relative to the spot's middle pixel, in [-0.5, 0.5]
  int reach = 0;                        // no two spots of this bundle overlap that are more bins apart ...
  int fibre_reach = 0;                  // ... or more fibres
  std::vector<FibreGroup> groups;

  int bins() const { return static_cast<int>(first_column.shape(1)); }
  int64_t bytes() const;
};

// `padded` is the grid with `pad` bins more at each end.
BundlePlan MakeBundlePlan(const Psf& psf, const WavelengthGrid& padded, int pad, FibreRange fibres);

// The bundles of a PSF: bundle_size fibres each, the last maybe fewer.
inline FibreRange FibresOfBundle(int bundle, int bundle_size, int psf_fibres) {
  return Intersect({bundle * bundle_size, bundle_size}, {0, psf_fibres});
}

}  // namespace spexd

#endif  // SPEXD_CORE_PLAN_BUNDLE_PLAN_H_
