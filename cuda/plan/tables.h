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

// Stretches of unknowns worked on side by side: chunk c takes [c kept - halo, (c + 1) kept + halo), cut to
// the matrix, and keeps those without the halos. `kept` and `halo` are whole tiles.
struct ChunkPlan {
  int32_t count = 0;
  int32_t kept = 0;
  int32_t halo = 0;
  int32_t extended = 0;  // most unknowns with halos, whole tiles

  SPEXD_HOST_DEVICE int ChunkOf(int unknown) const { return unknown / kept; }
};

// The CCD columns of a bundle's model.
struct Window {
  int32_t first_column, columns;
};

// What is summed over poles for a bin: the inverse's diagonals 0..5 and both solutions.
inline constexpr int kPoleSums = 8;

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_PLAN_TABLES_H_
