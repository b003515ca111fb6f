// Stage "spots": all spots of a PSF on its grid, a warp to a spot (core/model/spot_formula.h).
//
// Floor for a frame (500 fibres of 2350 bins, 17 x 11 pixels, 49 terms): 1.76 GB written, 0.42 ms; 7.2 Gflop,
// 0.21 ms.
#include "core/model/spot_formula.h"
#include "cuda/kernels/device.cuh"
#include "cuda/kernels/kernels.h"
#include "cuda/kernels/legendre.cuh"

namespace spexd::cuda {
namespace {

constexpr int kWarps = 4;
constexpr int kXAndY = 2;  // the series of the trace come first

// Shared memory of one warp, in doubles.
struct SpotScratch {
  int parameters, gx, gy, h, total;
  __host__ __device__ explicit SpotScratch(const PsfShape& shape) {
    const int degrees_x = shape.degree_x + 1, degrees_y = shape.degree_y + 1;
    parameters = 0;
    gx = shape.series();
    gy = gx + degrees_x * (shape.spot_columns() + 1);  // edges, then integrals in their place
    h = gy + degrees_y * (shape.spot_rows() + 1);
    total = h + degrees_x * shape.spot_rows();
  }
};

__global__ void __launch_bounds__(kWarps* kWarp) Evaluate(PsfView psf) {
  double* const shared = DynamicShared();
  __shared__ Recurrence recurrence;
  recurrence.Fill();
  const PsfShape& shape = psf.shape;
  const SpotScratch scratch(shape);
  const int lane = threadIdx.x % kWarp, fibre = blockIdx.y;
  const int bin = blockIdx.x * kWarps + threadIdx.x / kWarp;
  if (bin >= shape.bins) return;
  double* own = shared + threadIdx.x / kWarp * scratch.total;
  double *parameter = own + scratch.parameters, *gx = own + scratch.gx, *gy = own + scratch.gy,
         *h = own + scratch.h;
  const int64_t at = static_cast<int64_t>(fibre) * shape.bins + bin;
  const int rows = shape.spot_rows(), columns = shape.spot_columns(), pixels = rows * columns;
  double* out = psf.spots + at * pixels;

  const double wave = WaveOf(psf, bin);
  for (int s = kXAndY + lane; s < shape.series(); s += kWarp) {
    parameter[s] = EvaluateSeries(psf, recurrence, fibre, s, wave);
  }
  __syncwarp();
  const double sigma_x = parameter[kXAndY], sigma_y = parameter[kXAndY + 1];
  const double* amplitude = parameter + kXAndY + 2;
  if (!(sigma_x > 0) || !(sigma_y > 0)) {
    for (int p = lane; p < pixels; p += kWarp) out[p] = 0;
    return;
  }
  const double dx = psf.offset_x[at], dy = psf.offset_y[at];

  // Antiderivatives at pixel edges, then their differences.
  for (int e = lane; e < columns + rows + 2; e += kWarp) {
    const bool along_x = e <= columns;
    const int edge = along_x ? e : e - columns - 1, stride = (along_x ? columns : rows) + 1;
    double* g = (along_x ? gx : gy) + edge;
    const double u =
        along_x ? EdgeAt(edge, shape.half_x, dx, 1 / sigma_x) : EdgeAt(edge, shape.half_y, dy, 1 / sigma_y);
    Antiderivatives(along_x ? shape.degree_x : shape.degree_y, u,
                    [=](int k, double value) { g[k * stride] = value; });
  }
  for (int i = lane; i < (shape.degree_x + 1) * rows; i += kWarp) h[i] = 0;
  __syncwarp();
  // A lane takes whole rows of edges, so that the differences may take their place.
  for (int k = lane; k <= shape.degree_x + shape.degree_y + 1; k += kWarp) {
    const bool along_x = k <= shape.degree_x;
    const int count = along_x ? columns : rows;
    double* g = along_x ? gx + k * (columns + 1) : gy + (k - shape.degree_x - 1) * (rows + 1);
    double edge = g[0];
    for (int i = 0; i < count; ++i) {
      const double next = g[i + 1];
      g[i] = next - edge;
      edge = next;
    }
  }
  __syncwarp();
  // h[degree_x, row] = sum over terms of amplitude * G_y; a lane keeps to its rows.
  for (int row = lane % rows; row < rows && lane < rows; row += kWarp) {
    for (int t = 0; t < shape.terms; ++t) {
      h[psf.degrees[2 * t] * rows + row] += amplitude[t] * gy[psf.degrees[2 * t + 1] * (rows + 1) + row];
    }
  }
  __syncwarp();

  double sum = 0;
  const double* tail = amplitude + shape.terms;
  for (int p = lane; p < pixels; p += kWarp) {
    const int row = p / columns, column = p - row * columns;
    double value = 0;
    if (shape.tail) {
      const double v = (row - shape.half_y - dy) * tail[4], u = (column - shape.half_x - dx) * tail[3];
      value = TailValue(tail[0], tail[1], tail[2], u * u + v * v);
    }
    for (int a = 0; a <= shape.degree_x; ++a) value += h[a * rows + row] * gx[a * (columns + 1) + column];
    value = value > 0 ? value : 0;
    sum += value;
    out[p] = value;
  }
  const double scale = SpotScale(WarpSum(sum));
  for (int p = lane; p < pixels; p += kWarp) out[p] = scale > 0 ? out[p] * scale : 0;
}

}  // namespace

int64_t SpotBytes(const PsfShape& shape) {
  return kWarps * int64_t{SpotScratch(shape).total} * static_cast<int64_t>(sizeof(double));
}

cudaError_t ConfigureSpots(int shared_bytes) { return AllowShared(Evaluate, shared_bytes); }

cudaError_t EvaluateSpots(const PsfView& psf, cudaStream_t stream) {
  const dim3 grid((psf.shape.bins + kWarps - 1) / kWarps, psf.shape.fibres);
  return Launch(Evaluate, grid, kWarps * kWarp, SpotBytes(psf.shape), stream, psf);
}

}  // namespace spexd::cuda
