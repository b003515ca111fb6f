// Positions of spots, and the facts about each bundle that follow from them. Compiled without fused
// multiply-add, so that positions equal those of core/plan to the bit.
//
// Floor: 12 series terms and 24 bytes a spot, 16 bytes a fibre and CCD row, negligible beside the other
// stages.
#include <climits>

#include "core/model/spots/stamp.h"
#include "cuda/kernels/common/device.cuh"
#include "cuda/kernels/common/legendre.cuh"
#include "cuda/kernels/locate.h"

namespace spexd::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kRowThreads = 512;

__device__ int64_t SpotAt(const PsfArrays& psf, int fibre, int bin) {
  return static_cast<int64_t>(fibre) * psf.shape.bins + bin;
}

// Returns the first bin of [first, end) for which `after` holds, or `end`. REQUIRES: all bins behind it
// satisfy `after`, too.
template <typename After>
__device__ int FirstBin(int first, int end, const After& after) {
  while (first < end) {
    const int middle = (first + end) / 2;
    if (after(middle)) {
      end = middle;
    } else {
      first = middle + 1;
    }
  }
  return end;
}

__global__ void Clear(PsfArrays psf) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
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
  int first[2];
  for (int axis = 0; axis < 2; ++axis) {
    const double least = psf.traces.domains[2 * axis], width = psf.traces.domains[2 * axis + 1] - least;
    const double t[1] = {2 * (WaveOf(psf, bin) - least) / width - 1};
    double centre[1];
    EvaluateSeries(SeriesOf(psf.traces, fibre, axis), psf.traces.shape.coefficients, recurrence, t, centre);
    const SpotPosition position = LocateSpot(centre[0], axis == 0 ? shape.stamp.x : shape.stamp.y);
    first[axis] = position.first;
    (axis == 0 ? psf.offset_x : psf.offset_y)[at] = position.offset;
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
}

// Finds the bins that cover a row of the CCD, by bisection if the spots' rows only ascend or only descend
// from bin to bin. No check of PSFs demands this; if a trace reverses, all of its bins are searched.
__global__ void __launch_bounds__(kRowThreads) FindRowBins(PsfArrays psf) {
  const PsfShape& shape = psf.shape;
  const int fibre = blockIdx.y, row = blockIdx.x * blockDim.x + threadIdx.x, height = shape.spot_rows();
  const int32_t* const rows = psf.first_row + SpotAt(psf, fibre, 0);
  const int32_t* const columns = psf.first_column + SpotAt(psf, fibre, 0);
  const bool ascends = rows[shape.bins - 1] >= rows[0];
  bool reverses = false;
  for (int bin = threadIdx.x; bin + 1 < shape.bins; bin += blockDim.x)
    reverses |= ascends ? rows[bin + 1] < rows[bin] : rows[bin + 1] > rows[bin];
  reverses = __syncthreads_or(reverses);
  if (row >= shape.ccd_rows) return;
  int first = 0, end = shape.bins;
  if (!reverses) {
    const auto reaches = [&](int bin) { return ascends ? rows[bin] + height > row : rows[bin] <= row; };
    const auto passes = [&](int bin) { return ascends ? rows[bin] > row : rows[bin] + height <= row; };
    first = FirstBin(0, end, reaches);
    end = FirstBin(first, end, passes);
  }
  int4 found = {shape.bins, 0, INT_MAX, INT_MIN};
  for (int bin = first; bin < end; ++bin) {
    if (rows[bin] > row || rows[bin] + height <= row || columns[bin] <= -shape.spot_columns() ||
        columns[bin] >= shape.ccd_columns)
      continue;
    found = {min(found.x, bin), bin + 1, min(found.z, columns[bin]), max(found.w, columns[bin])};
  }
  reinterpret_cast<int4*>(psf.row_bins)[static_cast<int64_t>(fibre) * shape.ccd_rows + row] = found;
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
    const int far = FirstBin(0, shape.bins,
                             [&](int other) { return direction * (rows[other] - own) >= shape.spot_rows(); });
    reach = max(reach, far - 1 - bin);
  });
  BundleFacts* facts = psf.facts + fibre / shape.bundle_size;
  if (facts->reach < reach) atomicMax(&facts->reach, reach);
  if (facts->fibre_reach < fibre_reach) atomicMax(&facts->fibre_reach, fibre_reach);
}

}  // namespace

cudaError_t LocateSpots(const PsfArrays& psf, cudaStream_t stream) {
  const unsigned cleared = psf.shape.fibres * kNeighbours;  // at least the number of bundles
  const dim3 grid((psf.shape.bins + kThreads - 1) / kThreads, psf.shape.fibres);
  const dim3 rows((psf.shape.ccd_rows + kRowThreads - 1) / kRowThreads, psf.shape.fibres);
  return FirstError({
      Launch(Clear, (cleared + kThreads - 1) / kThreads, kThreads, 0, stream, psf),
      Launch(Locate, grid, kThreads, 0, stream, psf),
      Launch(FindRowBins, rows, kRowThreads, 0, stream, psf),
      Launch(FindMeetings, grid, kThreads, 0, stream, psf),
      Launch(FindReach, grid, kThreads, 0, stream, psf),
  });
}

}  // namespace spexd::cuda
