// Stage "normal": A^T W A, A^T W p and A^T W 1 straight from spots, on the matrix units.
//
// A warp takes 16 bins of a fibre, and 32 at a time of those of the same or a later fibre that may share
// pixels with them. It goes through the CCD rows of both: in a row it adds S W T^T, where a line of S or T is
// a spot's values in the columns where both fibres have spots, and W has the pixels' ivar.
//
// Floor for a frame (500 fibres of 2350 bins, spots of 17 x 11 pixels): spots read 1.76 GB, image 0.14 GB,
// products of pairs written 0.34 GB: 0.53 ms; 5.1 Gflop, 0.09 ms. The matrix units do 58 Gflop here, 1 ms,
// most of it on bins of a tile that a row does not touch.
#include "core/model/tolerances.h"
#include "cuda/kernels/device.cuh"
#include "cuda/kernels/kernels.h"

namespace spexd::cuda {
namespace {

constexpr int kWarps = 4;         // neighbouring fibres, which share spots in cache
constexpr int kBins = 2 * kTile;  // that a warp takes, ...
constexpr int kTiles = 4;         // ... with so many tiles of others at once
constexpr int kOthers = kTiles * kTile;

// The spot of a bin, by places on the CCD.
struct PlacedSpot {
  int first_row, first_column;
  int origin;  // in its fibre's spots, of where CCD row 0, column 0 would be
  bool there;

  __device__ PlacedSpot(const PsfView& psf, int fibre, int bin) : there(bin < psf.shape.bins) {
    const int known = there ? bin : 0;
    const int64_t spot = static_cast<int64_t>(fibre) * psf.shape.bins + known;
    first_row = psf.first_row[spot];
    first_column = psf.first_column[spot];
    origin = (known * psf.shape.spot_rows() - first_row) * psf.shape.spot_columns() - first_column;
  }
  // Its values there in columns `column` and `column` + 4, zero beside it. `spots`: its fibre's.
  __device__ void Load(const PsfShape& shape, const double* spots, int row, int column,
                       double (&value)[2]) const {
    const bool covered =
        there && static_cast<unsigned>(row - first_row) < static_cast<unsigned>(shape.spot_rows());
    const int at = origin + row * shape.spot_columns() + column;
#pragma unroll
    for (int c = 0; c < 2; ++c) {
      const unsigned within = column + 4 * c - first_column;
      value[c] = covered && within < static_cast<unsigned>(shape.spot_columns()) ? spots[at + 4 * c] : 0;
    }
  }
};

// CCD rows [first, end) that some of a warp's spots touch.
struct Rows {
  int first, end;
  template <int kCount>
  __device__ Rows(const PsfShape& shape, const PlacedSpot (&spots)[kCount]) {
    int least = shape.ccd_rows, most = -1;
    for (const PlacedSpot& spot : spots) {
      if (!spot.there) continue;
      least = min(least, spot.first_row);
      most = max(most, spot.first_row + shape.spot_rows());
    }
    first = max(-__reduce_max_sync(kAllLanes, -least), 0);
    end = min(__reduce_max_sync(kAllLanes, most), shape.ccd_rows);
  }
};

// What a warp adds up: products of its bins with those of some tiles, and, of its bins alone, their data and
// weight.
struct Sums {
  double products[kTiles][4] = {};
  double data[2] = {0, 0}, weight[2] = {0, 0};
};

// Bins [first, first + kBins) of `fibre` and [other_first, other_first + kOthers) of `other`; kOwn: with data
// and weight.
template <bool kOwn>
__device__ __forceinline__ void Multiply(const JobView& job, int fibre, int first, int other, int other_first,
                                         Sums* sums) {
  const PsfView& psf = job.psf;
  const PsfShape& shape = psf.shape;
  const int line = threadIdx.x % kWarp / 4, quarter = threadIdx.x % 4;
  const PlacedSpot own[2] = {{psf, fibre, first + line}, {psf, fibre, first + kTile + line}};
  const PlacedSpot others[kTiles] = {{psf, other, other_first + line},
                                     {psf, other, other_first + kTile + line},
                                     {psf, other, other_first + 2 * kTile + line},
                                     {psf, other, other_first + 3 * kTile + line}};
  const double* const own_spots = psf.spots + static_cast<int64_t>(fibre) * shape.bins * shape.spot_pixels();
  const double* const other_spots =
      psf.spots + static_cast<int64_t>(other) * shape.bins * shape.spot_pixels();
  const Rows own_rows(shape, own), other_rows(shape, others);
  const int4* const own_bins =
      reinterpret_cast<const int4*>(psf.row_bins) + static_cast<int64_t>(fibre) * shape.ccd_rows;
  const int4* const other_bins =
      reinterpret_cast<const int4*>(psf.row_bins) + static_cast<int64_t>(other) * shape.ccd_rows;

  const int begin = max(own_rows.first, other_rows.first), end = min(own_rows.end, other_rows.end);
  int4 next_ours = {}, next_theirs = {};  // a row ahead, so that nothing waits for them
  const auto look_ahead = [&](int row) {
    if (row >= end) return;
    next_ours = own_bins[row];
    next_theirs = other_bins[row];
  };
  look_ahead(begin);
  for (int row = begin; row < end; ++row) {
    const int4 ours = next_ours, theirs = next_theirs;
    look_ahead(row + 1);
    const int first_tile = max(theirs.x - other_first, 0) / kTile,
              end_tile = (min(theirs.y - other_first, kOthers) + kTile - 1) / kTile;
    if (ours.x >= first + kBins || ours.y <= first || first_tile >= end_tile) continue;
    const float* const ivar = job.ivar + static_cast<int64_t>(row) * shape.ccd_columns;
    const float* const pixels = job.pixels + static_cast<int64_t>(row) * shape.ccd_columns;
    const int columns_end = min(min(ours.w, theirs.w) + shape.spot_columns(), shape.ccd_columns);
    for (int left = max(max(ours.z, theirs.z), 0) + quarter; left - quarter < columns_end; left += kTile) {
      // All loads before the first use.
      float w[2], pixel[2];
      double mine[2][2], weighted[2][2], b[kTiles][2];
#pragma unroll
      for (int c = 0; c < 2; ++c) {
        const int column = left + 4 * c;
        w[c] = column < columns_end ? ivar[column] : 0;
        if (kOwn) pixel[c] = column < columns_end ? pixels[column] : 0;
      }
#pragma unroll
      for (int i = 0; i < 2; ++i) own[i].Load(shape, own_spots, row, left, mine[i]);
#pragma unroll
      for (int t = kOwn ? 2 : 0; t < kTiles; ++t) {
        if (t >= first_tile && t < end_tile) others[t].Load(shape, other_spots, row, left, b[t]);
      }
#pragma unroll
      for (int i = 0; i < 2; ++i) {
#pragma unroll
        for (int c = 0; c < 2; ++c) {
          weighted[i][c] = w[c] * mine[i][c];
          if constexpr (kOwn) {
            sums->weight[i] += weighted[i][c];
            sums->data[i] = fma(weighted[i][c], pixel[c], sums->data[i]);
          }
        }
      }
#pragma unroll
      for (int t = 0; t < kTiles; ++t) {
        if (t < first_tile || t >= end_tile) continue;
        MultiplyAdd16(weighted[0], weighted[1], kOwn && t < 2 ? mine[t % 2] : b[t], sums->products[t]);
      }
    }
  }
}

__device__ void KeepOwn(const JobView& job, int local, int first, const Sums& sums) {
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    double data = sums.data[i], weight = sums.weight[i];
    for (int mask = 1; mask < 4; mask *= 2) {
      data += ShuffleXor(data, mask);
      weight += ShuffleXor(weight, mask);
    }
    const int bin = first + i * kTile + threadIdx.x % kWarp / 4;
    if (threadIdx.x % 4 != 0 || bin >= job.psf.shape.bins) continue;
    const int64_t at = static_cast<int64_t>(local) * job.psf.shape.bins + bin;
    job.data[at] = data;
    job.weight[at] = weight;
  }
}

// Products go to the pair of the earlier bin; what is not near enough to be of the band, nowhere.
__device__ void KeepProducts(const JobView& job, int local, int apart, int first, int other_first, int reach,
                             const Sums& sums) {
  const int line = threadIdx.x % kWarp / 4, quarter = threadIdx.x % 4, bins = job.psf.shape.bins;
  const int side_reach = job.pair_side / 2, pairs = (job.pair_reach + 1) * job.pair_side;
#pragma unroll
  for (int t = 0; t < kTiles; ++t) {
#pragma unroll
    for (int k = 0; k < 4; ++k) {
      const int bin = first + k / 2 * kTile + line, other = other_first + t * kTile + 2 * quarter + k % 2;
      const int dbin = other - bin;
      if (bin >= bins || other >= bins || abs(dbin) > reach || (apart == 0 && dbin < 0)) continue;
      const int64_t at = dbin >= 0 ? static_cast<int64_t>(local) * bins + bin
                                   : static_cast<int64_t>(local + apart) * bins + other;
      job.pairs[at * pairs + abs(dbin) * job.pair_side + side_reach + (dbin >= 0 ? apart : -apart)] =
          sums.products[t][k];
    }
  }
}

__global__ void __launch_bounds__(kWarps* kWarp, 4) Products(JobView job) {
  const PsfShape& shape = job.psf.shape;
  const int first = blockIdx.x * kBins;
  const int local = blockIdx.y * kWarps + threadIdx.x / kWarp;  // fibre of the job
  if (local >= job.fibres) return;
  const int fibre = job.first_fibre + local, bundle = fibre / shape.bundle_size;
  const int bundle_end = min((bundle + 1) * shape.bundle_size, shape.fibres);
  const int reach = job.psf.facts[bundle].reach;
  const int side_reach = min(job.psf.facts[bundle].fibre_reach, job.pair_side / 2);

  for (int apart = 0; apart <= side_reach && fibre + apart < bundle_end; ++apart) {
    // Of the own fibre, later bins alone.
    const int begin = apart == 0 ? first : max(first - reach, 0) / kTile * kTile;
    const int end = min(first + kBins + reach, shape.bins);
    for (int other_first = begin; other_first < end; other_first += kOthers) {
      Sums sums;
      if (apart == 0 && other_first == begin) {
        Multiply<true>(job, fibre, first, fibre, other_first, &sums);
        KeepOwn(job, local, first, sums);
      } else {
        Multiply<false>(job, fibre, first, fibre + apart, other_first, &sums);
      }
      KeepProducts(job, local, apart, first, other_first, reach, sums);
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
  const dim3 grid((job.psf.shape.bins + kBins - 1) / kBins, (job.fibres + kWarps - 1) / kWarps);
  return FirstError({Launch(Products, grid, kWarps * kWarp, 0, stream, job),
                     Launch(MostWeight, job.fibres, 256, 0, stream, job)});
}

}  // namespace spexd::cuda
