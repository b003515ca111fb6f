// Stage "precision": each fibre's marginal precision P from the band of its covariance, P = sum_j u_j u_j^T /
// v_j (core/extract/cpu/precision.h). A thread regresses one bin of usual width, a warp one of more; P is
// gathered, always in the same order.
//
// Floor for a frame: covariance read and P written, 0.12 GB each, 0.06 ms; 1.2 Gflop, 0.03 ms. As laid out
// here u is written and read, too.
#include "core/model/tolerances.h"
#include "cuda/kernels/device.cuh"
#include "cuda/kernels/fibre.cuh"
#include "cuda/kernels/kernels.h"

namespace spexd::cuda {
namespace {

constexpr int kWarps = 1;
constexpr int kWideWarps = 8;
constexpr int kMiddleWidth = 24;   // bins a little wider than usual have a launch of their own
constexpr int kMostBlocks = 2048;  // that loop over all bins
constexpr int kThreads = 128;
constexpr double kLeastVariance = 1e-300;  // where rounding leaves none

__host__ __device__ inline int64_t FactorEntries(int width) { return int64_t{width + 1} * (width + 2) / 2; }

// Entry (a, b) of one lane's factor: rows 1..q are the later bins in order, row q + 1 is the bin itself.
__device__ inline int Entry(int a, int b) { return (a * (a - 1) / 2 + b - 1) * kWarp; }

// The regression of `bin` on its q later bins; s: this lane's scratch. c: the fibre's covariance.
__device__ __forceinline__ void RegressBin(const JobView& job, const double* c, int64_t fibre, int bin, int q,
                                           double* s) {
  const int64_t bins = job.psf.shape.bins;
  // All at once, so that they wait for device memory once.
  for (int b = 1; b <= q; ++b) {
    for (int a = b; a <= q; ++a) CopyAsync8(s + Entry(a, b), c + (a - b) * bins + bin + b);
    CopyAsync8(s + Entry(q + 1, b), c + b * bins + bin);
  }
  CopyAsyncCommit();
  CopyAsyncWait<0>();
  for (int a = 1; a <= q + 1; ++a) {
    const bool self = a == q + 1;
    for (int b = 1; b <= (self ? q : a); ++b) {
      double sum = s[Entry(a, b)];
      for (int k = 1; k < b; ++k) sum = fma(-s[Entry(a, k)], s[Entry(b, k)], sum);
      s[Entry(a, b)] = a == b ? ReciprocalRoot(fmax(sum, kLeastVariance)) : sum * s[Entry(b, b)];
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

// The width of a bin if it is to be regressed in this pass, or -1.
__device__ inline int WidthIn(const JobView& job, int pass, int fibre, int bin) {
  const int bins = job.psf.shape.bins, group = GroupOf(job, fibre);
  if (bin >= bins ||
      job.again[(pass * job.groups + group) * job.solve.all_pieces() + job.solve.PieceOf(bin)] == 0)
    return -1;
  return job.widths[static_cast<int64_t>(group) * bins + bin];
}

// Of a matrix for bins of up to `width`: an odd stride avoids bank conflicts.
__host__ __device__ inline int MatrixStride(int width) { return (width + 1) | 1; }
__host__ __device__ inline int64_t MatrixEntries(int width) {
  return int64_t{width + 1} * MatrixStride(width);
}

int Blocks(int bins, int fibres) {
  const int64_t needed = (int64_t{Stretches(bins)} * fibres + kWarps - 1) / kWarps;
  return needed < kMostBlocks ? static_cast<int>(needed) : kMostBlocks;
}

// The bins of usual width, up to `most`, a thread to each.
__global__ void __launch_bounds__(kWarps* kWarp) RegressUsual(JobView job, int pass, int most) {
  double* const shared = DynamicShared();
  const int lane = threadIdx.x % kWarp, warp = blockIdx.x * kWarps + threadIdx.x / kWarp;
  const int bins = job.psf.shape.bins, stretches = Stretches(bins);
  double* own = shared + threadIdx.x / kWarp * FactorEntries(most) * kWarp + lane;
  for (int task = warp; task < stretches * job.fibres; task += gridDim.x * kWarps) {
    const int fibre = task / stretches, bin = task % stretches * kWarp + lane;
    const int q = WidthIn(job, pass, fibre, bin);
    const double* c = job.covariance + static_cast<int64_t>(fibre) * (job.most_width + 1) * bins;
    if (q >= 0 && q <= most) RegressBin(job, c, fibre, bin, q, own);
  }
}

// The same regression by a warp, its lanes 4 down by 8 across; m: a matrix of q + 1 rows, of the later bins
// in order and the bin itself.
template <bool kInside>
__device__ void RegressTogether(const JobView& job, const double* c, int64_t fibre, int bin, int q, double* m,
                                int stride) {
  const int lane = threadIdx.x % kWarp, down = lane / kTile, across = lane % kTile;
  const int64_t bins = job.psf.shape.bins;
  double* self = m + q * stride;
  const auto fetch = [](double* to, const double* from) {
    if constexpr (kInside) {
      CopyAsync8(to, from);
    } else {
      *to = *from;
    }
  };
  for (int d = down; d < q; d += kWarp / kTile) {
    for (int b = across; b < q - d; b += kTile) fetch(m + (b + d) * stride + b, c + d * bins + bin + 1 + b);
  }
  for (int k = lane; k < q; k += kWarp) fetch(self + k, c + (k + 1) * bins + bin);
  CopyAsyncCommit();
  CopyAsyncWait<0>();
  __syncwarp();
  for (int k = 0; k < q; ++k) {
    const double reciprocal = ReciprocalRoot(fmax(m[k * stride + k], kLeastVariance));
    for (int a = k + 1 + lane; a <= q; a += kWarp) m[a * stride + k] *= reciprocal;
    __syncwarp();
    if (lane == 0) m[k * stride + k] = reciprocal;
    for (int a = k + 1 + down; a <= q; a += kWarp / kTile) {
      const double l = m[a * stride + k];
      for (int b = k + 1 + across; b <= min(a, q - 1); b += kTile)
        m[a * stride + b] = fma(-l, m[b * stride + k], m[a * stride + b]);
    }
    __syncwarp();
  }
  double explained = 0;
  for (int k = lane; k < q; k += kWarp) explained = fma(self[k], self[k], explained);
  const double total = c[bin], left = fmax(total - WarpSum(explained), total * 1e-15), last = self[q - 1];
  __syncwarp();
  for (int k = q - 1; k >= 0; --k) {
    const double beta = self[k] * m[k * stride + k];
    __syncwarp();
    if (lane == 0) self[k] = beta;
    for (int a = lane; a < k; a += kWarp) self[a] = fma(-m[k * stride + a], beta, self[a]);
    __syncwarp();
  }
  double* u = job.regression + fibre * (job.most_width + 1) * bins + bin;
  for (int k = lane; k < q; k += kWarp) u[(k + 1) * bins] = self[k];
  if (lane == 0) {
    u[0] = -1;
    job.correlation[fibre * bins + bin] = fabs(last) / sqrt(fma(last, last, left));
    job.regression_weight[fibre * bins + bin] = 1 / left;
  }
  __syncwarp();
}

// The bins of widths in (above, width], a warp to each; kInside: their matrices fit into shared memory. A
// block's warps share a stretch of bins, since wide ones come together.
template <bool kInside>
__global__ void __launch_bounds__(kWideWarps* kWarp)
    RegressWide(JobView job, int pass, int above, int width) {
  double* const shared = DynamicShared();
  const int warp = threadIdx.x / kWarp, lane = threadIdx.x % kWarp;
  const int bins = job.psf.shape.bins, stretches = Stretches(bins), stride = MatrixStride(width);
  double* m = (kInside ? shared : job.regress_scratch + blockIdx.x * kWideWarps * MatrixEntries(width)) +
              warp * MatrixEntries(width);
  for (int task = blockIdx.x; task < stretches * job.fibres; task += gridDim.x) {
    const int fibre = task / stretches, bin = task % stretches * kWarp + lane;
    const int q = WidthIn(job, pass, fibre, bin);
    const double* c = job.covariance + static_cast<int64_t>(fibre) * (job.most_width + 1) * bins;
    int turn = 0;
    for (unsigned wide = __ballot_sync(kAllLanes, q > above && q <= width); wide != 0; wide &= wide - 1) {
      if (turn++ % kWideWarps != warp) continue;
      const int which = __ffs(wide) - 1;
      RegressTogether<kInside>(job, c, fibre, __shfl_sync(kAllLanes, bin, which),
                               __shfl_sync(kAllLanes, q, which), m, stride);
    }
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
  for (int first = 0; first <= max(own, max(job.usual_width, kLeastRootWidth)); first += kBatch) {
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

int64_t UsualBytes(int width) {
  return kWarps * FactorEntries(width) * kWarp * static_cast<int64_t>(sizeof(double));
}
int64_t WideBytes(int width) {
  return kWideWarps * MatrixEntries(width) * static_cast<int64_t>(sizeof(double));
}

}  // namespace

int64_t RegressScratch(const ExtractPlan& plan, int fibres) {
  const int64_t matrix = MatrixEntries(plan.most_width);
  return WideBytes(plan.most_width) <= plan.shared_bytes
             ? 0
             : Blocks(plan.shape.bins, fibres) * kWideWarps * matrix;
}

cudaError_t ConfigurePrecision(int shared_bytes) {
  return FirstError({AllowShared(RegressUsual, shared_bytes), AllowShared(RegressWide<true>, shared_bytes)});
}

cudaError_t Regress(const JobView& job, int pass, cudaStream_t stream, const SideStreams& side) {
  // Half of what there is, so that two blocks share a multiprocessor.
  int usual = job.usual_width;
  while (UsualBytes(usual) > job.shared_bytes / 2) --usual;
  const int blocks = Blocks(job.psf.shape.bins, job.fibres), wide_threads = kWideWarps * kWarp;
  const int most = job.most_width;
  int inside = most;  // as far as matrices fit into shared memory
  while (WideBytes(inside) > job.shared_bytes) --inside;
  const int middle = max(min(max(kMiddleWidth, job.usual_width), inside), usual);
  const auto wide = [&](cudaStream_t on, int from, int to) {
    if (to <= from) return cudaSuccess;
    return Launch(RegressWide<true>, blocks, wide_threads, WideBytes(to), on, job, pass, from, to);
  };
  const auto widest = [&](cudaStream_t on) {
    if (most <= inside) return cudaSuccess;
    return Launch(RegressWide<false>, blocks, wide_threads, 0, on, job, pass, max(middle, inside), most);
  };
  // Other bins each, side by side.
  return FirstError({
      side.Fork(stream),
      wide(side.streams[0], middle, inside),
      widest(side.streams[0]),
      wide(side.streams[1], usual, middle),
      Launch(RegressUsual, blocks, kWarps * kWarp, UsualBytes(usual), stream, job, pass, usual),
      side.Join(stream),
  });
}

cudaError_t AssemblePrecision(const JobView& job, cudaStream_t stream) {
  const dim3 grid((job.psf.shape.bins + kThreads - 1) / kThreads, job.fibres);
  return Launch(Assemble, grid, kThreads, 0, stream, job);
}

}  // namespace spexd::cuda
