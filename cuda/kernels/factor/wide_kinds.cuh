// Kinds of bands too wide for registers, by how much shared memory their windows take.
#ifndef SPEXD_CUDA_KERNELS_FACTOR_WIDE_KINDS_CUH_
#define SPEXD_CUDA_KERNELS_FACTOR_WIDE_KINDS_CUH_

#include <cstdint>

#include "cuda/plan/tables.h"
#include "cuda/plan/tile.h"

namespace spexd::cuda {

// The most tiles of a kind below the diagonal one. An H100's multiprocessor holds four, two and one block of
// the first three; the last takes any band.
__host__ __device__ inline int WideTiles(int kind) {
  constexpr int kTiles[kWideKinds - 1] = {8, 14, 21};
  return kind < kWideKinds - 1 ? kTiles[kind] : INT32_MAX;
}
__host__ __device__ inline int WideKindOf(int tiles) {
  int kind = 0;
  while (tiles > WideTiles(kind)) ++kind;
  return kind;
}

// In a job whose widest band exceeds this, most bands are wide; in others only a few beside holes.
inline constexpr int kFineWidth = 128;
// The first kind that a job uses. Where wide bands are few, one kernel with one scratch takes them all.
__host__ __device__ inline int FirstWideKind(int max_width) {
  return max_width > kFineWidth ? 0 : WideKindOf(TilesOf(max_width));
}

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_KERNELS_FACTOR_WIDE_KINDS_CUH_
