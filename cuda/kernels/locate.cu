// Places of spots, and the facts about each bundle that follow from them. Compiled without fused
// multiply-add, so that places equal those of core/plan to the bit.
//
// Floor: 12 series terms and 24 bytes a spot, negligible beside the other stages.
#include <climits>

#include "core/model/spot_formula.h"
#include "cuda/kernels/common/device.cuh"
#include "cuda/kernels/common/legendre.cuh"
#include "cuda/kernels/psf_kernels.h"

namespace spexd::cuda {
namespace {

constexpr int kThreads = 128;

__device__ int64_t SpotAt(const PsfArrays& psf, int fibre, int bin) {
  return static_cast<int64_t>(fibre) * psf.shape.bins + bin;
}

__global__ void Clear(PsfArrays psf) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
  if (at < static_cast<int64_t>(psf.shape.fibres) * psf.shape.ccd_rows) {
    reinterpret_cast<int4*>(psf.row_bins)[at] = {psf.shape.bins, 0, INT_MAX, INT_MIN};
  }
  if (at < psf.shape.fibres * kNeighbours) psf.meets[at] = 0;
  if (at < psf.shape.bundles()) psf.facts[at] = {0, 0, psf.shape.ccd_columns, 0};
}

__global__ void Locate(PsfArrays psf) {
  __shared__ Recurrence recurrence;
  recurrence.Fill();
  const PsfShape& shape = psf.shape;
  const int bin = blockIdx.x * blockDim.x + threadIdx.x, fibre = blockIdx.y;
  if (bin >= shape.bins) return;
  const int64_t at = SpotAt(psf, fibre, bin);
  const double wave = WaveOf(psf, bin);
  int first[2];
  for (int axis = 0; axis < 2; ++axis) {
    const int half = axis == 0 ? shape.half_x : shape.half_y;
    const double value = EvaluateSeries(psf, recurrence, fibre, axis, wave);
    const SpotPlace place = LocateSpot(value, half);
    first[axis] = place.first;
    (axis == 0 ? psf.offset_x : psf.offset_y)[at] = place.offset;
  }
  psf.first_column[at] = first[0];
  psf.first_row[at] = first[1];

  const int rows = shape.spot_rows(), columns = shape.spot_columns();
  if (first[1] <= -rows || first[1] >= shape.ccd_rows || first[0] <= -columns ||
      first[0] >= shape.ccd_columns) {
    return;
  }
  BundleFacts* facts = psf.facts + fibre / shape.bundle_size;
  const int left = max(first[0], 0), right = min(first[0] + columns, shape.ccd_columns);
  if (facts->first_column > left) atomicMin(&facts->first_column, left);
  if (facts->end_column < right) atomicMax(&facts->end_column, right);
  for (int row = max(first[1], 0); row < min(first[1] + rows, shape.ccd_rows); ++row) {
    int32_t* range = psf.row_bins + 4 * (static_cast<int64_t>(fibre) * shape.ccd_rows + row);
    // Most spots of a row extend nothing. What is read may be old; then the atomic changes nothing.
    const int4 now = *reinterpret_cast<const int4*>(range);
    if (bin < now.x) atomicMin(range, bin);
    if (bin >= now.y) atomicMax(range + 1, bin + 1);
    if (first[0] < now.z) atomicMin(range + 2, first[0]);
    if (first[0] > now.w) atomicMax(range + 3, first[0]);
  }
}

// Calls use(neighbour, slot) for the fibres of a fibre's bundle that are near enough to meet it.
template <typename Use>
__device__ void ForNeighbours(const PsfShape& shape, int fibre, const Use& use) {
  const int first = fibre / shape.bundle_size * shape.bundle_size;
  const int end = min(first + shape.bundle_size, shape.fibres);
  for (int k = max(first, fibre - kNeighbourReach); k < min(end, fibre + kNeighbourReach + 1); ++k) {
    use(k, fibre * kNeighbours + k - fibre + kNeighbourReach);
  }
}

__global__ void FindMeetings(PsfArrays psf) {
  const int bin = blockIdx.x * blockDim.x + threadIdx.x, fibre = blockIdx.y;
  if (bin >= psf.shape.bins) return;
  const int own = psf.first_column[SpotAt(psf, fibre, bin)];
  ForNeighbours(psf.shape, fibre, [&](int k, int slot) {
    const int apart = abs(own - psf.first_column[SpotAt(psf, k, bin)]);
    if (apart < psf.shape.spot_columns() && psf.meets[slot] == 0) atomicOr(psf.meets + slot, 1);
  });
}

__global__ void FindReach(PsfArrays psf) {
  const PsfShape& shape = psf.shape;
  const int bin = blockIdx.x * blockDim.x + threadIdx.x, fibre = blockIdx.y;
  if (bin >= shape.bins) return;
  const int own = psf.first_row[SpotAt(psf, fibre, bin)];
  int reach = 0, fibre_reach = 0;
  ForNeighbours(shape, fibre, [&](int k, int slot) {
    if (psf.meets[slot] == 0) return;
    fibre_reach = max(fibre_reach, abs(k - fibre));
    const int32_t* rows = psf.first_row + SpotAt(psf, k, 0);
    const int direction = rows[shape.bins - 1] >= rows[0] ? 1 : -1;
    // The first bin whose spot begins at least a spot's height after this one.
    int far = 0, end = shape.bins;
    while (far < end) {
      const int middle = (far + end) / 2;
      if (direction * (rows[middle] - own) < shape.spot_rows()) {
        far = middle + 1;
      } else {
        end = middle;
      }
    }
    reach = max(reach, far - 1 - bin);
  });
  BundleFacts* facts = psf.facts + fibre / shape.bundle_size;
  if (facts->reach < reach) atomicMax(&facts->reach, reach);
  if (facts->fibre_reach < fibre_reach) atomicMax(&facts->fibre_reach, fibre_reach);
}

}  // namespace

cudaError_t LocateSpots(const PsfArrays& psf, cudaStream_t stream) {
  const int64_t rows = static_cast<int64_t>(psf.shape.fibres) * psf.shape.ccd_rows;
  const int64_t most = rows > psf.shape.fibres * kNeighbours ? rows : psf.shape.fibres * kNeighbours;
  const dim3 grid((psf.shape.bins + kThreads - 1) / kThreads, psf.shape.fibres);
  return FirstError({
      Launch(Clear, static_cast<unsigned>((most + kThreads - 1) / kThreads), kThreads, 0, stream, psf),
      Launch(Locate, grid, kThreads, 0, stream, psf),
      Launch(FindMeetings, grid, kThreads, 0, stream, psf),
      Launch(FindReach, grid, kThreads, 0, stream, psf),
  });
}

}  // namespace spexd::cuda
