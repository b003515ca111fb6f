// Trace shifts: the passes over the image (core/traces/README.md, steps 1 to 3).
//
// A block processes a bundle in a few rows, a thread one row of a fibre. Pixels are read from memory once.
// The light of fibres passes through shared memory between Jacobi sweeps, and each thread adds up its
// neighbours' light in their order.
//
// Floor for 500 fibres x 4128 rows: 136 MB of image are read, 33 MB of row spectra written, and 51 MB of the
// lines' effect on profiles read: 0.07 ms (4.8 TB/s); 2.6 GFLOP in float32: 0.04 ms.
#include <cmath>

#include "core/traces/rows/coarse.h"
#include "core/traces/rows/trace_formula.h"
#include "core/traces/rows/x_formula.h"
#include "core/traces/shifts/options.h"
#include "cuda/kernels/common/machine.cuh"
#include "cuda/traces/shape.cuh"
#include "cuda/traces/trace_arrays.h"

namespace spexd::cuda {
namespace {

constexpr int kFitHalf = TraceShiftOptions::kFitHalf, kModelHalf = TraceShiftOptions::kModelHalf;
constexpr int kFit = 2 * kFitHalf + 1, kModel = 2 * kModelHalf + 1;
constexpr int kFirstFit = kModelHalf - kFitHalf;  // index in kModel
constexpr int kNowhere = -(1 << 28);              // middle column of a row without light
constexpr int kMostRows = 8;                      // of a block
constexpr int kUsualThreads = 224;                // of a block: bundles of 25 fibres in 8 rows

// Computes the profile across a trace at a row, and its derivative; returns false where there is none.
template <int kDegree>
__device__ __forceinline__ bool EvaluateAcross(const TraceArrays& a, bool lines, int fibre, int row, double t,
                                               float centre, float (&phi)[kModel], float (&dphi)[kModel]) {
  const ShapeAt shape(a, fibre, t);
  const int columns = a.shape.degree_y + 1;
  float coeff[kDegree + 1];
#pragma unroll
  for (int k = 0; k <= kDegree; ++k) coeff[k] = k <= a.shape.degree_x ? shape(2 + k * columns) : 0;
  for (int b = 1; lines && b <= a.shape.degree_y; ++b) {
    const float beside =
        a.beside[(static_cast<int64_t>(fibre) * a.shape.degree_y + b - 1) * a.shape.rows + row];
    if (beside == 0) continue;
#pragma unroll
    for (int k = 0; k <= kDegree; ++k) {
      if (k <= a.shape.degree_x) coeff[k] += shape(2 + k * columns + b) * beside;
    }
  }
  const float inverse_sigma = shape(0);
  if (!(coeff[0] > 0 && inverse_sigma > 0)) return false;
  const float scale = 1 / coeff[0];
#pragma unroll
  for (int k = 0; k <= kDegree; ++k) coeff[k] *= scale;
  traces::ProfileEdge before = {};
#pragma unroll
  for (int edge = 0; edge <= kModel; ++edge) {
    const float u = EdgeOf(edge, kModelHalf, centre, inverse_sigma);
    const traces::ProfileEdge at = traces::ProfileAt<kDegree>(u, coeff, 1);
    if (edge > 0) {
      phi[edge - 1] = at.integral - before.integral;
      dphi[edge - 1] = (before.density - at.density) * inverse_sigma;
    }
    before = at;
  }
  return true;
}

// kThreads: most threads of a block.
template <int kDegree, int kThreads>
__global__ void __launch_bounds__(kThreads, kThreads <= kUsualThreads ? 3 : 1)
    RowPass(TraceArrays a, RowPassOptions options, int block_rows) {
  const TraceShape& shape = a.shape;
  const int first_fibre = blockIdx.y * options.bundle_size;
  const int fibres = min(options.bundle_size, shape.fibres - first_fibre);
  int* middles = reinterpret_cast<int*>(DynamicShared());                               // [fibre, row]
  float* light = reinterpret_cast<float*>(middles + options.bundle_size * block_rows);  // [fibre, k, row]
  const int own = threadIdx.x / block_rows, lane = threadIdx.x % block_rows;
  const int fibre = first_fibre + own, row = (blockIdx.x * block_rows + lane) * options.stride;
  const bool stores = own < fibres && row < shape.rows;

  float phi[kModel], dphi[kModel], pixel[kFit], ivar[kFit];
  int middle = kNowhere;
  bool usable = false;
  traces::RowNormal normal = {1, 0, 1};
  float peak = 0;
  if (stores && row >= a.first_row[fibre] && row < a.end_row[fibre]) {
    const traces::TracePosition at =
        traces::TraceAt(a.nodes + static_cast<int64_t>(fibre) * shape.nodes() * traces::kNodeValues, row);
    const double x = fmin(fmax(at.x, -1e6), 1e6), nearest = floor(x + 0.5);
    if (nearest > -kModel && nearest < shape.columns + kModel &&
        EvaluateAcross<kDegree>(a, options.beside_lines, fibre, row, at.t, static_cast<float>(x - nearest),
                                phi, dphi)) {
      middle = static_cast<int>(nearest);
      const int left = middle - kFitHalf;
      const int64_t base = static_cast<int64_t>(row) * shape.columns + left;
      float whole = 0, seen = 0;
      normal = {0, 0, 0};
#pragma unroll
      for (int k = 0; k < kFit; ++k) {
        const bool on = left + k >= 0 && left + k < shape.columns;
        pixel[k] = on ? a.pixels[base + k] : 0;
        ivar[k] = on ? a.ivar[base + k] : 0;
        const float f = phi[kFirstFit + k], d = dphi[kFirstFit + k], w = ivar[k], square = f * f;
        normal.pp += w * square;
        normal.pd += w * f * d;
        normal.dd += w * d * d;
        whole += square;
        seen += w > 0 ? square : 0.0f;
        peak = f > peak ? f : peak;
      }
      usable = traces::IsUsableRow(normal, whole > 0 ? seen / whole : 0);
    }
  }
  if (own < options.bundle_size) middles[own * block_rows + lane] = usable ? middle : kNowhere;

  float flux = 0, moment = 0, worst = 0;
  for (int sweep = 0; sweep < options.sweeps; ++sweep) {
    float residual[kFit];
    if (sweep > 0) {
      __syncthreads();  // the light of the previous sweep has been read
      if (usable) {
#pragma unroll
        for (int k = 0; k < kModel; ++k) {
          light[(own * kModel + k) * block_rows + lane] = flux * phi[k] + moment * dphi[k];
        }
      }
      __syncthreads();
    }
    if (!usable) continue;
    float model[kFit] = {};
    for (int other = 0; sweep > 0 && other < fibres; ++other) {
      const int offset = middle - middles[other * block_rows + lane];
      if (offset > kFitHalf + kModelHalf || offset < -kFitHalf - kModelHalf) continue;
#pragma unroll
      for (int k = 0; k < kFit; ++k) {
        const int index = offset + kFirstFit + k;
        if (index >= 0 && index < kModel) model[k] += light[(other * kModel + index) * block_rows + lane];
      }
    }
    float tp = 0, td = 0;
#pragma unroll
    for (int k = 0; k < kFit; ++k) {
      residual[k] = pixel[k] - model[k];
      const float weighted = ivar[k] * residual[k];
      tp += weighted * phi[kFirstFit + k];
      td += weighted * dphi[kFirstFit + k];
    }
    const traces::RowSolution step = traces::SolveRow(normal, tp, td);
    flux += step.flux;
    moment += step.moment;
    if (sweep == 0) {  // so that noise does not spoil the neighbours
      const float most = fabsf(flux);
      moment = moment < -most ? -most : moment > most ? most : moment;
    }
    worst = 0;
#pragma unroll
    for (int k = 0; k < kFit; ++k) {
      const float w = ivar[k];
      const float variance = traces::PixelVariance(w > 0 ? w : 1.0f, flux * peak, options.profile_error);
      const float pull = w > 0 ? residual[k] * residual[k] / variance : 0.0f;
      worst = pull > worst ? pull : worst;
    }
  }
  if (!stores) return;
  const bool good = usable && worst < options.row_clip * options.row_clip;
  const int64_t at = static_cast<int64_t>(fibre) * shape.rows + row;
  a.flux[at] = flux;
  a.moment[at] = moment;
  a.flux_ivar[at] = good ? traces::Determinant(normal) / normal.dd : 0;
  a.moment_ivar[at] = good ? traces::Determinant(normal) / normal.pp : 0;
}

// Collapses the traces. Each block processes a fibre, each warp a stretch of rows, each lane an offset.
constexpr int kCoarseThreads = traces::kCoarseStretches * kWarp;
static_assert(traces::kCoarseOffsets <= kWarp);

__global__ void __launch_bounds__(kCoarseThreads) Collapse(TraceArrays a, int stride) {
  __shared__ double means[traces::kCoarseStretches][traces::kCoarseOffsets];
  const TraceShape& shape = a.shape;
  const int fibre = blockIdx.x, stretch = threadIdx.x / kWarp, k = threadIdx.x % kWarp;
  constexpr int kStretches = traces::kCoarseStretches, kReach = traces::kCoarseReach;
  const int64_t rows = shape.rows;
  const int begin = max(static_cast<int>((stretch * rows + kStretches - 1) / kStretches), a.first_row[fibre]);
  const int end =
      min(static_cast<int>(((stretch + 1) * rows + kStretches - 1) / kStretches), a.end_row[fibre]);
  const double* nodes = a.nodes + static_cast<int64_t>(fibre) * shape.nodes() * traces::kNodeValues;
  double sum = 0, count = 0;
  for (int row = (begin + stride - 1) / stride * stride; row < end; row += stride) {
    const double x = floor(traces::TraceAt(nodes, row).x + 0.5);
    if (!(x > -kReach - 1 && x < shape.columns + kReach + 1)) continue;
    const int column = static_cast<int>(x) - kReach + k;
    if (k >= traces::kCoarseOffsets || column < 0 || column >= shape.columns) continue;
    const int64_t at = row * static_cast<int64_t>(shape.columns) + column;
    const bool usable = a.ivar[at] > 0;
    sum += usable ? a.pixels[at] : 0;
    count += usable;
  }
  if (k < traces::kCoarseOffsets) means[stretch][k] = count > 0 ? sum / count : 0;
  __syncthreads();
  if (stretch > 0 || k >= traces::kCoarseOffsets) return;
  double middle = 0;  // the sum of the two middle values
  for (int i = 0; i < kStretches; ++i) {
    int rank = 0;
    for (int j = 0; j < kStretches; ++j) {
      rank += means[j][k] < means[i][k] || (means[j][k] == means[i][k] && j < i);
    }
    if (rank == kStretches / 2 - 1 || rank == kStretches / 2) middle += means[i][k];
  }
  a.coarse[fibre * traces::kCoarseOffsets + k] = 0.5 * middle;
}

constexpr int kBlockThreads = 128;

__global__ void __launch_bounds__(kBlockThreads) XBlocks(TraceArrays a, int stride, int blocks) {
  const int64_t index = static_cast<int64_t>(blockIdx.x) * kBlockThreads + threadIdx.x;
  if (index >= static_cast<int64_t>(a.shape.fibres) * blocks) return;
  const int fibre = static_cast<int>(index / blocks), block = static_cast<int>(index % blocks);
  const int size = a.shape.block_rows * stride;
  const int64_t base = static_cast<int64_t>(fibre) * a.shape.rows;
  traces::XSums sums;
  for (int row = block * size; row < (block + 1) * size; row += stride) {
    sums.Add(row, a.flux[base + row], a.flux_ivar[base + row], a.moment[base + row],
             a.moment_ivar[base + row]);
  }
  const bool measured = sums.IsMeasured(a.shape.block_rows);
  const double* nodes = a.nodes + static_cast<int64_t>(fibre) * a.shape.nodes() * traces::kNodeValues;
  a.measured.u[index] = a.psf.positions[fibre];
  a.measured.value[index] = measured ? sums.Shift() : 0;
  a.measured.info[index] = measured ? sums.Info() : 0;
  a.measured.t[index] = measured ? traces::TraceAt(nodes, sums.MeanRow()).t : 0;
}

}  // namespace

cudaError_t CollapseTraces(const TraceArrays& arrays, int stride, cudaStream_t stream) {
  return Launch(Collapse, dim3(arrays.shape.fibres), kCoarseThreads, 0, stream, arrays, stride);
}

cudaError_t PassOverRows(const TraceArrays& arrays, const RowPassOptions& options, cudaStream_t stream) {
  const TraceShape& shape = arrays.shape;
  int block_rows = kMostRows;
  while (block_rows > 1 && block_rows * options.bundle_size > kMaxPassThreads) block_rows /= 2;
  const int threads = (options.bundle_size * block_rows + kWarp - 1) / kWarp * kWarp;
  const int64_t shared = int64_t{options.bundle_size} * block_rows * (kModel + 1) * 4;
  const int rows = (shape.rows + options.stride - 1) / options.stride;
  const dim3 grid((rows + block_rows - 1) / block_rows,
                  (shape.fibres + options.bundle_size - 1) / options.bundle_size);
  cudaError_t error = cudaSuccess;
  if (options.stride > 1) {
    const size_t bytes = sizeof(float) * shape.fibres * shape.rows;
    for (float* values : {arrays.flux, arrays.flux_ivar, arrays.moment, arrays.moment_ivar}) {
      error = FirstError({error, cudaMemsetAsync(values, 0, bytes, stream)});
    }
  }
  return FirstError({error, WithDegree(shape.degree_x, [&]<int kDegree>() {
                       const auto kernel = threads <= kUsualThreads ? RowPass<kDegree, kUsualThreads>
                                                                    : RowPass<kDegree, kMaxPassThreads>;
                       return Launch(kernel, grid, threads, shared, stream, arrays, options, block_rows);
                     })});
}

cudaError_t MeasureXBlocks(const TraceArrays& arrays, int stride, cudaStream_t stream) {
  const int blocks = arrays.shape.rows / (arrays.shape.block_rows * stride);
  const int64_t count = int64_t{arrays.shape.fibres} * blocks;
  if (count == 0) return cudaSuccess;
  return Launch(XBlocks, dim3(static_cast<unsigned>((count + kBlockThreads - 1) / kBlockThreads)),
                kBlockThreads, 0, stream, arrays, stride, blocks);
}

}  // namespace spexd::cuda
