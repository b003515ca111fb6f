// Stage "resolution": how many poles each fibre's square root takes, and which (core/extract/pole_formula.h).
//
// Floor for a frame: P and C read once, 0.24 GB, 0.06 ms.
#include "core/extract/pole_formula.h"
#include "cuda/kernels/device.cuh"
#include "cuda/kernels/fibre.cuh"
#include "cuda/kernels/kernels.h"

namespace spexd::cuda {
namespace {

constexpr int kThreads = 128;

__global__ void __launch_bounds__(kThreads) BoundAndPlan(JobView job) {
  __shared__ double most_p[kThreads / kWarp], most_c[kThreads / kWarp];
  __shared__ double bounds[2];
  const int fibre = blockIdx.x, bins = job.psf.shape.bins;
  const int64_t at = static_cast<int64_t>(fibre) * (job.most_width + 1) * bins;
  const double *p = job.precision + at, *c = job.covariance + at;
  const int32_t* widths = job.widths + static_cast<int64_t>(GroupOf(job, fibre)) * bins;
  double own_p = 0, own_c = 0;
  for (int j = threadIdx.x; j < bins; j += kThreads) {
    double row_p = fabs(p[j]), row_c = c[j];
    for (int k = 1; k <= widths[j]; ++k) {
      row_p += fabs(p[static_cast<int64_t>(k) * bins + j]);
      row_c += fabs(c[static_cast<int64_t>(k) * bins + j]);
    }
    for (int k = 1; k <= j && widths[j - k] >= k; ++k) {
      row_p += fabs(p[static_cast<int64_t>(k) * bins + j - k]);
      row_c += fabs(c[static_cast<int64_t>(k) * bins + j - k]);
    }
    own_p = fmax(own_p, row_p);
    own_c = fmax(own_c, row_c);
  }
  for (int mask = kWarp / 2; mask > 0; mask /= 2) {
    own_p = fmax(own_p, ShuffleXor(own_p, mask));
    own_c = fmax(own_c, ShuffleXor(own_c, mask));
  }
  if (threadIdx.x % kWarp == 0) {
    most_p[threadIdx.x / kWarp] = own_p;
    most_c[threadIdx.x / kWarp] = own_c;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    for (int k = 1; k < kThreads / kWarp; ++k) {
      own_p = fmax(own_p, most_p[k]);
      own_c = fmax(own_c, most_c[k]);
    }
    bounds[0] = fmin(0.25 / own_c, own_p);
    bounds[1] = own_p;
  }
  __syncthreads();
  const int poles = PolesNeeded(bounds[0], bounds[1]);
  DeviceCheck(poles >= kPoleBlock && poles <= kMaxPoles);
  const PoleFormula formula(bounds[0], bounds[1], poles);
  double* shift = job.pole_shift + fibre * kMaxPoles;
  double* weight = job.pole_weight + fibre * kMaxPoles;
  if (threadIdx.x < poles) {
    const Pole pole = formula.At(threadIdx.x);
    shift[threadIdx.x] = pole.shift;
    weight[threadIdx.x] = pole.weight;
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    double total = 0;
    for (int k = 0; k < poles; ++k) {
      total += weight[k];
      weight[k] *= shift[k];
    }
    job.pole_total[fibre] = total;
    job.pole_blocks[fibre] = poles / kPoleBlock;
  }
}

}  // namespace

cudaError_t PlanPoles(const JobView& job, cudaStream_t stream) {
  return Launch(BoundAndPlan, job.fibres, kThreads, 0, stream, job);
}

}  // namespace spexd::cuda
