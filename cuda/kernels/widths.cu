// How far covariance is kept (core/extract/cpu/covariance_plan.h): a little beyond the spots' reach, much
// further beside holes, and further still where the precision asks for it.
#include "core/model/tolerances.h"
#include "cuda/kernels/chunk.cuh"
#include "cuda/kernels/kernels.h"

namespace spexd::cuda {
namespace {

constexpr int kThreads = 128;

__device__ int MostWidthOf(const GroupPlan& g) {
  return max(kHoleReaches * (g.reach + kCovarianceMargin), g.usual_width);
}

__global__ void Fill(JobView job) {
  const int bin = blockIdx.x * blockDim.x + threadIdx.x, bins = job.psf.shape.bins;
  if (bin < bins)
    job.wanted[static_cast<int64_t>(blockIdx.y) * bins + bin] = job.group_plans[blockIdx.y].usual_width;
  const int pieces = job.solve.all_pieces();
  for (int k = bin; k < kPasses * pieces; k += gridDim.x * blockDim.x) {
    const int pass = k / pieces, piece = k % pieces;
    job.again[(pass * job.groups + blockIdx.y) * pieces + piece] = pass == 0;
  }
}

__global__ void FindHoles(JobView job) {
  const GroupPlan g = job.group_plans[blockIdx.y];
  const int bin = blockIdx.x * blockDim.x + threadIdx.x, bins = job.psf.shape.bins;
  if (bin >= bins) return;
  int32_t* wanted = job.wanted + static_cast<int64_t>(blockIdx.y) * bins;
  const int around = 2 * max(g.reach, 1), wide = MostWidthOf(g);
  for (int i = 0; i < g.kept; ++i) {
    const double* weight = job.weight + static_cast<int64_t>(g.first_kept + i - job.first_fibre) * bins;
    double local = 0;
    for (int k = max(0, bin - around); k <= min(bins - 1, bin + around); k += around / 2) {
      local = fmax(local, weight[k]);
    }
    if (weight[bin] >= kHoleWeight * local) continue;
    // Bins before the hole are tied to those behind it.
    for (int k = max(0, bin - wide / 2); k <= min(bins - 1, bin + g.reach); ++k) atomicMax(wanted + k, wide);
  }
}

// A width is at least what an earlier bin's width needs, and no more than there are later bins.
__global__ void Take(JobView job) {
  const int bin = blockIdx.x * blockDim.x + threadIdx.x, bins = job.psf.shape.bins;
  if (bin >= bins) return;
  const int32_t* wanted = job.wanted + static_cast<int64_t>(blockIdx.y) * bins;
  int width = 0;
  for (int i = max(0, bin - job.most_width); i <= bin; ++i) width = max(width, wanted[i] - (bin - i));
  DeviceCheck(width <= job.most_width);
  job.widths[static_cast<int64_t>(blockIdx.y) * bins + bin] = min(width, bins - 1 - bin);
}

// Widens around the bins whose last partial correlation is too large, and has the pieces that keep changed
// bins computed again in the next pass.
__global__ void Widen(JobView job, int pass) {
  const GroupPlan g = job.group_plans[blockIdx.y];
  const int bin = blockIdx.x * blockDim.x + threadIdx.x, bins = job.psf.shape.bins;
  if (bin >= bins) return;
  const int width = job.widths[static_cast<int64_t>(blockIdx.y) * bins + bin];
  const int reach = max(g.reach, 1), most = MostWidthOf(g);
  if (width >= min(most, bins - 1 - bin)) return;
  const double tolerance = pass == 0 ? kPartialCorrelation : kPartialCorrelationAfter;
  double excess = 0;
  for (int i = 0; i < g.kept; ++i) {
    const int64_t at = static_cast<int64_t>(g.first_kept + i - job.first_fibre) * bins + bin;
    excess = fmax(excess, job.correlation[at] / tolerance);
  }
  if (!(excess > 1)) return;
  // Correlation falls about 70 times over a reach.
  const double more = ceil(log(kWidenRoom * excess) / log(70.0) * reach);
  const int wider = static_cast<int>(fmin(width + 1 + more, static_cast<double>(most)));
  int32_t* wanted = job.wanted + static_cast<int64_t>(blockIdx.y) * bins;
  int32_t* again = job.again + ((pass + 1) * job.groups + blockIdx.y) * job.solve.all_pieces();
  const int from = max(0, bin - reach / 2), to = min(bins - 1, bin + reach / 2);
  for (int k = from; k <= to; ++k) atomicMax(wanted + k, wider);
  // Later bins are widened in their turn, as far as the width goes.
  const int last = job.solve.PieceOf(min(to + wider, bins - 1));
  for (int piece = job.solve.PieceOf(from); piece <= last; ++piece) again[piece] = 1;
}

dim3 Grid(const JobView& job) { return dim3((job.psf.shape.bins + kThreads - 1) / kThreads, job.groups); }

}  // namespace

cudaError_t FirstWidths(const JobView& job, cudaStream_t stream) {
  return FirstError({Launch(Fill, Grid(job), kThreads, 0, stream, job),
                     Launch(FindHoles, Grid(job), kThreads, 0, stream, job)});
}

cudaError_t ComputeWidths(const JobView& job, int pass, cudaStream_t stream) {
  return FirstError({pass > 0 ? Launch(Widen, Grid(job), kThreads, 0, stream, job, pass - 1) : cudaSuccess,
                     Launch(Take, Grid(job), kThreads, 0, stream, job)});
}

}  // namespace spexd::cuda
