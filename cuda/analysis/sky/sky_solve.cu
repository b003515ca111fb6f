// Sky: A = L D L^T, A s = b, and the band of A^-1 (Takahashi et al. 1973). Each warp processes a chunk of
// bins. Each of its steps is one column and waits for the previous step.
//
// Floor for a frame: 2 MFLOP in float64: negligible. The time is the latency of the chain: 320 steps of some
// 300 cycles for the factor, 70 for the solution and 400 for the inverse, 0.05, 0.01 and 0.08 ms.
#include "cuda/analysis/sky/sky_kernels.cuh"
#include "cuda/kernels/common/device.cuh"

namespace spexd::cuda {
namespace {

constexpr int kKept = 64, kHalo = 128, kPad = kBandRows - 1;
constexpr int kSharedBytes = 2 * kNormalRows * (kPad + kKept + 2 * kHalo) * static_cast<int>(sizeof(double));
constexpr double kSeamTolerance = 1e-6;  // in units of a bin's least sigma, which it has if all other bins
                                         // are known

struct ChunkPosition {
  int first, end;            // bins including the halo
  int kept_first, kept_end;  // bins without the halo
};
__device__ ChunkPosition PositionOf(const SkyChunks& chunks, int bins) {
  const int kept = static_cast<int>(blockIdx.x) * chunks.kept;
  return {max(0, kept - chunks.halo), min(bins, kept + chunks.kept + chunks.halo), kept,
          min(bins, kept + chunks.kept)};
}

// Factors one column; each lane holds a row. Row kBandRows is the solution z = D^-1 L^-1 b, which follows
// from the same products. Returns whether the pivot is positive.
__device__ bool FactorColumn(double* column, int lane) {
  const bool own = lane < kNormalRows;
  double value = own ? column[lane] : 0;
#pragma unroll
  for (int p = kBandRows - 1; p >= 1; --p) {  // the latest column last, so that the others are fetched in
                                              // advance
    const double* const before = column - p * kNormalRows;
    const int row = lane == kBandRows ? kBandRows : lane + p;
    const bool reaches = lane == kBandRows || row < kBandRows;
    const double product = before[p] * before[0];
    value -= reaches ? before[reaches ? row : 0] * product : 0;
  }
  double pivot = Shuffle(value, 0);
  const bool positive = pivot > 0 && pivot < INFINITY;
  if (!positive) pivot = 1;
  if (own) column[lane] = lane == 0 ? pivot : value * Reciprocal(pivot);
  __syncwarp();
  return positive;
}

// Computes s from z by L^T, the last bin first. All lanes compute the same; the first lane writes.
__device__ void Substitute(const double* band, int size, double* sky) {
  double later[kBandRows - 1] = {};  // s[j + 1], s[j + 2] ...
  for (int j = size - 1; j >= 0; --j) {
    const double* const column = band + j * kNormalRows;
    double value = column[kBandRows];
#pragma unroll
    for (int o = kBandRows - 1; o >= 1; --o) value -= column[o] * later[o - 1];
#pragma unroll
    for (int o = kBandRows - 2; o >= 1; --o) later[o] = later[o - 1];
    later[0] = value;
    if (threadIdx.x == 0) sky[j] = value;
  }
}

// Loads a chunk's part of the normal equations, with zeros before its first bin and beyond its last.
__device__ void LoadBand(const SkyArgs& args, const ChunkPosition& position, double* columns) {
  const double prior = *args.fit.prior;
  const int size = position.end - position.first;
  for (int k = threadIdx.x; k < kPad + size; k += kWarp) {
    const int j = position.first + k - kPad;
    for (int o = 0; o < kNormalRows; ++o) {
      const bool there = k >= kPad && (o == kBandRows || j + o < position.end);
      const double value = there ? NormalAt(args.fit.normal, args.spectra.bins, o, j) : 0;
      columns[k * kNormalRows + o] = value + (there && o == 0 ? prior : 0);
    }
  }
  __syncwarp();
}

__global__ void __launch_bounds__(kWarp) Solve(SkyArgs args, SkyChunks chunks, bool shared) {
  const ChunkPosition position = PositionOf(chunks, args.spectra.bins);
  const int size = position.end - position.first, lane = threadIdx.x;
  double* const kept = args.fit.factor + int64_t{blockIdx.x} * chunks.columns() * kNormalRows;
  double *const columns = shared ? DynamicShared() : kept, *const band = columns + kPad * kNormalRows,
                *const solution = shared ? band + size * kNormalRows : args.fit.inverse;
  LoadBand(args, position, columns);
  bool positive = true;
  for (int j = 0; j < size; ++j) positive = FactorColumn(band + j * kNormalRows, lane) && positive;
  if (lane == 0 && !positive) atomicMax(&args.fit.counts->singular, 1);
  Substitute(band, size, solution);
  __syncwarp();
  for (int j = position.kept_first + lane; j < position.kept_end; j += kWarp)
    args.fit.sky[j] = solution[j - position.first];
  if (lane == 0 && position.kept_first > 0)
    args.fit.seams[blockIdx.x] = solution[position.kept_first - 1 - position.first];
  for (int k = lane; shared && k < (kPad + size) * kNormalRows; k += kWarp) kept[k] = columns[k];
}

// Checks that the last bin of a chunk's left halo equals the previous chunk's result.
__global__ void CheckSeams(SkyArgs args, SkyChunks chunks) {
  const int c = blockIdx.x * blockDim.x + threadIdx.x;
  if (c == 0 || c >= chunks.count) return;
  const int j = c * chunks.kept - 1;
  const double difference = args.fit.seams[c] - args.fit.sky[j],
               information = NormalAt(args.fit.normal, args.spectra.bins, 0, j) + *args.fit.prior;
  if (!(difference * difference * information <= kSeamTolerance * kSeamTolerance))
    atomicMax(&args.fit.counts->bad_seams, 1);
}

// Computes row j of the inverse from later rows: Z[j, later] = -Z[later, later] l_j and Z[j, j] = 1 / D_j -
// l_j . Z[j, later].
__device__ void InvertRow(const double* band, double* inverse, int j, int size, int lane) {
  const int later = min(kBandRows - 1, size - 1 - j);
  const double* const column = band + j * kNormalRows;
  double value = 0, part = 0;
  if (lane >= 1 && lane <= later) {
    for (int q = later; q >= 1; --q) {
      const int low = min(lane, q), apart = abs(lane - q);
      value -= inverse[(j + low) * kNormalRows + apart] * column[q];
    }
    part = column[lane] * value;
  }
  const double sum = WarpSum(part);
  if (lane == 0) value = Reciprocal(column[0]) - sum;
  if (lane < kBandRows) inverse[j * kNormalRows + lane] = value;
  __syncwarp();
}

__global__ void __launch_bounds__(kWarp) Invert(SkyArgs args, SkyChunks chunks, bool shared) {
  const ChunkPosition position = PositionOf(chunks, args.spectra.bins);
  const int bins = args.spectra.bins, size = position.end - position.first, lane = threadIdx.x;
  const double* const kept = args.fit.factor + (int64_t{blockIdx.x} * chunks.columns() + kPad) * kNormalRows;
  const double* band = kept;
  double* inverse = args.fit.inverse;
  if (shared) {
    double* const copy = DynamicShared();
    for (int k = lane; k < size * kNormalRows; k += kWarp) copy[k] = kept[k];
    band = copy;
    inverse = copy + size * kNormalRows;
  }
  __syncwarp();
  for (int j = size - 1; j >= position.kept_first - position.first; --j)
    InvertRow(band, inverse, j, size, lane);
  for (int j = position.kept_first + lane; j < position.kept_end; j += kWarp) {
    for (int o = 0; o < kBandRows; ++o)
      args.fit.covariance[int64_t{o} * bins + j] = inverse[(j - position.first) * kNormalRows + o];
  }
}

int64_t BytesOf(const SkyChunks& chunks) { return chunks.count > 1 ? kSharedBytes : 0; }

}  // namespace

SkyChunks ChunksOf(int bins) {
  if (bins <= kKept + 2 * kHalo) return OneChunk(bins);
  return {kKept, kHalo, (bins + kKept - 1) / kKept};
}
SkyChunks OneChunk(int bins) { return {bins, 0, 1}; }

cudaError_t ConfigureSky() {
  return FirstError({AllowShared(Solve, kSharedBytes), AllowShared(Invert, kSharedBytes)});
}

cudaError_t SolveSky(const SkyArgs& args, const SkyChunks& chunks, cudaStream_t stream) {
  const int64_t bytes = BytesOf(chunks);
  return FirstError(
      {cudaMemsetAsync(args.fit.counts, 0, sizeof(SkyCounts), stream), SumSkyNormal(args, stream),
       Launch(Solve, dim3(chunks.count), kWarp, bytes, stream, args, chunks, bytes > 0),
       Launch(CheckSeams, dim3((chunks.count + kBlock - 1) / kBlock), kBlock, 0, stream, args, chunks)});
}

cudaError_t InvertSky(const SkyArgs& args, const SkyChunks& chunks, cudaStream_t stream) {
  const int64_t bytes = BytesOf(chunks);
  return Launch(Invert, dim3(chunks.count), kWarp, bytes, stream, args, chunks, bytes > 0);
}

}  // namespace spexd::cuda
