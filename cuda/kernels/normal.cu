// Stage "normal": A^T W A, A^T W p and A^T W 1 straight from spots, a warp to a spot.
//
// Floor for a frame: spots read 1.76 GB, image 0.14 GB, products of pairs written 0.34 GB: 0.53 ms; 5.1
// Gflop, 0.15 ms. As laid out here pairs that share no pixels are written, too.
#include "core/model/tolerances.h"
#include "cuda/kernels/device.cuh"
#include "cuda/kernels/kernels.h"

namespace spexd::cuda {
namespace {

constexpr int kSpotFibres = 4, kSpotBins = 2;  // of the spots of a block, which share neighbours in cache
constexpr int kWarps = kSpotFibres * kSpotBins;
constexpr int kSegments = 6;  // of 32 pixels, held in registers at once
constexpr int kBatch = 8;     // pairs summed at once

__global__ void __launch_bounds__(kWarps* kWarp) Products(JobView job) {
  const PsfShape& shape = job.psf.shape;
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const int bin = blockIdx.x * kSpotBins + warp / kSpotFibres;
  const int local = blockIdx.y * kSpotFibres + warp % kSpotFibres;  // fibre of the job
  if (bin >= shape.bins || local >= job.fibres) return;
  const int fibre = job.first_fibre + local;
  const int rows = shape.spot_rows(), columns = shape.spot_columns(), pixels = rows * columns;
  const int64_t spot = static_cast<int64_t>(fibre) * shape.bins + bin;
  const int64_t at = static_cast<int64_t>(local) * shape.bins + bin;
  const int first_row = job.psf.first_row[spot], first_column = job.psf.first_column[spot];
  const double* own = job.psf.spots + spot * pixels;
  const int pairs = (job.pair_reach + 1) * job.pair_side;
  double* out = job.pairs + at * pairs;

  const int bundle = fibre / shape.bundle_size;
  const int bundle_first = bundle * shape.bundle_size,
            bundle_end = min(bundle_first + shape.bundle_size, shape.fibres);
  const int reach = job.psf.facts[bundle].reach, side_reach = job.pair_side / 2;

  double weighted[kSegments];  // spot * ivar of this lane's pixels, and their places
  int row_of[kSegments], column_of[kSegments];
  const auto load = [&](int base, double* data, double* weight) {
#pragma unroll
    for (int m = 0; m < kSegments; ++m) {
      const int p = base + m * kWarp + lane;
      row_of[m] = p / columns;
      column_of[m] = p - row_of[m] * columns;
      weighted[m] = 0;
      const int row = first_row + row_of[m], column = first_column + column_of[m];
      if (p < pixels && row >= 0 && row < shape.ccd_rows && column >= 0 && column < shape.ccd_columns) {
        const int64_t pixel = static_cast<int64_t>(row) * shape.ccd_columns + column;
        weighted[m] = own[p] * job.ivar[pixel];
        *weight += weighted[m];
        *data += weighted[m] * job.pixels[pixel];
      }
    }
  };

  double data = 0, weight = 0;
  for (int base = 0; base < pixels; base += kSegments * kWarp) load(base, &data, &weight);
  data = WarpSum(data);
  weight = WarpSum(weight);
  if (lane == 0) {
    job.data[at] = data;
    job.weight[at] = weight;
  }
  if (!(weight > 0)) {  // nothing usable below this spot
    for (int p = lane; p < pairs; p += kWarp) out[p] = 0;
    return;
  }

  // A lane looks up the neighbours of its own pairs; what meets nothing is far away.
  constexpr int kFar = 1 << 14;
  for (int base_pair = 0; base_pair < pairs; base_pair += kWarp) {
    const int own_pair = base_pair + lane, dbin = own_pair / job.pair_side;
    const int other_fibre = fibre + own_pair - dbin * job.pair_side - side_reach;
    int own_dx = kFar, own_dy = kFar;
    int64_t own_other = spot;
    if (own_pair < pairs && dbin <= reach && bin + dbin < shape.bins && other_fibre >= bundle_first &&
        other_fibre < bundle_end && (dbin > 0 || other_fibre >= fibre)) {
      own_other = static_cast<int64_t>(other_fibre) * shape.bins + bin + dbin;
      own_dx = job.psf.first_column[own_other] - first_column;
      own_dy = job.psf.first_row[own_other] - first_row;
    }
    for (int first = 0; first < kWarp && base_pair + first < pairs; first += kBatch) {
      double sum[kBatch];
#pragma unroll
      for (int k = 0; k < kBatch; ++k) sum[k] = 0;
      for (int base = 0; base < pixels; base += kSegments * kWarp) {
        if (pixels > kSegments * kWarp) {
          double again = 0;
          load(base, &again, &again);
        }
#pragma unroll
        for (int k = 0; k < kBatch; ++k) {
          const int dx = __shfl_sync(kAllLanes, own_dx, first + k),
                    dy = __shfl_sync(kAllLanes, own_dy, first + k);
          const int64_t other = __shfl_sync(kAllLanes, own_other, first + k);
          if (abs(dx) >= columns || abs(dy) >= rows) continue;
          const double* from = job.psf.spots + other * pixels - (dy * columns + dx) + base + lane;
#pragma unroll
          for (int m = 0; m < kSegments; ++m) {
            const bool meets = static_cast<unsigned>(row_of[m] - dy) < static_cast<unsigned>(rows) &&
                               static_cast<unsigned>(column_of[m] - dx) < static_cast<unsigned>(columns) &&
                               row_of[m] < rows;
            if (meets) sum[k] = fma(weighted[m], from[m * kWarp], sum[k]);
          }
        }
      }
      double total = SumEach(sum);
      total += ShuffleXor(total, 8);
      total += ShuffleXor(total, 16);
      if (lane < kBatch && base_pair + first + lane < pairs) out[base_pair + first + lane] = total;
    }
  }
}

__global__ void MostWeight(JobView job) {
  __shared__ double most[kWarp];
  const double* weight = job.weight + static_cast<int64_t>(blockIdx.x) * job.psf.shape.bins;
  double own = 0;
  for (int j = threadIdx.x; j < job.psf.shape.bins; j += blockDim.x) own = fmax(own, weight[j]);
  for (int mask = kWarp / 2; mask > 0; mask /= 2) own = fmax(own, ShuffleXor(own, mask));
  if (threadIdx.x % kWarp == 0) most[threadIdx.x / kWarp] = own;
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int k = 1; k < blockDim.x / kWarp; ++k) own = fmax(own, most[k]);
    job.most_weight[blockIdx.x] = own;
  }
}

}  // namespace

cudaError_t ComputeNormal(const JobView& job, cudaStream_t stream) {
  const dim3 grid((job.psf.shape.bins + kSpotBins - 1) / kSpotBins,
                  (job.fibres + kSpotFibres - 1) / kSpotFibres);
  return FirstError({Launch(Products, grid, kWarps * kWarp, 0, stream, job),
                     Launch(MostWeight, job.fibres, 256, 0, stream, job)});
}

}  // namespace spexd::cuda
