// The Cholesky factor of a tile, computed by a warp in registers.
#ifndef SPEXD_CUDA_KERNELS_FACTOR_FACTOR_TILE_CUH_
#define SPEXD_CUDA_KERNELS_FACTOR_FACTOR_TILE_CUH_

#include "cuda/kernels/common/device.cuh"

namespace spexd::cuda {

// Computes L^-1 of the tile's factor L, by applying each pivot's elimination to the identity, too. `tile`:
// this lane's pair of the symmetric tile (LanePositions), overwritten. `inverse`: this lane's pair of L^-1.
// least(p): lower limit of pivot p, > 0.
template <typename Least>
__device__ __forceinline__ void InvertFactor(const LanePositions& at, double (&tile)[2], const Least& least,
                                             double (&inverse)[2]) {
  inverse[0] = at.row == at.column;
  inverse[1] = at.row == at.column + 1;
  const int quarter = at.column / 2;
  double own_pivot = 1;
#pragma unroll
  for (int p = 0; p < kTile; ++p) {
    const double own = tile[p % 2];
    const double pivot = fmax(Shuffle(own, p * 4 + p / 2), least(p)), left = Shuffle(own, at.row * 4 + p / 2);
    // Products come first, so that few operations wait for the pivot.
    const double tile0 = left * Shuffle(tile[0], p * 4 + quarter);
    const double tile1 = left * Shuffle(tile[1], p * 4 + quarter);
    const double inverse0 = left * Shuffle(inverse[0], p * 4 + quarter);
    const double inverse1 = left * Shuffle(inverse[1], p * 4 + quarter);
    const double minus = at.row > p ? -Reciprocal(pivot) : 0.0;
    if (at.row == p) own_pivot = pivot;
    tile[0] = fma(tile0, minus, tile[0]);
    tile[1] = fma(tile1, minus, tile[1]);
    inverse[0] = fma(inverse0, minus, inverse[0]);
    inverse[1] = fma(inverse1, minus, inverse[1]);
  }
  const double scale = ReciprocalRoot(own_pivot);
  inverse[0] *= scale;
  inverse[1] *= scale;
}

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_KERNELS_FACTOR_FACTOR_TILE_CUH_
