// Stage "model": the bundles' model images, and chi-square. Each pixel sums the spots that cover it,
// always in the same order.
//
// Floor for a frame: spots read once 1.76 GB, image 0.14 GB: 0.46 ms; 1.3 Gflop, 0.04 ms. This implementation
// reads spots twice, and writes and reads the windows of chi-square.
#include "core/extract/formulas.h"
#include "cuda/kernels/common/device.cuh"
#include "cuda/kernels/model.h"

namespace spexd::cuda {
namespace {

constexpr int kColumns = 128;
constexpr int kBatch = 5;  // bins fetched at once: about ten touch a row
constexpr int kWarps = 8;

// Contribution of a fibre's bins [begin, end) to a pixel's model. A warp's pixels are neighbours in a row.
__device__ __forceinline__ double GatherFibre(const ModelArgs& args, int fibre, int row, int column,
                                              int2 bins) {
  const PsfShape& shape = args.psf.shape;
  const int rows = shape.spot_rows(), columns = shape.spot_columns(), lane = threadIdx.x % kWarp;
  const int64_t first_spot = static_cast<int64_t>(fibre) * shape.bins;
  const double* const spots = args.psf.spots + first_spot * rows * columns;
  const double* const flux = args.flux + static_cast<int64_t>(fibre - args.fibres.first_fibre) * shape.bins;
  double model = 0;
  for (int base = bins.x; base < bins.y; base += kWarp) {
    int first_column = 0, first_row = 0;
    double f = 0;
    if (base + lane < bins.y) {
      first_column = args.psf.first_column[first_spot + base + lane];
      first_row = args.psf.first_row[first_spot + base + lane];
      f = flux[base + lane];
    }
    const int count = min(bins.y - base, kWarp);
    for (int j = 0; j < count; j += kBatch) {
      double value[kBatch];
      bool inside[kBatch];
#pragma unroll
      for (int k = 0; k < kBatch; ++k) {
        const int c = column - __shfl_sync(kAllLanes, first_column, j + k),
                  r = row - __shfl_sync(kAllLanes, first_row, j + k);
        inside[k] = j + k < count && static_cast<unsigned>(c) < static_cast<unsigned>(columns) &&
                    static_cast<unsigned>(r) < static_cast<unsigned>(rows);
        value[k] = inside[k] ? spots[(static_cast<int64_t>(base + j + k) * rows + r) * columns + c] : 0;
      }
#pragma unroll
      for (int k = 0; k < kBatch; ++k) {
        const double of_bin = Shuffle(f, j + k);
        if (inside[k]) model += of_bin * value[k];
      }
    }
  }
  return model;
}

// A warp takes 32 columns of a row. Each lane looks up one fibre, and then one bin of a fibre that is met.
__global__ void __launch_bounds__(kColumns) Model(ModelArgs args) {
  const PsfShape& shape = args.psf.shape;
  const int bundle = blockIdx.z;
  const Window window = args.model.windows[bundle];
  const int row = blockIdx.y, lane = threadIdx.x % kWarp, local = blockIdx.x * kColumns + threadIdx.x;
  const int column = window.first_column + local, warp_column = column - lane;
  if (local - lane >= window.columns) return;
  const int first = args.fibres.first_fibre + args.fibres.FirstOf(bundle);
  const int end = args.fibres.first_fibre + args.fibres.EndOf(bundle);

  double model = 0;
  for (int of_lanes = first; of_lanes < end; of_lanes += kWarp) {
    int4 own = {0, 0, 0, 0};
    if (of_lanes + lane < end) {
      own = reinterpret_cast<const int4*>(
          args.psf.row_bins)[static_cast<int64_t>(of_lanes + lane) * shape.ccd_rows + row];
    }
    const bool met =
        own.x < own.y && warp_column + kWarp > own.z && warp_column < own.w + shape.spot_columns();
    for (unsigned left = __ballot_sync(kAllLanes, met); left != 0; left &= left - 1) {
      const int slot = __ffs(left) - 1;
      const int2 bins = {__shfl_sync(kAllLanes, own.x, slot), __shfl_sync(kAllLanes, own.y, slot)};
      model += GatherFibre(args, of_lanes + slot, row, column, bins);
    }
  }
  if (local >= window.columns) return;
  const int64_t pixel = static_cast<int64_t>(row) * shape.ccd_columns + column;
  const int64_t out = static_cast<int64_t>(row) * window.columns + local;
  DeviceCheck(column < shape.ccd_columns);
  args.model.chi2[bundle * args.model.window_pixels + out] =
      PixelChiSquare(args.image.pixels[pixel], args.image.ivar[pixel], model, args.psferr);
  if (!args.want_model) return;
  std::byte* const of_bundle = args.output.bundles + bundle * args.output.bundle_bytes;
  reinterpret_cast<float*>(of_bundle + args.output.model)[out] = static_cast<float>(model);
}

// Sums over the pixels of each bin's spot.
__global__ void __launch_bounds__(kWarps* kWarp) SumSpots(ModelArgs args) {
  const PsfShape& shape = args.psf.shape;
  const int lane = threadIdx.x % kWarp, local = blockIdx.y;
  const int output_bin = blockIdx.x * kWarps + threadIdx.x / kWarp;
  if (output_bin >= shape.output_bins()) return;
  const int bin = output_bin + shape.pad, bundle = args.fibres.BundleOf(local);
  const int rows = shape.spot_rows(), columns = shape.spot_columns(), pixels = rows * columns;
  const int64_t spot = static_cast<int64_t>(args.fibres.first_fibre + local) * shape.bins + bin;
  const Window window = args.model.windows[bundle];
  const double* const chi2 = args.model.chi2 + bundle * args.model.window_pixels;
  const int first_row = args.psf.first_row[spot], first_column = args.psf.first_column[spot];
  const double* const values = args.psf.spots + spot * pixels;

  const int down = kWarp / columns, right = kWarp % columns;  // from a lane's pixel to its next
  double covered = 0, sum = 0;
  for (int p = lane, r = lane / columns, c = lane % columns; p < pixels; p += kWarp, r += down, c += right) {
    if (c >= columns) {
      c -= columns;
      ++r;
    }
    const int row = first_row + r, column = first_column + c;
    if (row < 0 || row >= shape.ccd_rows || column < 0 || column >= shape.ccd_columns) continue;
    const double value = values[p];
    if (args.image.ivar[static_cast<int64_t>(row) * shape.ccd_columns + column] > 0) covered += value;
    sum += value * chi2[static_cast<int64_t>(row) * window.columns + column - window.first_column];
  }
  covered = WarpSum(covered);
  sum = WarpSum(sum);
  const int64_t at = static_cast<int64_t>(local) * shape.output_bins() + output_bin;
  if (lane == 0) args.model.spots[at] = {covered, sum};
}

}  // namespace

cudaError_t ComputeModel(const ModelArgs& args, cudaStream_t stream) {
  const PsfShape& shape = args.psf.shape;
  const dim3 pixels((args.model.widest + kColumns - 1) / kColumns, shape.ccd_rows, args.fibres.bundles);
  const dim3 bins((shape.output_bins() + kWarps - 1) / kWarps, args.fibres.fibres);
  return FirstError({args.model.widest == 0 ? cudaSuccess : Launch(Model, pixels, kColumns, 0, stream, args),
                     Launch(SumSpots, bins, kWarps * kWarp, 0, stream, args)});
}

}  // namespace spexd::cuda
