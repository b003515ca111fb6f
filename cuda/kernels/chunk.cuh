// A chunk of wavelength of a group of fibres: the unknowns that a block works on, wavelength-major.
#ifndef SPEXD_CUDA_KERNELS_CHUNK_CUH_
#define SPEXD_CUDA_KERNELS_CHUNK_CUH_

#include "cuda/kernels/device.cuh"
#include "cuda/kernels/views.h"

namespace spexd::cuda {

// Bins of chunk `chunk`: kept [core, core_end), solved for [first, end).
struct ChunkBins {
  int first, end, core, core_end;
  __device__ ChunkBins(const ChunkPlan& plan, int bins, int chunk) {
    core = chunk * plan.bins;
    core_end = min(core + plan.bins, bins);
    first = max(core - plan.halo, 0);
    end = min(core_end + plan.halo, bins);
  }
  __device__ int count() const { return end - first; }
};

struct Chunk {
  GroupPlan group;
  ChunkBins bins;
  int unknowns, tiles;
  int block;  // of the group and chunk, among all

  __device__ Chunk(const JobView& job, int group_index, int chunk)
      : group(job.group_plans[group_index]), bins(job.solve, job.psf.shape.bins, chunk) {
    unknowns = bins.count() * group.solved;
    tiles = (unknowns + kTile - 1) / kTile;
    block = group_index * job.solve.count + chunk;
    DeviceCheck(tiles <= job.chunk_tiles && group.band_tiles <= job.band_tiles);
    DeviceCheck(group.reach <= job.pair_reach && 2 * group.fibre_reach + 1 <= job.pair_side);
  }
  __device__ int band_tiles() const { return min(group.band_tiles, tiles - 1); }
  // The first tile column with a bin that is kept: backward passes end there.
  __device__ int first_kept_tile() const { return (bins.core - bins.first) * group.solved / kTile; }
};

// The group's floor of weights (core/extract/formulas.h).
__device__ inline double WeightFloor(const JobView& job, const GroupPlan& group) {
  double most = 0;
  for (int i = 0; i < group.solved; ++i) {
    most = fmax(most, job.most_weight[group.first_solved + i - job.first_fibre]);
  }
  return kMinWeight * most;
}

// The factor of a block: tile 0 of a tile column is D^-1, tile k the transpose of Y_k.
__device__ inline int64_t FactorAt(const JobView& job, int block, int tile_column) {
  return (static_cast<int64_t>(block) * job.chunk_tiles + tile_column) * (job.band_tiles + 1) * kTileSize;
}
__device__ inline int64_t ForwardAt(const JobView& job, int block, int tile_column) {
  return (static_cast<int64_t>(block) * job.chunk_tiles + tile_column) * kTile;
}

// Where the tiles of a moving window of tile rows and columns lie in memory: a triangle of slots, each tile
// at the unordered pair of its row's and column's slots. A tile keeps its place while both are in the window.
struct TriangleRing {
  int slots;
  __host__ __device__ static int Tiles(int slots) { return slots * (slots + 1) / 2; }
  __device__ int Slot(int base, int offset) const {  // of tile base + offset, base already reduced
    const int slot = base + offset;
    return slot >= slots ? slot - slots : slot;
  }
  __device__ static int At(int slot, int other) {
    const int high = max(slot, other), low = min(slot, other);
    return (high * (high + 1) / 2 + low) * kTileSize;
  }
};

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_KERNELS_CHUNK_CUH_
