#include "cuda/kernels/kernels.h"
#include "cuda/kernels/machine.cuh"
#include "cuda/kernels/roots.cuh"

namespace spexd::cuda {
namespace {

// The largest width of each chunk, which decides how it is solved.
__global__ void __launch_bounds__(kWarp) FindWidest(JobView job) {
  const ChunkBins bins(job.roots, job.psf.shape.bins, blockIdx.x);
  const int32_t* widths = job.widths + static_cast<int64_t>(blockIdx.y) * job.psf.shape.bins;
  int widest = 0;
  for (int j = bins.first + threadIdx.x; j < bins.end; j += kWarp) widest = max(widest, widths[j]);
  widest = __reduce_max_sync(kAllLanes, widest);
  DeviceCheck(widest <= job.most_width && bins.count() <= job.roots.extended);
  if (threadIdx.x == 0) job.wide[blockIdx.y * job.roots.count + blockIdx.x] = widest;
}

}  // namespace

int64_t SquareRootScratch(const ExtractPlan& plan, int fibres) {
  const RootShape shape = {plan.roots, fibres, plan.most_usual_width, plan.most_width};
  return NarrowRootScratch(shape) + TiledRootScratch(shape) + WideRootScratch(shape);
}

// None of the kernels alone keeps a device busy.
cudaError_t SquareRoot(const JobView& job, cudaStream_t stream, const SideStreams& side) {
  const RootShape shape = {job.roots, job.fibres, job.usual_width, job.most_width};
  JobView tiled = job, wide = job;
  tiled.pole_scratch += NarrowRootScratch(shape);
  wide.pole_scratch = tiled.pole_scratch + TiledRootScratch(shape);
  return FirstError({
      Launch(FindWidest, dim3(job.roots.count, job.groups), kWarp, 0, stream, job),
      side.Fork(stream),
      TiledRoots(tiled, side.streams[0]),
      WideRoots(wide, side.streams[1]),
      NarrowRoots(job, stream),
      side.Join(stream),
  });
}

}  // namespace spexd::cuda
