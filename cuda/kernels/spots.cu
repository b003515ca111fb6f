// Stage "spots": all spots of a PSF on its grid, one warp per spot (core/model/spot_formula.h). With the
// integrals G over pixel rows and columns and the amplitudes A of the terms, a spot is G_y^T (A^T G_x),
// computed on the matrix units.
//
// Floor for a frame (500 fibres of 2350 bins, 17 x 11 pixels, 49 terms): 1.76 GB written, 0.42 ms; 7.2 Gflop,
// 0.21 ms.
#include "core/model/spot_formula.h"
#include "cuda/kernels/common/device.cuh"
#include "cuda/kernels/common/legendre.cuh"
#include "cuda/kernels/psf_kernels.h"

namespace spexd::cuda {
namespace {

constexpr int kMostWarps = 4;  // warps of a block, one spot each
constexpr int kXAndY = 2;      // the series of the trace come first
constexpr int kWidths = 2;     // then those of the widths, the terms', and the tail's
constexpr int kRowBlock = 2 * kTile;

__host__ __device__ inline int RoundedUp(int count, int multiple) {
  return (count + multiple - 1) / multiple * multiple;
}

// Shared memory of one warp, in doubles. Degrees are padded to whole tiles.
struct SpotScratch {
  int degrees_x, degrees_y;
  int stride;  // row stride of h: an odd number of pairs, so that rows share no banks
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

// The integral of a degree over a pixel, from the antiderivatives at its edges; zero outside the valid range.
__device__ inline double Integral(const double* edges, int degrees, int pixels, int degree, int pixel) {
  if (degree >= degrees || pixel >= pixels) return 0;
  const double* edge = edges + degree * (pixels + 1) + pixel;
  return edge[1] - edge[0];
}

// One spot while a warp evaluates it.
struct SpotWork {
  const PsfArrays& psf;
  const PsfShape& shape;
  const SpotScratch& scratch;
  double* own;  // scratch
  int fibre, bin;

  __device__ static int lane() { return static_cast<int>(threadIdx.x) % kWarp; }
  // A lane's places: a line of the operands, and a pair of the summed index or of the result.
  __device__ static int line() { return lane() / 4; }
  __device__ static int pair() { return 2 * (lane() % 4); }
  __device__ int64_t at() const { return static_cast<int64_t>(fibre) * shape.bins + bin; }
  __device__ const double* parameters() const { return own + scratch.parameters; }
  __device__ double sigma_x() const { return parameters()[kXAndY]; }
  __device__ double sigma_y() const { return parameters()[kXAndY + 1]; }

  __device__ void EvaluateParameters(const Recurrence& recurrence) const {
    double *const parameter = own + scratch.parameters, *const amplitude = own + scratch.amplitudes;
    for (int i = lane(); i < scratch.degrees_x * scratch.degrees_y; i += kWarp) amplitude[i] = 0;
    __syncwarp();
    const double wave = WaveOf(psf, bin);
    for (int s = kXAndY + lane(); s < shape.series(); s += kWarp) {
      const double value = EvaluateSeries(psf, recurrence, fibre, s, wave);
      const int term = s - kXAndY - kWidths;
      if (term >= 0 && term < shape.terms) {
        amplitude[psf.degrees[2 * term] * scratch.degrees_y + psf.degrees[2 * term + 1]] = value;
      } else {
        parameter[term < 0 ? s : s - shape.terms] = value;
      }
    }
    __syncwarp();
  }

  // The antiderivatives at all edges of pixels.
  __device__ void EvaluateEdges() const {
    const double dx = psf.offset_x[at()], dy = psf.offset_y[at()];
    const int rows = shape.spot_rows(), columns = shape.spot_columns();
    for (int e = lane(); e < columns + rows + 2; e += kWarp) {
      const bool along_x = e <= columns;
      const int edge = along_x ? e : e - columns - 1, stride = (along_x ? columns : rows) + 1;
      double* g = own + (along_x ? scratch.gx : scratch.gy) + edge;
      const double u = along_x ? EdgeAt(edge, shape.half_x, dx, 1 / sigma_x())
                               : EdgeAt(edge, shape.half_y, dy, 1 / sigma_y());
      Antiderivatives(along_x ? shape.degree_x : shape.degree_y, u,
                      [=](int k, double value) { g[k * stride] = value; });
    }
    __syncwarp();
  }

  // h[row, a] = sum_b c_ab g_b(row).
  __device__ void SumOverY() const {
    const double *const amplitude = own + scratch.amplitudes, *const gy = own + scratch.gy;
    double* const h = own + scratch.h;
    const int rows = shape.spot_rows();
    for (int row = line(); row < rows + line(); row += kRowBlock) {
      for (int a = 0; a < scratch.degrees_x; a += kTile) {
        double sum[4] = {0, 0, 0, 0};
        for (int b = pair(); b < scratch.degrees_y; b += kTile) {
          double top[2], bottom[2], amplitudes[2];
#pragma unroll
          for (int k = 0; k < 2; ++k) {
            top[k] = Integral(gy, shape.degree_y + 1, rows, b + k, row);
            bottom[k] = Integral(gy, shape.degree_y + 1, rows, b + k, row + kTile);
            amplitudes[k] = amplitude[(a + line()) * scratch.degrees_y + b + k];
          }
          MultiplyAdd16(top, bottom, amplitudes, sum);
        }
#pragma unroll
        for (int k = 0; k < 4; ++k) h[(row + k / 2 * kTile) * scratch.stride + a + pair() + k % 2] = sum[k];
      }
    }
    __syncwarp();
  }

  // Computes the spot's values; returns the sum of this lane's values.
  __device__ double SumOverX() const {
    const double dx = psf.offset_x[at()], dy = psf.offset_y[at()];
    const double *const h = own + scratch.h, *const gx = own + scratch.gx;
    const int rows = shape.spot_rows(), columns = shape.spot_columns();
    double total = 0;
    for (int row = line(); row < rows + line(); row += kRowBlock) {
      for (int column = 0; column < columns; column += kTile) {
        double sum[4] = {0, 0, 0, 0};
        for (int a = pair(); a < scratch.degrees_x; a += kTile) {
          double top[2], bottom[2], integrals[2];
#pragma unroll
          for (int k = 0; k < 2; ++k) {
            top[k] = h[row * scratch.stride + a + k];
            bottom[k] = h[(row + kTile) * scratch.stride + a + k];
            integrals[k] = Integral(gx, shape.degree_x + 1, columns, a + k, column + line());
          }
          MultiplyAdd16(top, bottom, integrals, sum);
        }
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          const int r = row + k / 2 * kTile, c = column + pair() + k % 2;
          if (r >= rows || c >= columns) continue;
          double value = sum[k];
          if (shape.tail) value += TailAt(c - shape.half_x - dx, r - shape.half_y - dy);
          value = value > 0 ? value : 0;
          total += value;
          own[scratch.values + r * columns + c] = value;
        }
      }
    }
    return total;
  }
  __device__ double TailAt(double x, double y) const {
    const double* const tail = parameters() + kXAndY + kWidths;
    const double u = x * tail[3], v = y * tail[4];
    return TailValue(tail[0], tail[1], tail[2], u * u + v * v);
  }
};

__global__ void __launch_bounds__(kMostWarps* kWarp, 8) Evaluate(PsfArrays psf) {
  __shared__ Recurrence recurrence;
  recurrence.Fill();
  const PsfShape& shape = psf.shape;
  const SpotScratch scratch(shape);
  const int bin = blockIdx.x * (blockDim.x / kWarp) + threadIdx.x / kWarp;
  if (bin >= shape.bins) return;
  const int fibre = static_cast<int>(blockIdx.y), pixels = shape.spot_pixels();
  double* const own = DynamicShared() + threadIdx.x / kWarp * scratch.total;
  const SpotWork work = {psf, shape, scratch, own, fibre, bin};
  work.EvaluateParameters(recurrence);
  double* const out = psf.spots + work.at() * pixels;
  if (!(work.sigma_x() > 0) || !(work.sigma_y() > 0)) {
    for (int p = SpotWork::lane(); p < pixels; p += kWarp) out[p] = 0;
    return;
  }
  work.EvaluateEdges();
  work.SumOverY();
  const double scale = SpotScale(WarpSum(work.SumOverX()));
  __syncwarp();
  const double* const values = own + scratch.values;
  for (int p = SpotWork::lane(); p < pixels; p += kWarp) out[p] = scale > 0 ? values[p] * scale : 0;
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
