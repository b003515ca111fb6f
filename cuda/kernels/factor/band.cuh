// A symmetric band matrix, and its tiles of 8 x 8 as warps hold them.
#ifndef SPEXD_CUDA_KERNELS_FACTOR_BAND_CUH_
#define SPEXD_CUDA_KERNELS_FACTOR_BAND_CUH_

#include "cuda/kernels/common/device.cuh"
#include "cuda/plan/job_arrays.h"

namespace spexd::cuda {

// One matrix of BandArrays.
struct Band {
  const double* values;
  const int32_t* widths;
  int size, half_width;

  __device__ Band(const BandArrays& all, int matrix)
      : values(all.values + static_cast<int64_t>(matrix) * all.diagonals * all.size),
        widths(all.widths == nullptr ? nullptr : all.widths + static_cast<int64_t>(matrix) * all.size),
        size(all.size),
        half_width(all.diagonals - 1) {}
  __device__ int WidthOf(int column) const { return widths == nullptr ? half_width : widths[column]; }
  // Entry (high, low), 0 <= low <= high < size, within the width of column `low`.
  __device__ double Value(int high, int low) const {
    return values[static_cast<int64_t>(high - low) * size + low];
  }
  // Entry (high, low), 0 <= low <= high < size; 0 beyond the band.
  __device__ double At(int high, int low) const { return high - low <= WidthOf(low) ? Value(high, low) : 0; }
};

// Unknowns of chunk `chunk`: it keeps [core, core_end) and works on [first, end), which includes the halos.
struct ChunkRange {
  int first, end, core, core_end;
  __device__ ChunkRange(const ChunkPlan& plan, int size, int chunk)
      : core(chunk * plan.kept), core_end(min(core + plan.kept, size)) {
    first = max(core - plan.halo, 0);
    end = min(core_end + plan.halo, size);
  }
  __device__ int count() const { return end - first; }
};

// A tile of the factor is stored as lanes hold it: one pair per lane.
__device__ inline void StorePair(double* tile, double first, double second) {
  reinterpret_cast<double2*>(tile)[threadIdx.x % kWarp] = {first, second};
}
__device__ inline void LoadPair(const double* tile, double (&own)[2]) {
  const double2 pair = reinterpret_cast<const double2*>(tile)[threadIdx.x % kWarp];
  own[0] = pair.x;
  own[1] = pair.y;
}

// Buffer for transposing a tile. With this row stride, columns are read without bank conflicts.
inline constexpr int kTransposeStride = kTile + 2;
inline constexpr int kTransposeSize = kTile * kTransposeStride;

__device__ __forceinline__ void Put(double* transpose, const LanePositions& at, const double (&tile)[2]) {
  *reinterpret_cast<double2*>(transpose + at.row * kTransposeStride + at.column) = {tile[0], tile[1]};
}
__device__ __forceinline__ void TakeTransposed(const double* transpose, const LanePositions& at,
                                               double (&tile)[2]) {
  tile[0] = transpose[at.column * kTransposeStride + at.row];
  tile[1] = transpose[(at.column + 1) * kTransposeStride + at.row];
}

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_KERNELS_FACTOR_BAND_CUH_
