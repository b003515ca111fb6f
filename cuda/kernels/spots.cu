// Stage "spots": all spots of a PSF on its grid, a warp to a spot (core/model/spot_formula.h). With the
// integrals G of the pixel rows and columns and the amplitudes of the terms, a spot is G_y^T (A^T G_x), on
// the matrix units.
//
// Floor for a frame (500 fibres of 2350 bins, 17 x 11 pixels, 49 terms): 1.76 GB written, 0.42 ms; 7.2 Gflop,
// 0.21 ms.
#include "core/model/spot_formula.h"
#include "cuda/kernels/device.cuh"
#include "cuda/kernels/psf_kernels.h"
#include "cuda/kernels/legendre.cuh"

namespace spexd::cuda {
namespace {

constexpr int kMostWarps = 4;  // of a block, each with a spot
constexpr int kXAndY = 2;      // the series of the trace come first
constexpr int kWidths = 2;     // then those of the widths, the terms', and the tail's
constexpr int kRowBlock = 2 * kTile;

__host__ __device__ inline int RoundedUp(int count, int multiple) {
  return (count + multiple - 1) / multiple * multiple;
}

// Shared memory of one warp, in doubles; degrees are filled up to whole tiles.
struct SpotScratch {
  int degrees_x, degrees_y;
  int stride;  // of h: rows of an odd number of pairs share no banks
  int parameters, amplitudes, gx, gy, h, values, total;
  __host__ __device__ explicit SpotScratch(const PsfShape& shape)
      : degrees_x(RoundedUp(shape.degree_x + 1, kTile)),
        degrees_y(RoundedUp(shape.degree_y + 1, kTile)),
        stride(degrees_x + 2) {
    parameters = 0;
    amplitudes = RoundedUp(shape.series() - shape.terms, 2);       // [degree x, degree y]
    h = amplitudes + degrees_x * degrees_y;                        // [row, degree x]
    gx = h + RoundedUp(shape.spot_rows(), kRowBlock) * stride;     // [degree, edge]
    gy = gx + (shape.degree_x + 1) * (shape.spot_columns() + 1);   // [degree, edge]
    values = gy + (shape.degree_y + 1) * (shape.spot_rows() + 1);  // [row, column]
    total = RoundedUp(values + shape.spot_pixels(), 2);
  }
};

// The integral of a degree over a pixel, from the antiderivatives at its edges; zero beyond what there is.
__device__ inline double Integral(const double* edges, int degrees, int pixels, int degree, int pixel) {
  if (degree >= degrees || pixel >= pixels) return 0;
  const double* edge = edges + degree * (pixels + 1) + pixel;
  return edge[1] - edge[0];
}

__global__ void __launch_bounds__(kMostWarps* kWarp, 8) Evaluate(PsfArrays psf) {
  __shared__ Recurrence recurrence;
  recurrence.Fill();
  const PsfShape& shape = psf.shape;
  const SpotScratch scratch(shape);
  const int lane = threadIdx.x % kWarp, fibre = blockIdx.y;
  const int bin = blockIdx.x * (blockDim.x / kWarp) + threadIdx.x / kWarp;
  if (bin >= shape.bins) return;
  double* const own = DynamicShared() + threadIdx.x / kWarp * scratch.total;
  double *parameter = own + scratch.parameters, *amplitude = own + scratch.amplitudes, *gx = own + scratch.gx,
         *gy = own + scratch.gy, *h = own + scratch.h, *values = own + scratch.values;
  const int64_t at = static_cast<int64_t>(fibre) * shape.bins + bin;
  const int rows = shape.spot_rows(), columns = shape.spot_columns(), pixels = rows * columns;
  double* out = psf.spots + at * pixels;

  for (int i = lane; i < scratch.degrees_x * scratch.degrees_y; i += kWarp) amplitude[i] = 0;
  __syncwarp();
  const double wave = WaveOf(psf, bin);
  for (int s = kXAndY + lane; s < shape.series(); s += kWarp) {
    const double value = EvaluateSeries(psf, recurrence, fibre, s, wave);
    const int term = s - kXAndY - kWidths;
    if (term >= 0 && term < shape.terms) {
      amplitude[psf.degrees[2 * term] * scratch.degrees_y + psf.degrees[2 * term + 1]] = value;
    } else {
      parameter[term < 0 ? s : s - shape.terms] = value;
    }
  }
  __syncwarp();
  const double sigma_x = parameter[kXAndY], sigma_y = parameter[kXAndY + 1];
  const double* tail = parameter + kXAndY + kWidths;
  if (!(sigma_x > 0) || !(sigma_y > 0)) {
    for (int p = lane; p < pixels; p += kWarp) out[p] = 0;
    return;
  }
  const double dx = psf.offset_x[at], dy = psf.offset_y[at];

  for (int e = lane; e < columns + rows + 2; e += kWarp) {
    const bool along_x = e <= columns;
    const int edge = along_x ? e : e - columns - 1, stride = (along_x ? columns : rows) + 1;
    double* g = (along_x ? gx : gy) + edge;
    const double u =
        along_x ? EdgeAt(edge, shape.half_x, dx, 1 / sigma_x) : EdgeAt(edge, shape.half_y, dy, 1 / sigma_y);
    Antiderivatives(along_x ? shape.degree_x : shape.degree_y, u,
                    [=](int k, double value) { g[k * stride] = value; });
  }
  __syncwarp();

  // A lane's places: a line of the operands, and a pair of what is summed over or of the result.
  const int line = lane / 4, pair = 2 * (lane % 4);
  for (int row = line; row < rows + line; row += kRowBlock) {
    for (int a = 0; a < scratch.degrees_x; a += kTile) {
      double sum[4] = {0, 0, 0, 0};
      for (int b = pair; b < scratch.degrees_y; b += kTile) {
        double top[2], bottom[2], amplitudes[2];
#pragma unroll
        for (int k = 0; k < 2; ++k) {
          top[k] = Integral(gy, shape.degree_y + 1, rows, b + k, row);
          bottom[k] = Integral(gy, shape.degree_y + 1, rows, b + k, row + kTile);
          amplitudes[k] = amplitude[(a + line) * scratch.degrees_y + b + k];
        }
        MultiplyAdd16(top, bottom, amplitudes, sum);
      }
#pragma unroll
      for (int k = 0; k < 4; ++k) h[(row + k / 2 * kTile) * scratch.stride + a + pair + k % 2] = sum[k];
    }
  }
  __syncwarp();

  double total = 0;
  for (int row = line; row < rows + line; row += kRowBlock) {
    for (int column = 0; column < columns; column += kTile) {
      double sum[4] = {0, 0, 0, 0};
      for (int a = pair; a < scratch.degrees_x; a += kTile) {
        double top[2], bottom[2], integrals[2];
#pragma unroll
        for (int k = 0; k < 2; ++k) {
          top[k] = h[row * scratch.stride + a + k];
          bottom[k] = h[(row + kTile) * scratch.stride + a + k];
          integrals[k] = Integral(gx, shape.degree_x + 1, columns, a + k, column + line);
        }
        MultiplyAdd16(top, bottom, integrals, sum);
      }
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const int r = row + k / 2 * kTile, c = column + pair + k % 2;
        if (r >= rows || c >= columns) continue;
        double value = sum[k];
        if (shape.tail) {
          const double v = (r - shape.half_y - dy) * tail[4], u = (c - shape.half_x - dx) * tail[3];
          value += TailValue(tail[0], tail[1], tail[2], u * u + v * v);
        }
        value = value > 0 ? value : 0;
        total += value;
        values[r * columns + c] = value;
      }
    }
  }
  const double scale = SpotScale(WarpSum(total));
  __syncwarp();
  for (int p = lane; p < pixels; p += kWarp) out[p] = scale > 0 ? values[p] * scale : 0;
}

}  // namespace

int64_t SpotBytes(const PsfShape& shape) {
  return int64_t{SpotScratch(shape).total} * static_cast<int64_t>(sizeof(double));
}

cudaError_t ConfigureSpots(int shared_bytes) { return AllowShared(Evaluate, shared_bytes); }

cudaError_t EvaluateSpots(const PsfArrays& psf, int shared_bytes, cudaStream_t stream) {
  const int64_t bytes = SpotBytes(psf.shape);
  const int warps = static_cast<int>(max(int64_t{1}, min(int64_t{kMostWarps}, shared_bytes / bytes)));
  const dim3 grid((psf.shape.bins + warps - 1) / warps, psf.shape.fibres);
  return Launch(Evaluate, grid, warps * kWarp, warps * bytes, stream, psf);
}

}  // namespace spexd::cuda
