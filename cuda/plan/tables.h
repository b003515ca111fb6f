// Small records that host and device share, byte for byte.
#ifndef SPEXD_CUDA_PLAN_TABLES_H_
#define SPEXD_CUDA_PLAN_TABLES_H_

#include <cstdint>

#include "core/base/host_device.h"

namespace spexd::cuda {

// What the spots' places say of a bundle; found on the device.
struct BundleFacts {
  int32_t reach = 0;        // no two of its spots overlap that are more bins apart ...
  int32_t fibre_reach = 0;  // ... or more fibres
  int32_t first_column =
      0;  // CCD columns that its spots touch: [first_column, end_column), clipped to the CCD
  int32_t end_column = 0;
};

// A group of fibres solved together (see core/plan). Fibres are rows of the PSF.
struct GroupPlan {
  int32_t bundle;
  int32_t first_solved, solved;  // fibres
  int32_t first_kept, kept;
  int32_t bundle_first, bundle_fibres;
  int32_t reach, fibre_reach;  // of the bundle; fibre_reach at most solved - 1
  int32_t band_tiles;          // tiles below the diagonal one
  int32_t usual_width;         // bins of covariance kept where data are good
};

// Stretches of wavelength worked on side by side: chunk c takes bins [c bins - halo, (c + 1) bins + halo),
// cut to the grid, and keeps those without the halos.
struct ChunkPlan {
  int32_t count = 0;
  int32_t bins = 0;
  int32_t halo = 0;
  int32_t extended = 0;  // most bins with halos
  int32_t pieces = 1;    // of a chunk's kept bins: its covariance is computed for each by itself

  SPEXD_HOST_DEVICE int all_pieces() const { return count * pieces; }
  SPEXD_HOST_DEVICE int piece_bins() const { return (bins + pieces - 1) / pieces; }
  SPEXD_HOST_DEVICE int PieceOf(int bin) const { return bin / bins * pieces + bin % bins / piece_bins(); }
};

// The CCD columns of a bundle's model, among the windows of a job.
struct Window {
  int32_t first_column, columns;
  int64_t offset;  // of its first pixel
};

// Grids that are finer than this reach says are near-singular: influence is carried much further, so that
// they are not cut, and rounding is amplified.
inline constexpr int kMostUsualReach = 12;
// Refinements of the covariance widths: what would take more is left as it is.
inline constexpr int kPasses = 4;
// What is summed over poles for a bin: the inverse's diagonals 0..5 and both solutions.
inline constexpr int kPoleSums = 8;

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_PLAN_TABLES_H_
