// The Cholesky factor of a tile, by a warp in registers.
#ifndef SPEXD_CUDA_KERNELS_FACTOR_TILE_CUH_
#define SPEXD_CUDA_KERNELS_FACTOR_TILE_CUH_

#include "cuda/kernels/device.cuh"

namespace spexd::cuda {

// L^-1 of the tile's factor L: each pivot's elimination is done to the identity, too. `tile`: this lane's
// pair of the symmetric tile (LanePlaces), used up; `inverse`: its pair of L^-1. least(p): of pivot p, > 0.
template <typename Least>
__device__ __forceinline__ void InvertFactor(const LanePlaces& at, double (&tile)[2], const Least& least,
                                             double (&inverse)[2]) {
  inverse[0] = at.row == at.column;
  inverse[1] = at.row == at.column + 1;
  const int quarter = at.column / 2;
#pragma unroll
  for (int p = 0; p < kTile; ++p) {
    const double own = tile[p % 2];
    const double pivot = Shuffle(own, p * 4 + p / 2), left = Shuffle(own, at.row * 4 + p / 2);
    const double up0 = Shuffle(tile[0], p * 4 + quarter), up1 = Shuffle(tile[1], p * 4 + quarter);
    const double from0 = Shuffle(inverse[0], p * 4 + quarter), from1 = Shuffle(inverse[1], p * 4 + quarter);
    const double scale = ReciprocalRoot(fmax(pivot, least(p)));
    const double l = left * scale;
    if (at.row > p) {
      tile[0] = fma(-l, up0 * scale, tile[0]);
      tile[1] = fma(-l, up1 * scale, tile[1]);
      inverse[0] = fma(-l, from0 * scale, inverse[0]);
      inverse[1] = fma(-l, from1 * scale, inverse[1]);
    } else if (at.row == p) {
      inverse[0] *= scale;
      inverse[1] *= scale;
    }
  }
}

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_KERNELS_FACTOR_TILE_CUH_
