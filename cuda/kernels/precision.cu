// Stage "precision": each fibre's marginal precision P from the band of its covariance, P = sum_j u_j u_j^T /
// v_j (core/extract/cpu/precision.h). A thread regresses one bin; P is gathered, always in the same order.
//
// Floor for a frame: covariance read 0.12 GB, u written and read, P written: 0.5 GB, 0.12 ms; 0.7 k
// multiply-adds a bin, 1.6 Gflop, 0.05 ms.
#include "core/model/tolerances.h"
#include "cuda/kernels/device.cuh"
#include "cuda/kernels/fibre.cuh"
#include "cuda/kernels/kernels.h"

namespace spexd::cuda {
namespace {

constexpr int kWarps = 2;
constexpr int kMostBlocks = 1024;  // that loop over all bins
constexpr int kMostShared = 100 * 1024;
constexpr int kThreads = 128;

__host__ __device__ inline int64_t FactorEntries(int width) { return int64_t{width + 1} * (width + 2) / 2; }

// Entry (a, b) of one lane's factor: rows 1..q are the later bins in order, row q + 1 is the bin itself.
__device__ inline int Entry(int a, int b) { return (a * (a - 1) / 2 + b - 1) * kWarp; }

// The regression of `bin` on its q later bins; s: this lane's scratch. c: the fibre's covariance.
__device__ __forceinline__ void RegressBin(const JobView& job, const double* c, int64_t fibre, int bin, int q,
                                           double* s) {
  const int64_t bins = job.psf.shape.bins;
  for (int a = 1; a <= q + 1; ++a) {
    const bool self = a == q + 1;
    for (int b = 1; b <= (self ? q : a); ++b) {
      double sum = self ? c[b * bins + bin] : c[(a - b) * bins + bin + b];
      for (int k = 1; k < b; ++k) sum = fma(-s[Entry(a, k)], s[Entry(b, k)], sum);
      s[Entry(a, b)] = a == b ? 1 / sqrt(fmax(sum, 1e-300)) : sum * s[Entry(b, b)];
    }
  }
  const double total = c[bin];
  double left = total, last = 0;
  for (int k = 1; k <= q; ++k) {
    last = s[Entry(q + 1, k)];
    left = fma(-last, last, left);
  }
  left = fmax(left, total * 1e-15);
  job.correlation[fibre * bins + bin] = fabs(last) / sqrt(fma(last, last, left));
  job.regression_weight[fibre * bins + bin] = 1 / left;
  double* u = job.regression + fibre * (job.most_width + 1) * bins + bin;
  u[0] = -1;  // u up to its sign
  for (int k = q; k >= 1; --k) {
    double sum = s[Entry(q + 1, k)];
    for (int a = k + 1; a <= q; ++a) sum = fma(-s[Entry(a, k)], s[Entry(q + 1, a)], sum);
    sum *= s[Entry(k, k)];
    s[Entry(q + 1, k)] = sum;
    u[k * bins] = sum;
  }
}

// Stretches of a warp's bins.
__host__ __device__ inline int Stretches(int bins) { return (bins + kWarp - 1) / kWarp; }

int Blocks(int bins, int fibres) {
  const int64_t needed = (int64_t{Stretches(bins)} * fibres + kWarps - 1) / kWarps;
  return needed < kMostBlocks ? static_cast<int>(needed) : kMostBlocks;
}

__global__ void __launch_bounds__(kWarps* kWarp) RegressAll(JobView job, int pass, int shared_width) {
  extern __shared__ double shared[];
  const int lane = threadIdx.x % kWarp, warp = blockIdx.x * kWarps + threadIdx.x / kWarp;
  const int bins = job.psf.shape.bins, stretches = Stretches(bins);
  double* near = shared + threadIdx.x / kWarp * FactorEntries(shared_width) * kWarp + lane;
  double* far = job.regress_scratch + warp * FactorEntries(job.most_width) * kWarp + lane;
  for (int task = warp; task < stretches * job.fibres; task += gridDim.x * kWarps) {
    const int fibre = task / stretches, bin = task % stretches * kWarp + lane;
    const int group = GroupOf(job, fibre);
    const bool active =
        bin < bins && job.again[(pass * job.groups + group) * job.chunks + bin / job.chunk_bins] != 0;
    if (!__any_sync(kAllLanes, active)) continue;
    const int q = active ? job.widths[static_cast<int64_t>(group) * bins + bin] : 0;
    const bool fits = __all_sync(kAllLanes, q <= shared_width);
    const double* c = job.covariance + static_cast<int64_t>(fibre) * (job.most_width + 1) * bins;
    if (active && fits) RegressBin(job, c, fibre, bin, q, near);
    if (active && !fits) RegressBin(job, c, fibre, bin, q, far);
    __syncwarp();
  }
}

constexpr int kBatch = 8;  // diagonals gathered at once

__global__ void __launch_bounds__(kThreads) Assemble(JobView job) {
  const int64_t bins = job.psf.shape.bins;
  const int bin = blockIdx.x * kThreads + threadIdx.x, fibre = blockIdx.y;
  if (bin >= bins) return;
  const int32_t* widths = job.widths + GroupOf(job, fibre) * bins;
  const double* u = job.regression + fibre * (job.most_width + 1) * bins;
  const double* weight = job.regression_weight + fibre * bins;
  double* out = job.precision + fibre * (job.most_width + 1) * bins + bin;
  const int own = widths[bin];
  for (int first = 0; first <= max(own, job.usual_width); first += kBatch) {
    double sum[kBatch] = {};
    // Earlier bins, as long as they reach this one: their ends ascend.
    for (int a = 0; a <= bin; ++a) {
      const int reach = widths[bin - a] - a;  // of bin - a, counted from here
      if (reach < first) break;
      const double* from = u + (bin - a);
      const double scaled = weight[bin - a] * from[a * bins];
#pragma unroll
      for (int k = 0; k < kBatch; ++k) {
        if (first + k <= reach) sum[k] = fma(scaled, from[(a + first + k) * bins], sum[k]);
      }
    }
#pragma unroll
    for (int k = 0; k < kBatch; ++k) {
      if (first + k <= job.most_width) out[(first + k) * bins] = sum[k];
    }
  }
}

}  // namespace

int64_t RegressScratch(const ExtractPlan& plan, int fibres) {
  return Blocks(plan.shape.bins, fibres) * kWarps * FactorEntries(plan.most_width) * kWarp;
}

cudaError_t ConfigurePrecision() {
  return cudaFuncSetAttribute(RegressAll, cudaFuncAttributeMaxDynamicSharedMemorySize, kMostShared);
}

cudaError_t Regress(const JobView& job, int pass, cudaStream_t stream) {
  const auto bytes = [](int width) { return kWarps * FactorEntries(width) * kWarp * 8; };
  int shared_width = job.usual_width;
  while (bytes(shared_width) > kMostShared) --shared_width;
  RegressAll<<<Blocks(job.psf.shape.bins, job.fibres), kWarps * kWarp, bytes(shared_width), stream>>>(job, pass, shared_width);
  return cudaGetLastError();
}

cudaError_t AssemblePrecision(const JobView& job, cudaStream_t stream) {
  const dim3 grid((job.psf.shape.bins + kThreads - 1) / kThreads, job.fibres);
  Assemble<<<grid, kThreads, 0, stream>>>(job);
  return cudaGetLastError();
}

}  // namespace spexd::cuda
