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

// Stretches of the unknowns of a matrix that are worked on side by side: chunk c takes
// [c kept - halo, (c + 1) kept + halo), cut to the matrix, and keeps those without the halos. Both are whole
// tiles, `kept` whole pairs of them.
struct ChunkPlan {
  int32_t count = 0;
  int32_t kept = 0;
  int32_t halo = 0;
  int32_t extended = 0;  // most unknowns with halos

  SPEXD_HOST_DEVICE int ChunkOf(int unknown) const { return unknown / kept; }
};

// Fibres that are eliminated at a time, nearly always one. Their unknowns are interleaved: number
// bin * fibres + fibre.
struct BlockPlan {
  int32_t fibres = 1;
  int32_t per_bundle = 0;
  int32_t count = 0;  // of a job; the last of a bundle may have fewer fibres
  int32_t size = 0;   // unknowns
  int32_t reach = 0;  // no two unknowns of a block or of two neighbours couple that are further apart
  // Columns are eliminated in runs: so many unknowns each, so many runs a chunk. A run is longer than any band.
  int32_t run_unknowns = 0, runs_per_chunk = 0;
};

// The CCD columns of a bundle's model.
struct Window {
  int32_t first_column, columns;
};

// Tiles below the diagonal one that factors have at least.
inline constexpr int kLeastFactorTiles = 2;
// Sums over a bundle that conjugate gradients keep.
inline constexpr int kSolveSums = 6;
// Poles that are summed side by side.
inline constexpr int kPoleGroup = 8;
// What is summed over poles for a bin: the inverse's diagonals 0..5 and both solutions.
inline constexpr int kPoleSums = 8;

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_PLAN_TABLES_H_
