// Stage "resolution": Q = P^(1/2) of each fibre, as far as it is reported, by poles
// (core/extract/pole_plan.h). Each pole takes a banded factorisation of P + shift, two solves and the inverse
// near the diagonal. Groups of poles have bands of their own: the larger the shift, the narrower. A band's
// width decides which kernel solves it.
#ifndef SPEXD_CUDA_KERNELS_ROOT_ROOTS_CUH_
#define SPEXD_CUDA_KERNELS_ROOT_ROOTS_CUH_

#include <cuda_runtime_api.h>

#include <array>
#include <cstdint>

#include "core/extract/pole_formula.h"
#include "core/model/frame.h"
#include "cuda/kernels/factor/band.cuh"
#include "cuda/kernels/factor/wide_kinds.cuh"
#include "cuda/kernels/root/resolution.h"

namespace spexd::cuda {

inline constexpr int kPoleGroups = kMaxPoles / kPoleGroup;
inline constexpr int kMaxNarrow = 13;  // largest width of roots_narrow.cu
inline constexpr int kMaxTiled = 32;   // largest width of roots_tiled.cu; roots_wide.cu takes any

// Whether roots_narrow.cu is used at all.
__host__ __device__ inline bool HasNarrow(int usual_width) { return usual_width <= kMaxNarrow; }
// The kernel for a chunk and a group of poles of this largest width.
__device__ inline RootKind KindOf(int widest, const RootArgs& args) {
  if (widest <= kMaxNarrow && HasNarrow(args.usual_width)) return kNarrowRoot;
  if (widest > kMaxTiled) {
    const int first = FirstWideKind(args.precision.diagonals - 1);
    return static_cast<RootKind>(kWideRoot + max(WideKindOf(TilesOf(widest)), first));
  }
  return widest <= 2 * kTile ? kTwoTileRoot : widest <= 3 * kTile ? kThreeTileRoot : kFourTileRoot;
}

inline constexpr int kNarrowFibres =
    kWarp / kPoleGroup;  // fibres that a warp of roots_narrow.cu takes at once

// Each kernel takes the tasks whose largest width belongs to it.
cudaError_t NarrowRoots(const RootArgs& args, cudaStream_t stream);
// Runs bands of two tiles on `stream`, wider ones on `deep`.
cudaError_t TiledRoots(const RootArgs& args, cudaStream_t stream, cudaStream_t deep);
// Runs the kinds of wide bands side by side, the widest on the first stream.
cudaError_t WideRoots(const RootArgs& args, const RootShape& shape,
                      const std::array<cudaStream_t, kWideKinds>& streams);

// Scratch that these use at the same time, in doubles.
int64_t NarrowRootScratch(const RootShape& shape);
int64_t TiledRootScratch(const RootShape& shape);
int64_t WideRootScratch(const RootShape& shape);

__device__ inline int GroupsOf(const RootArgs& args, int fibre, int chunk) {
  return (args.resolution.poles[fibre * args.chunks.count + chunk] + kPoleGroup - 1) / kPoleGroup;
}

// A fibre, a chunk and a slot of sums, with the slot's groups of poles [group, end), which are taken one
// after the other. The first slot also takes the groups that exceed the number of slots; every other slot
// takes one. So all groups are added in the same order, whatever the number of slots. The lists of tasks
// (ResolutionArrays) have the tasks' numbers. The list of the narrow kind is filled up with -1, so that a
// warp's fibres belong to one chunk and slot.
struct RootTask {
  int fibre, chunk, slot, group, end;
  __device__ RootTask(const RootArgs& args, int number)
      : fibre(number % args.fibres),
        chunk(number / args.fibres % args.chunks.count),
        slot(number / args.fibres / args.chunks.count),
        end(slot + 1 + max(GroupsOf(args, fibre, chunk) - args.resolution.slots, 0)) {
    group = slot == 0 ? 0 : end - 1;
  }
  __device__ int NumberOf(const RootArgs& args) const {
    return (slot * args.chunks.count + chunk) * args.fibres + fibre;
  }
  // Index of the first pole of a group.
  __device__ int FirstPole(const RootArgs& args, int of_group) const {
    return (fibre * args.chunks.count + chunk) * kMaxPoles + of_group * kPoleGroup;
  }
};
__device__ inline const int32_t* TasksOf(const RootArgs& args, RootKind kind) {
  return args.resolution.tasks + kind * args.resolution.root_tasks;
}

// Takes the next `count` tasks of a kind for a warp. Returns the first, which may lie beyond the last task.
__device__ inline int NextTask(const RootArgs& args, RootKind kind, int count) {
  const int first = threadIdx.x % kWarp == 0 ? atomicAdd(args.resolution.begun + kind, count) : 0;
  return __shfl_sync(kAllLanes, first, 0);
}

// Number of blocks of a kernel that loops over tasks, each block with `doubles` of scratch: as many as keep a
// device busy (`most`), and no more than fit into `bytes` of scratch.
inline int RootBlocks(int tasks, int most, int64_t doubles, int64_t bytes) {
  const int64_t enough = bytes / static_cast<int64_t>(sizeof(double)) / doubles;
  return static_cast<int>(std::max(int64_t{1}, std::min(int64_t{std::min(tasks, most)}, enough)));
}

__host__ __device__ inline int RootTasks(int chunks, int fibres) { return kPoleGroups * chunks * fibres; }

// The sums over poles of a bin, for RootArgs and ReportArgs.
template <typename Args>
__device__ double* SumsAt(const Args& args, int slot, int fibre, int bin) {
  return args.resolution.sums +
         ((static_cast<int64_t>(slot) * args.fibres + fibre) * args.precision.size + bin) * kPoleSums;
}

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_KERNELS_ROOT_ROOTS_CUH_
