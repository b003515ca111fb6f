// Lines: the residuals above the running continuum.
//
// Floor for a frame: flux and ivar are read and residuals written, 14 MB: 3 us. The time is spent in the
// block's barriers and in one thread's sum over the others.
#include "core/analysis/edge_bins.h"
#include "core/analysis/lines/line_constants.h"
#include "cuda/analysis/lines/lines.h"
#include "cuda/kernels/common/machine.cuh"

namespace spexd::cuda {
namespace {

constexpr int kThreads = 128;

// Running sums over the bins before each bin. Threads sum their own bins; then one thread adds these sums up,
// so that the sums on both sides of a stretch without data are equal to the bit.
class RunningSums {
 public:
  // `sums`: bins + 1. `starts`: kThreads + 1.
  __device__ RunningSums(double *sums, double *starts, int bins) : sums_(sums), starts_(starts) {
    const int each = ((bins + kThreads - 1) / kThreads) | 1;  // odd: no two lanes in one bank
    first_ = min(bins, static_cast<int>(threadIdx.x) * each);
    end_ = min(bins, first_ + each);
  }
  __device__ int first() const { return first_; }
  __device__ int end() const { return end_; }
  __device__ void Add(int bin, double value) {
    own_ += value;
    sums_[bin + 1] = own_;
  }
  // REQUIRES: one thread calls JoinByOneThread after a barrier that follows all Give; another barrier
  // precedes Shift.
  __device__ void Give() const { starts_[threadIdx.x + 1] = own_; }
  __device__ void JoinByOneThread() const {
    starts_[0] = sums_[0] = 0;
    for (int t = 1; t <= kThreads; ++t) starts_[t] += starts_[t - 1];
  }
  __device__ void Shift() {
    const double start = starts_[threadIdx.x];
    for (int j = first_; j < end_; ++j) sums_[j + 1] += start;
    own_ = 0;
  }

 private:
  double *sums_, *starts_;
  int first_, end_;
  double own_ = 0;
};

__global__ void __launch_bounds__(kThreads) LineResiduals(LineSpectra args) {
  const int row = blockIdx.x, bins = args.arm.bins;
  const int64_t from = static_cast<int64_t>(args.fibre[row]) * bins;
  double *const sums = DynamicShared(), *const weights = sums + bins + 1,
                *const continuum = weights + bins + 1, *const starts = continuum + bins;
  float *const flux = reinterpret_cast<float *>(starts + 2 * (kThreads + 1)), *const ivar = flux + bins;
  for (int j = threadIdx.x; j < bins; j += kThreads) {
    flux[j] = args.flux[from + j];
    ivar[j] = j >= kEdgeBins && j < bins - kEdgeBins ? args.ivar[from + j] : 0;
    continuum[j] = 0;
  }
  RunningSums flux_sums(sums, starts, bins), weight_sums(weights, starts + kThreads + 1, bins);
  __syncthreads();
  for (int pass = 0; pass < kContinuumPasses; ++pass) {
    for (int j = flux_sums.first(); j < flux_sums.end(); ++j) {
      const double value = flux[j], weight = ivar[j];
      const bool kept = pass == 0 || abs(value - continuum[j]) * sqrt(weight) < kContinuumClip;
      flux_sums.Add(j, kept ? weight * value : 0);
      weight_sums.Add(j, kept ? weight : 0);
    }
    flux_sums.Give();
    weight_sums.Give();
    __syncthreads();
    if (threadIdx.x == 0) flux_sums.JoinByOneThread();
    if (threadIdx.x == kWarp) weight_sums.JoinByOneThread();
    __syncthreads();
    flux_sums.Shift();
    weight_sums.Shift();
    __syncthreads();
    for (int j = threadIdx.x; j < bins; j += kThreads) {
      const int low = max(0, j - kContinuumReach), high = min(bins, j + kContinuumReach + 1);
      const double weight = weights[high] - weights[low];
      continuum[j] = weight > 0 ? (sums[high] - sums[low]) / weight : 0;
    }
    __syncthreads();
  }
  for (int j = threadIdx.x; j < bins; j += kThreads) {
    const double residual = flux[j] - continuum[j];
    args.weighted[static_cast<int64_t>(row) * bins + j] =
        ivar[j] > 0 ? static_cast<float>(ivar[j] * residual) : 0;
  }
}

}  // namespace

int64_t LineResidualBytes(int bins) {
  return static_cast<int64_t>(sizeof(double)) * (3 * int64_t{bins} + 2 + 2 * (kThreads + 1)) +
         static_cast<int64_t>(sizeof(float)) * 2 * bins;
}

cudaError_t ConfigureLines(int bins) {
  return AllowShared(LineResiduals, static_cast<int>(LineResidualBytes(bins)));
}

cudaError_t FindLineResiduals(const LineSpectra &args, cudaStream_t stream) {
  return Launch(LineResiduals, dim3(args.rows), kThreads, LineResidualBytes(args.arm.bins), stream, args);
}

}  // namespace spexd::cuda
