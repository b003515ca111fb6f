// Trace shifts: the spectrum common to all fibres, and its uses (core/traces/README.md, steps 5 and 7).
//
// Each thread gathers its sum in a fixed order: for a pair of bins over the fibres of a chunk, for a row of a
// fibre over the bins that cover it. The normal equations are a band matrix, which the host solves.
//
// Floor for 500 fibres x 4128 rows, 2350 bins, spots of 11 rows: 103 MB of profiles are written and read 3
// times (85 us); 0.6 GFLOP for the normal equations, twice: 40 us.
#include <cmath>

#include "core/traces/light/light_formula.h"
#include "core/traces/rows/trace_formula.h"
#include "cuda/kernels/common/machine.cuh"
#include "cuda/traces/line_sums.cuh"
#include "cuda/traces/shape.cuh"
#include "cuda/traces/trace_arrays.h"

namespace spexd::cuda {
namespace {

constexpr int kThreads = 128;

__device__ bool HasRows(const TraceArrays& a, int fibre) { return a.end_row[fibre] > a.first_row[fibre]; }

template <int kDegree>
__global__ void __launch_bounds__(kThreads) Bins(TraceArrays a) {
  const TraceShape& shape = a.shape;
  const int bin = blockIdx.x * kThreads + threadIdx.x, fibre = blockIdx.y, width = shape.spot_rows();
  if (bin >= shape.bins) return;
  const double t = ScaledWave(shape, a.wave[bin]);
  const double y = EvaluateTrace(a.y + static_cast<int64_t>(fibre) * shape.y_count, shape.y_count, t).value;
  const SpotPosition position = LocateSpot(y, shape.stamp_y);
  const SpotAlong<kDegree> spot(a, fibre, t);
  const float centre = static_cast<float>(position.offset);
  const int64_t at = static_cast<int64_t>(fibre) * shape.bins + bin;
  a.bin_row[at] = position.first;
  a.bin_centre[at] = centre;
  a.bin_inverse_sigma[at] = spot.inverse_sigma;
  traces::ProfileEdge before = {};
  for (int edge = 0; edge <= width; ++edge) {
    const float u = EdgeOf(edge, shape.stamp_y.middle, centre, spot.inverse_sigma);
    const traces::ProfileEdge now = traces::ProfileAt<kDegree>(u, spot.coeff, 1);
    if (edge > 0) {
      const int64_t to = (static_cast<int64_t>(fibre) * width + edge - 1) * shape.bins + bin;
      a.psi[to] = now.integral - before.integral;
      a.psi_slope[to] = (before.density - now.density) * spot.inverse_sigma;
    }
    before = now;
  }
}

// Sets the weights. Each warp processes a block of y_block_rows rows of a fibre, the last block with up to as
// many more; each lane every 32nd row. The middle residual is found bit by bit.
__global__ void __launch_bounds__(kThreads) Weights(TraceArrays a, float target_error, int room) {
  const TraceShape& shape = a.shape;
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp, fibre = blockIdx.y;
  const int block = blockIdx.x * (kThreads / kWarp) + warp, blocks = shape.y_blocks();
  if (block >= blocks) return;
  uint32_t* const keys = reinterpret_cast<uint32_t*>(DynamicShared()) + warp * room;
  const int begin = block * shape.y_block_rows;
  const int rows = (block + 1 == blocks ? shape.rows : begin + shape.y_block_rows) - begin;
  const int64_t base = static_cast<int64_t>(fibre) * shape.rows + begin;
  int count = 0;
  for (int k = lane; k - lane < rows; k += kWarp) {
    const bool usable = k < rows && a.flux_ivar[base + k] > 0;
    const float residual = usable ? fabsf(a.flux[base + k] - a.model[base + k]) : 0;
    keys[k] = usable ? static_cast<uint32_t>(__float_as_int(residual)) : 0xffffffffu;
    count += __popc(__ballot_sync(kAllLanes, usable));
  }
  uint32_t middle = 0;
  int rank = count / 2;
  for (int bit = 30; bit >= 0; --bit) {
    int below = 0;  // keys that agree in the higher bits and have 0 here
    for (int k = lane; k - lane < rows; k += kWarp) {
      below += __popc(__ballot_sync(kAllLanes, ((keys[k] ^ middle) >> bit) == 0));
    }
    if (rank < below) continue;
    rank -= below;
    middle |= uint32_t{1} << bit;
  }
  const float beyond = count > 0 ? target_error * __int_as_float(static_cast<int>(middle)) : 0;
  for (int k = lane; k < rows; k += kWarp) {
    a.weight[base + k] = traces::TargetWeight(a.flux_ivar[base + k], beyond);
  }
}

struct LoadRows {
  const float *flux, *weight, *model, *slope;

  __device__ LoadRows(const TraceArrays& a, int64_t at)
      : flux(a.flux + at), weight(a.weight + at), model(a.model + at), slope(a.slope + at) {}
  __device__ LineRow operator()(int k) const { return {flux[k], weight[k], model[k], slope[k]}; }
};

// Sets the weight of outliers to 0. kLineLanes lanes process a block of rows.
__global__ void __launch_bounds__(kThreads) Clip(TraceArrays a) {
  const TraceShape& shape = a.shape;
  const int index = (blockIdx.x * kThreads + threadIdx.x) / kLineLanes, blocks = shape.y_blocks();
  const int rows = index < shape.fibres * blocks ? shape.y_block_rows : 0;
  const int64_t at = static_cast<int64_t>(index / blocks) * shape.rows + (index % blocks) * rows;
  const LoadRows load(a, at);
  const FittedLines lines = FitLinesOf(rows, load);
  for (int k = threadIdx.x % kLineLanes; k < rows; k += kLineLanes) {
    if (lines.IsOutlier(load(k), LineStep(rows) * k - 1)) a.weight[at + k] = 0;
  }
}

// Sums normal equations. Each thread processes a pair of bins over the fibres of a chunk.
__global__ void __launch_bounds__(kThreads) ChunkNormal(TraceArrays a) {
  const TraceShape& shape = a.shape;
  const int bin = blockIdx.x * kThreads + threadIdx.x, further = blockIdx.y, chunk = blockIdx.z;
  if (bin >= shape.bins) return;
  const int width = shape.spot_rows(), other = bin + further;
  const int end = min(shape.fibres, (chunk + 1) * traces::kLightChunk);
  double sum = 0, right = 0;
  for (int fibre = chunk * traces::kLightChunk; fibre < end; ++fibre) {
    if (!HasRows(a, fibre) || other >= shape.bins) continue;
    const int64_t base = static_cast<int64_t>(fibre) * shape.bins,
                  rows = static_cast<int64_t>(fibre) * shape.rows;
    const int first = a.bin_row[base + bin], other_first = a.bin_row[base + other];
    const float* psi = a.psi + base * width;
    for (int row = max(max(first, other_first), 0); row < min(min(first, other_first) + width, shape.rows);
         ++row) {
      const float weighted = a.weight[rows + row] * psi[static_cast<int64_t>(row - first) * shape.bins + bin];
      sum += weighted * psi[static_cast<int64_t>(row - other_first) * shape.bins + other];
      if (further == 0) right += weighted * a.flux[rows + row];
    }
  }
  a.chunk_normal[(static_cast<int64_t>(chunk) * shape.reach + further) * shape.bins + bin] = sum;
  if (further == 0) a.chunk_right[static_cast<int64_t>(chunk) * shape.bins + bin] = right;
}

__global__ void __launch_bounds__(kThreads) AddChunks(TraceArrays a) {
  const TraceShape& shape = a.shape;
  const int bin = blockIdx.x * kThreads + threadIdx.x, further = blockIdx.y;
  if (bin >= shape.bins) return;
  double sum = 0, right = 0;
  for (int chunk = 0; chunk < shape.chunks(); ++chunk) {
    sum += a.chunk_normal[(static_cast<int64_t>(chunk) * shape.reach + further) * shape.bins + bin];
    if (further == 0) right += a.chunk_right[static_cast<int64_t>(chunk) * shape.bins + bin];
  }
  a.normal[static_cast<int64_t>(bin) * shape.reach + further] = sum;
  if (further == 0) a.spectrum[bin] = right;
}

// Computes the common light and its slope. Each thread processes a row of a fibre.
__global__ void __launch_bounds__(kThreads) Disperse(TraceArrays a) {
  const TraceShape& shape = a.shape;
  const int row = blockIdx.x * kThreads + threadIdx.x, fibre = blockIdx.y, width = shape.spot_rows();
  if (row >= shape.rows) return;
  const int64_t base = static_cast<int64_t>(fibre) * shape.bins;
  const int* first = a.bin_row + base;
  float model = 0, slope = 0;
  if (HasRows(a, fibre)) {
    for (int bin = FirstAbove(first, shape.bins, row - width); bin < shape.bins && first[bin] <= row; ++bin) {
      const int64_t at = base * width + static_cast<int64_t>(row - first[bin]) * shape.bins + bin;
      const float light = static_cast<float>(a.spectrum[bin]);
      model += light * a.psi[at];
      slope += light * a.psi_slope[at];
    }
  }
  a.model[static_cast<int64_t>(fibre) * shape.rows + row] = model;
  a.slope[static_cast<int64_t>(fibre) * shape.rows + row] = slope;
}

// Fits the common light. kLineLanes lanes process a block of rows of a fibre.
__global__ void __launch_bounds__(kThreads) CommonFits(TraceArrays a) {
  const TraceShape& shape = a.shape;
  const int index = (blockIdx.x * kThreads + threadIdx.x) / kLineLanes, blocks = shape.y_blocks();
  const bool there = index < shape.fibres * blocks;
  const int rows = there ? shape.y_block_rows : 0, first = (index % blocks) * rows;
  const LoadRows load(a, static_cast<int64_t>(index / blocks) * shape.rows + first);
  const FittedLines lines = FitLinesOf(rows, load);
  double signal = 0, row_sum = 0;
  for (int k = threadIdx.x % kLineLanes; k < rows; k += kLineLanes) {
    const LineRow row = load(k);
    if (lines.IsOutlier(row, LineStep(rows) * k - 1)) continue;
    const double part = row.weight * row.slope * row.slope;
    signal += part;
    row_sum += part * (first + k);
  }
  signal = LineLanesSum(signal);
  row_sum = LineLanesSum(row_sum);
  if (!there || threadIdx.x % kLineLanes != 0) return;
  a.common_fit[index] = lines.fit;
  a.common_row[index] = signal > 0 ? row_sum / signal : -1;
}

// Computes the throughput and the shifts. Each thread processes a fibre.
__global__ void __launch_bounds__(kThreads) CommonShifts(TraceArrays a) {
  const TraceShape& shape = a.shape;
  const int fibre = blockIdx.x * kThreads + threadIdx.x, blocks = shape.y_blocks();
  if (fibre >= shape.fibres) return;
  const traces::LineFit* fits = a.common_fit + static_cast<int64_t>(fibre) * blocks;
  double sum = 0, info = 0;
  for (int block = 0; block < blocks; ++block) {
    sum += fits[block].amplitude_info * fits[block].amplitude;
    info += fits[block].amplitude_info;
  }
  const double throughput = info > 0 ? sum / info : 0;
  const bool known = traces::IsThroughputKnown(throughput, info);
  a.throughput[fibre] = known ? throughput : 0;
  const double* nodes = a.nodes + static_cast<int64_t>(fibre) * shape.nodes() * traces::kNodeValues;
  for (int block = 0; block < blocks; ++block) {
    const int64_t index = static_cast<int64_t>(fibre) * blocks + block;
    const double shift_info = known ? throughput * throughput * fits[block].moment_info : 0;
    const double row = a.common_row[index];
    const bool measured = shift_info > traces::kMinCommonInfo && row >= 0;
    a.measured.u[index] = a.psf.positions[fibre];
    a.measured.value[index] = measured ? fits[block].moment / throughput : 0;
    a.measured.info[index] = measured ? shift_info : 0;
    a.measured.t[index] = measured ? traces::TraceAt(nodes, static_cast<int>(row)).t : 0;
  }
}

// Computes integrals over the row of He_b n, as in core/traces/light/dispersion.h. Each thread processes a
// row of a fibre.
template <int kDegree>
__global__ void __launch_bounds__(kThreads) Beside(TraceArrays a) {
  const TraceShape& shape = a.shape;
  const int row = blockIdx.x * kThreads + threadIdx.x, fibre = blockIdx.y, width = shape.spot_rows();
  if (row >= shape.rows) return;
  const float part = static_cast<float>(a.throughput[fibre]);
  const int64_t base = static_cast<int64_t>(fibre) * shape.bins;
  const int* first = a.bin_row + base;
  float sum[kDegree] = {};
  const int begin = part > 0 ? FirstAbove(first, shape.bins, row - width) : shape.bins;
  for (int bin = begin; bin < shape.bins && first[bin] <= row; ++bin) {
    const float inverse_sigma = a.bin_inverse_sigma[base + bin];
    if (!(inverse_sigma > 0)) continue;
    const float light = static_cast<float>(a.spectrum[bin]);
#pragma unroll
    for (int side = 0; side < 2; ++side) {  // the row's lower edge, then its upper one
      const float at = EdgeOf(row - first[bin] + side, shape.stamp_y.middle, a.bin_centre[base + bin], inverse_sigma);
      const float u = fminf(fmaxf(at, -40.0f), 40.0f);
      const float signed_light = side == 0 ? light : -light;
      float now = 0.39894228f * traces::ExpOfNegative(-0.5f * u * u), before = 0;
#pragma unroll
      for (int b = 1; b <= kDegree; ++b) {  // now: He_{b-1} n, the negative of the integral of He_b n
        sum[b - 1] += signed_light * now;
        const float next = u * now - static_cast<float>(b - 1) * before;
        before = now;
        now = next;
      }
    }
  }
  const int64_t at = static_cast<int64_t>(fibre) * shape.rows + row;
#pragma unroll
  for (int b = 0; b < kDegree; ++b) {
    if (b >= shape.degree_y) break;
    a.beside[(static_cast<int64_t>(fibre) * shape.degree_y + b) * shape.rows + row] =
        part > 0 ? traces::BesideLines(sum[b], part, a.flux[at], a.model[at]) : 0;
  }
}

int Blocks(int64_t count) { return static_cast<int>((count + kThreads - 1) / kThreads); }

}  // namespace

cudaError_t FindBins(const TraceArrays& arrays, cudaStream_t stream) {
  return WithDegree(arrays.shape.degree_y, [&]<int kDegree>() {
    return Launch(Bins<kDegree>, dim3(Blocks(arrays.shape.bins), arrays.shape.fibres), kThreads, 0, stream,
                  arrays);
  });
}

cudaError_t FindWeights(const TraceArrays& arrays, float target_error, cudaStream_t stream) {
  constexpr int kWarps = kThreads / kWarp;
  const int room = 2 * arrays.shape.y_block_rows + kWarp, shared = kWarps * room * 4;
  const dim3 grid((arrays.shape.y_blocks() + kWarps - 1) / kWarps, arrays.shape.fibres);
  return FirstError({AllowShared(Weights, shared),
                     Launch(Weights, grid, kThreads, shared, stream, arrays, target_error, room)});
}

cudaError_t ClipWeights(const TraceArrays& arrays, cudaStream_t stream) {
  const int64_t lanes = int64_t{arrays.shape.fibres} * arrays.shape.y_blocks() * kLineLanes;
  return Launch(Clip, dim3(Blocks(lanes)), kThreads, 0, stream, arrays);
}

cudaError_t SumNormal(const TraceArrays& arrays, cudaStream_t stream) {
  const int blocks = Blocks(arrays.shape.bins), reach = arrays.shape.reach;
  return FirstError(
      {Launch(ChunkNormal, dim3(blocks, reach, arrays.shape.chunks()), kThreads, 0, stream, arrays),
       Launch(AddChunks, dim3(blocks, reach), kThreads, 0, stream, arrays)});
}

cudaError_t DisperseCommon(const TraceArrays& arrays, cudaStream_t stream) {
  return Launch(Disperse, dim3(Blocks(arrays.shape.rows), arrays.shape.fibres), kThreads, 0, stream, arrays);
}

cudaError_t MeasureCommon(const TraceArrays& arrays, cudaStream_t stream) {
  const int64_t lanes = int64_t{arrays.shape.fibres} * arrays.shape.y_blocks() * kLineLanes;
  return FirstError({Launch(CommonFits, dim3(Blocks(lanes)), kThreads, 0, stream, arrays),
                     Launch(CommonShifts, dim3(Blocks(arrays.shape.fibres)), kThreads, 0, stream, arrays)});
}

cudaError_t FindBeside(const TraceArrays& arrays, cudaStream_t stream) {
  return WithDegree(arrays.shape.degree_y, [&]<int kDegree>() {
    return Launch(Beside<kDegree>, dim3(Blocks(arrays.shape.rows), arrays.shape.fibres), kThreads, 0, stream,
                  arrays);
  });
}

}  // namespace spexd::cuda
