// What a block of the stage "covariance" works on.
#ifndef SPEXD_CUDA_KERNELS_PIECE_CUH_
#define SPEXD_CUDA_KERNELS_PIECE_CUH_

#include "cuda/kernels/chunk.cuh"

namespace spexd::cuda {

// A part of a chunk: the bins that are kept, and the tile columns that this takes. Those of the chunk that
// come behind a further halo are left out: what remains is the inverse of a leading part of A.
struct Piece {
  int number, core, core_end;  // number: among all of the group
  int first_tile, tiles;       // [first_tile, tiles)

  __device__ Piece(const JobView& job, const Chunk& chunk, int piece)
      : number(static_cast<int>(blockIdx.x) * job.solve.pieces + piece),
        core(min(chunk.bins.core + piece * job.solve.piece_bins(), chunk.bins.core_end)),
        core_end(min(core + job.solve.piece_bins(), chunk.bins.core_end)),
        first_tile((core - chunk.bins.first) * chunk.group.solved / kTile) {
    const int bins = min(core_end + job.solve.halo, chunk.bins.end) - chunk.bins.first;
    tiles = (bins * chunk.group.solved + kTile - 1) / kTile;
  }
};

// Tile rows below column `column` that are computed: the band's, and as far as the widths of its bins reach.
__device__ inline int DownOf(const JobView& job, const Chunk& chunk, int tiles, const Divider& by_fibres,
                             int column) {
  const int nf = chunk.group.solved;
  const int32_t* widths =
      job.widths + static_cast<int64_t>(blockIdx.y) * job.psf.shape.bins + chunk.bins.first;
  const int last = min((column + 1) * kTile, chunk.unknowns) - 1, bin = by_fibres.Quotient(last);
  int farthest = last + nf * widths[bin];
  // Bins reach ever further, but at an equal end the last fibre of an earlier bin lies behind.
  if (bin * nf > column * kTile) farthest = max(farthest, bin * nf - 1 + nf * widths[bin - 1]);
  return min(max(chunk.band_tiles(), farthest / kTile - column), tiles - 1 - column);
}

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_KERNELS_PIECE_CUH_
