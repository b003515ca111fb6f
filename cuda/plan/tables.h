// Small records that host and device share, byte for byte.
#ifndef SPEXD_CUDA_PLAN_TABLES_H_
#define SPEXD_CUDA_PLAN_TABLES_H_

#include <cstdint>

#include "core/base/host_device.h"

namespace spexd::cuda {

// Facts about a bundle that follow from the positions of its spots; found on the device.
struct BundleFacts {
  int32_t reach = 0;        // spots more bins apart than this do not overlap
  int32_t fibre_reach = 0;  // spots more fibres apart than this do not overlap
  // CCD columns that its spots touch, clipped to the CCD: [first_column, end_column).
  int32_t first_column = 0;
  int32_t end_column = 0;
};

// Chunks of a matrix's unknowns, which are worked on side by side. Chunk c keeps `kept` unknowns from c *
// kept on, and works on these with a halo on each side, cut to the matrix. `halo` is whole tiles, `kept`
// whole pairs of tiles.
struct ChunkPlan {
  int32_t count = 0;
  int32_t kept = 0;
  int32_t halo = 0;
  int32_t extended = 0;  // most unknowns of a chunk with its halos

  SPEXD_HOST_DEVICE int ChunkOf(int unknown) const { return unknown / kept; }
  // Most unknowns of a chunk without the halo before it.
  SPEXD_HOST_DEVICE int behind() const { return kept + halo < extended ? kept + halo : extended; }
};

// Blocks of fibres that are eliminated at a time; nearly always a block is one fibre. The unknowns of a
// block's fibres are interleaved: number bin * fibres + fibre.
struct BlockPlan {
  int32_t fibres = 1;
  int32_t per_bundle = 0;
  int32_t count = 0;  // blocks of a job; the last of a bundle may have fewer fibres
  int32_t size = 0;   // unknowns of a block
  int32_t reach = 0;  // unknowns of a block or of two neighbours that are further apart do not couple
  int32_t runs = 0;   // runs of kRunUnknowns each, which need elimination or not
};

// Sums over the pixels of a bin's spot.
struct SpotSums {
  double coverage;  // sum of the spot over usable pixels
  double chi2;      // sum of the spot times chi-square
};

// The CCD columns of a bundle's model.
struct Window {
  int32_t first_column, columns;
};

// Columns that a warp of the elimination solves for at once, and the number of these steps in a run.
inline constexpr int kStepColumns = 16;
inline constexpr int kRunSteps = 8;
inline constexpr int kRunUnknowns = kRunSteps * kStepColumns;
SPEXD_HOST_DEVICE inline int RunsOf(int unknowns) { return (unknowns + kRunUnknowns - 1) / kRunUnknowns; }
// Number of steps before a step whose columns have products with its own, up to `width` apart.
SPEXD_HOST_DEVICE inline int StepsBefore(int width) { return (kStepColumns - 1 + width) / kStepColumns; }
// Minimum number of a factor's tiles below the diagonal one.
inline constexpr int kMinFactorTiles = 2;
// Number of sums over each part of a bundle that conjugate gradients keep.
inline constexpr int kSolveSums = 5;
// Number of poles summed side by side.
inline constexpr int kPoleGroup = 8;
// The kernels of the square root, by the widths of bands that they take (cuda/kernels/root/roots.cuh).
inline constexpr int kWideKinds = 4;  // wide_factor.cuh
enum RootKind {
  kNarrowRoot,
  kTwoTileRoot,
  kThreeTileRoot,
  kFourTileRoot,
  kWideRoot,  // the first of kWideKinds
  kRootKinds = kWideRoot + kWideKinds
};
// Number of a bin's sums over poles: the inverse's diagonals 0..5 and both solutions.
inline constexpr int kPoleSums = 8;

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_PLAN_TABLES_H_
