// Stage "model": the bundles' model images, and chi-square. A fibre's spots are summed along the CCD's rows
// first; a pixel then adds the sums of the fibres that cover it, always in the same order.
//
// Floor for a frame: spots read once 1.76 GB, image 0.14 GB: 0.46 ms; 1.3 Gflop, 0.04 ms. This implementation
// reads spots twice, and writes and reads the windows of chi-square.
#include <climits>
#include <cmath>

#include "core/extract/formulas.h"
#include "cuda/kernels/common/device.cuh"
#include "cuda/kernels/model.h"

namespace spexd::cuda {
namespace {

constexpr int kColumns = 256;  // of a window, one for each thread of a block
constexpr int kRows = 4;       // CCD rows of a block
constexpr int kBatch = 2;      // bins fetched at once: about ten touch these rows
constexpr int kWarps = 8;
constexpr int kWarpBins = 4;  // bins whose spots a warp sums
constexpr int kTogether = 6;  // rows of a spot fetched at once

// Where a fibre crosses a block's rows: its spots of bins [begin, end), in columns [left, right).
struct Crossing {
  int begin, end, left, right;

  __device__ Crossing OfLane(int lane) const {
    return {__shfl_sync(kAllLanes, begin, lane), __shfl_sync(kAllLanes, end, lane),
            __shfl_sync(kAllLanes, left, lane), __shfl_sync(kAllLanes, right, lane)};
  }
};

__device__ __forceinline__ Crossing CrossingOf(const PsfShape& shape, const int32_t* row_bins, int fibre,
                                               int first_row, int end_row) {
  Crossing crossing = {shape.bins, 0, INT_MAX, INT_MIN};
  for (int row = first_row; row < end_row; ++row) {
    const int4 bins =
        reinterpret_cast<const int4*>(row_bins)[static_cast<int64_t>(fibre) * shape.ccd_rows + row];
    if (bins.x >= bins.y) continue;
    crossing.begin = min(crossing.begin, bins.x);
    crossing.end = max(crossing.end, bins.y);
    crossing.left = min(crossing.left, bins.z);
    crossing.right = max(crossing.right, bins.w + shape.spot_columns());
  }
  return crossing;
}

// Adds flux times spots in one column per lane, in the kRows rows from `row` on.
__device__ __forceinline__ void AddSpots(const ModelArgs& args, int fibre, const Crossing& of, int row,
                                         int column, double (&sums)[kRows]) {
  const PsfShape& shape = args.psf.shape;
  const int rows = shape.spot_rows(), columns = shape.spot_columns(), lane = threadIdx.x % kWarp;
  const int64_t first_spot = static_cast<int64_t>(fibre) * shape.bins;
  const double* const flux = args.flux + static_cast<int64_t>(fibre - args.fibres.first_fibre) * shape.bins;
  for (int base = of.begin; base < of.end; base += kWarp) {
    // Each lane has a bin: its place, and where a spot's value at CCD row 0, column 0 would lie.
    int first_row = INT_MAX / 2, first_column = 0, origin = 0;
    double f = 0;
    if (base + lane < of.end) {
      first_row = args.psf.first_row[first_spot + base + lane];
      first_column = args.psf.first_column[first_spot + base + lane];
      origin = lane * rows * columns - first_row * columns - first_column;
      f = flux[base + lane];
    }
    const double* const spots =
        args.psf.spots + (first_spot + base) * rows * columns + row * columns + column;
    const int count = min(of.end - base, kWarp);
    for (int j = 0; j < count; j += kBatch) {
      double value[kBatch][kRows];
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        const int r = row - __shfl_sync(kAllLanes, first_row, j + i),
                  c = column - __shfl_sync(kAllLanes, first_column, j + i);
        const double* from = spots + __shfl_sync(kAllLanes, origin, j + i);
#pragma unroll
        for (int k = 0; k < kRows; ++k, from += columns) {
          const bool inside = static_cast<unsigned>(c) < static_cast<unsigned>(columns) &&
                              static_cast<unsigned>(r + k) < static_cast<unsigned>(rows);
          value[i][k] = inside ? *from : 0;
        }
      }
#pragma unroll
      for (int i = 0; i < kBatch; ++i) {
        const double of_bin = Shuffle(f, j + i);
#pragma unroll
        for (int k = 0; k < kRows; ++k) sums[k] = fma(of_bin, value[i][k], sums[k]);
      }
    }
  }
}

// A block takes kColumns columns of kRows rows of a bundle's window. A warp sums the spots of a fibre, with a
// column in each lane; then each thread adds the sums of all fibres in its own column.
__global__ void __launch_bounds__(kColumns, 4) Model(ModelArgs args) {
  __shared__ double sums[kWarp][kRows][kWarp];  // [fibre of a group, row, column from the fibre's first on]
  const PsfShape& shape = args.psf.shape;
  const int bundle = blockIdx.z, lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  const Window window = args.model.windows[bundle];
  if (blockIdx.x * kColumns >= window.columns) return;
  const int first_row = blockIdx.y * kRows, end_row = min(first_row + kRows, shape.ccd_rows);
  const int first_column = window.first_column + blockIdx.x * kColumns,
            end_column = min(first_column + kColumns, window.first_column + window.columns);
  const int column = first_column + threadIdx.x;
  const int first = args.fibres.first_fibre + args.fibres.FirstOf(bundle),
            end = args.fibres.first_fibre + args.fibres.EndOf(bundle);

  double model[kRows] = {};
  for (int group = first; group < end; group += kWarp) {
    const Crossing own = CrossingOf(shape, args.psf.row_bins, min(group + lane, end - 1), first_row, end_row);
    const auto met_in = [&](int left, int right) {
      return __ballot_sync(kAllLanes, group + lane < end && own.left < right && own.right > left);
    };
    const unsigned met = met_in(first_column, end_column),
                   met_by_warp = met_in(column - lane, min(column - lane + kWarp, end_column));
    const int widest = __reduce_max_sync(kAllLanes, (met >> lane & 1) != 0 ? own.right - own.left : 0);
    // One turn, unless the spots of a fibre span more columns here than a warp has lanes.
    for (int turn = 0; turn < widest; turn += kWarp) {
      for (int slot = warp; slot < kWarp; slot += kWarps) {
        if ((met >> slot & 1) == 0) continue;
        const Crossing crossing = own.OfLane(slot);
        double of_lane[kRows] = {};
        AddSpots(args, group + slot, crossing, first_row, crossing.left + turn + lane, of_lane);
#pragma unroll
        for (int k = 0; k < kRows; ++k) sums[slot][k][lane] = of_lane[k];
      }
      __syncthreads();
      for (unsigned others = met_by_warp; others != 0; others &= others - 1) {
        const int slot = __ffs(others) - 1, at = column - __shfl_sync(kAllLanes, own.left, slot) - turn;
#pragma unroll
        for (int k = 0; k < kRows; ++k) {
          if (static_cast<unsigned>(at) < kWarp) model[k] += sums[slot][k][at];
        }
      }
      __syncthreads();
    }
  }
  if (column >= end_column) return;
  DeviceCheck(column < shape.ccd_columns);
  std::byte* const of_bundle = args.output.bundles + bundle * args.output.bundle_bytes;
#pragma unroll
  for (int k = 0; k < kRows; ++k) {
    const int row = first_row + k;
    if (row >= end_row) break;
    const int64_t pixel = static_cast<int64_t>(row) * shape.ccd_columns + column;
    const int64_t out = static_cast<int64_t>(row) * window.columns + column - window.first_column;
    const double ivar = args.image.ivar[pixel];
    // The sign tells whether the pixel counts.
    args.model.chi2[bundle * args.model.window_pixels + out] =
        ivar > 0 ? fabs(PixelChiSquare(args.image.pixels[pixel], ivar, model[k], args.psferr)) : -0.0;
    if (args.want_model)
      reinterpret_cast<float*>(of_bundle + args.output.model)[out] = static_cast<float>(model[k]);
  }
}

// Sums over the pixels of each bin's spot, with a column of the spot in each lane.
__global__ void __launch_bounds__(kWarps* kWarp) SumSpots(ModelArgs args) {
  const PsfShape& shape = args.psf.shape;
  const int lane = threadIdx.x % kWarp, local = blockIdx.y, bundle = args.fibres.BundleOf(local);
  const int rows = shape.spot_rows(), columns = shape.spot_columns();
  const Window window = args.model.windows[bundle];
  const double* const of_bundle = args.model.chi2 + bundle * args.model.window_pixels - window.first_column;
  const int first = (blockIdx.x * kWarps + threadIdx.x / kWarp) * kWarpBins;
  for (int output_bin = first; output_bin < min(first + kWarpBins, shape.output_bins()); ++output_bin) {
    const int64_t spot =
        static_cast<int64_t>(args.fibres.first_fibre + local) * shape.bins + shape.pad + output_bin;
    const int first_row = args.psf.first_row[spot], first_column = args.psf.first_column[spot];
    const int begin = max(-first_row, 0), end = min(rows, shape.ccd_rows - first_row);
    double covered = 0, sum = 0;
    for (int c = lane; c < columns; c += kWarp) {
      const int column = first_column + c;
      if (static_cast<unsigned>(column) >= static_cast<unsigned>(shape.ccd_columns)) continue;
      const double* value = args.psf.spots + (spot * rows + begin) * columns + c;
      const double* chi2 = of_bundle + static_cast<int64_t>(first_row + begin) * window.columns + column;
      for (int r = begin; r < end; r += kTogether) {
        double values[kTogether], of_pixels[kTogether];
#pragma unroll
        for (int k = 0; k < kTogether; ++k, value += columns, chi2 += window.columns) {
          if (r + k < end) {
            values[k] = *value;
            of_pixels[k] = *chi2;
          }
        }
#pragma unroll
        for (int k = 0; k < kTogether; ++k) {
          if (r + k >= end) break;
          if (!std::signbit(of_pixels[k])) covered += values[k];
          sum = fma(values[k], of_pixels[k], sum);
        }
      }
    }
    covered = WarpSum(covered);
    sum = WarpSum(sum);
    const int64_t at = static_cast<int64_t>(local) * shape.output_bins() + output_bin;
    if (lane == 0) args.model.spots[at] = {covered, sum};
  }
}

}  // namespace

cudaError_t ComputeModel(const ModelArgs& args, cudaStream_t stream) {
  const PsfShape& shape = args.psf.shape;
  const dim3 pixels((args.model.widest + kColumns - 1) / kColumns, (shape.ccd_rows + kRows - 1) / kRows,
                    args.fibres.bundles);
  constexpr int kBins = kWarps * kWarpBins;
  const dim3 bins((shape.output_bins() + kBins - 1) / kBins, args.fibres.fibres);
  return FirstError({args.model.widest == 0 ? cudaSuccess : Launch(Model, pixels, kColumns, 0, stream, args),
                     Launch(SumSpots, bins, kWarps * kWarp, 0, stream, args)});
}

}  // namespace spexd::cuda
