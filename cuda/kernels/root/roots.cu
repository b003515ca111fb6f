#include "cuda/kernels/root/roots.cuh"

namespace spexd::cuda {
namespace {

constexpr int kThreads = 128;
constexpr int kListThreads = 512;

__global__ void __launch_bounds__(kThreads) Trim(RootArgs args) {
  const int bin = blockIdx.x * kThreads + threadIdx.x, size = args.precision.size;
  if (bin >= size) return;
  const int64_t matrix = blockIdx.y;
  double* const values = args.precision.values + matrix * args.precision.diagonals * size;
  const int most = min(kMaxNarrow, args.precision.diagonals - 1);
  for (int k = args.precision.widths[matrix * size + bin] + 1; k <= most; ++k)
    values[static_cast<int64_t>(k) * size + bin] = 0;
}

// Lists the tasks of a kind, in order; one block per kind.
__global__ void __launch_bounds__(kListThreads) ListTasks(RootArgs args) {
  __shared__ int counts[kListThreads / kWarp];
  const RootKind kind = static_cast<RootKind>(blockIdx.x);
  const int lane = threadIdx.x % kWarp, warp = threadIdx.x / kWarp;
  int32_t* const list = args.resolution.tasks + kind * args.resolution.root_tasks;
  int count = 0;
  for (int segment = 0; segment < args.resolution.slots * args.chunks.count; ++segment) {
    for (int first = 0; first < args.fibres; first += kListThreads) {
      const int fibre = first + static_cast<int>(threadIdx.x);
      const RootTask task(args, segment * args.fibres + min(fibre, args.fibres - 1));
      const bool own = fibre < args.fibres && task.slot < GroupsOf(args, task.fibre, task.chunk) &&
                       KindOf(args.resolution.widest[task.FirstPole(args, task.group)], args) == kind;
      const unsigned lanes = __ballot_sync(kAllLanes, own);
      if (lane == 0) counts[warp] = __popc(lanes);
      if (!__syncthreads_or(own)) continue;
      int before = count;
      for (int w = 0; w < kListThreads / kWarp; ++w) {
        before += w < warp ? counts[w] : 0;
        count += counts[w];
      }
      if (own) list[before + __popc(lanes & ((1u << lane) - 1))] = task.NumberOf(args);
      __syncthreads();
    }
    for (; kind == kNarrowRoot && count % kNarrowFibres != 0; ++count) {
      if (threadIdx.x == 0) list[count] = -1;
    }
  }
  if (threadIdx.x != 0) return;
  args.resolution.task_count[kind] = count;
  args.resolution.begun[kind] = 0;
}

RootShape ShapeOf(const RootArgs& args) {
  return {args.chunks, args.fibres, args.usual_width, args.precision.diagonals - 1, args.shared_bytes};
}

}  // namespace

int64_t SquareRootScratch(const RootShape& shape) {
  return NarrowRootScratch(shape) + TiledRootScratch(shape) + WideRootScratch(shape);
}

cudaError_t TrimPrecision(const RootArgs& args, cudaStream_t stream) {
  const dim3 grid((args.precision.size + kThreads - 1) / kThreads, args.fibres);
  return Launch(Trim, grid, kThreads, 0, stream, args);
}

cudaError_t PlanRoots(const RootArgs& args, cudaStream_t stream) {
  return Launch(ListTasks, kRootKinds, kListThreads, 0, stream, args);
}

// Runs the kernels side by side, because none of them keeps a device busy to its end. An event holds deep
// bands back for a moment, so that those of two tiles begin first. Without it, deep bands come first in half
// of the frames, and the stage then takes 7.6 ms instead of 6.8 ms.
cudaError_t SquareRoot(const RootArgs& args, cudaStream_t stream, const SideStreams& side) {
  const RootShape shape = ShapeOf(args);
  RootArgs tiled = args, wide = args;
  tiled.resolution.scratch += NarrowRootScratch(shape);
  wide.resolution.scratch = tiled.resolution.scratch + TiledRootScratch(shape);
  return FirstError({side.Order(0, 2),
                     WideRoots(wide, shape, {side.streams[1], side.streams[2], side.streams[0], stream}),
                     TiledRoots(tiled, side.streams[0], side.streams[2]), NarrowRoots(args, stream)});
}

}  // namespace spexd::cuda
