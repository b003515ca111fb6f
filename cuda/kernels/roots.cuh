// Stage "resolution": Q = P^(1/2) of each fibre as far as it is reported, by poles
// (core/extract/pole_plan.h): for each one a banded factorisation of P + shift, two solves and the inverse
// near the diagonal. Chunks of wavelength are solved by how wide their bands are.
#ifndef SPEXD_CUDA_KERNELS_ROOTS_CUH_
#define SPEXD_CUDA_KERNELS_ROOTS_CUH_

#include <cuda_runtime_api.h>

#include <cstdint>

#include "core/extract/pole_formula.h"
#include "core/model/frame.h"
#include "cuda/kernels/chunk.cuh"
#include "cuda/kernels/views.h"
#include "cuda/plan/extract_plan.h"

namespace spexd::cuda {

inline constexpr int kPoleBlocks = kMaxPoles / kPoleBlock;
inline constexpr int kMostNarrow = 14;  // widths of roots_narrow.cu at most,
inline constexpr int kMostTiled = 32;   // of roots_tiled.cu; roots_wide.cu takes any

// The widest band that roots_narrow.cu takes: it wants all chunks of usual width alike.
__host__ __device__ inline int NarrowWidth(int usual_width) {
  return usual_width <= kMostNarrow ? usual_width : -1;
}

// Each takes the chunks whose largest width is its own.
cudaError_t NarrowRoots(const JobView& job, cudaStream_t stream);
cudaError_t TiledRoots(const JobView& job, cudaStream_t stream);
cudaError_t WideRoots(const JobView& job, cudaStream_t stream);

// What they use of job.pole_scratch side by side, in doubles.
struct RootShape {
  ChunkPlan chunks;
  int fibres, usual_width, most_width;
};
int64_t NarrowRootScratch(const RootShape& shape);
int64_t TiledRootScratch(const RootShape& shape);
int64_t WideRootScratch(const RootShape& shape);

// Fibre, chunk and eight poles, for blocks that loop over all of them.
struct RootTask {
  int fibre, chunk, pole_block;
  __device__ RootTask(const JobView& job, int task)
      : fibre(task % job.fibres),
        chunk(task / job.fibres % job.roots.count),
        pole_block(task / job.fibres / job.roots.count) {}
};
// Blocks of a kernel that loops over tasks with `doubles` of scratch each: as many as keep a device busy
// (`most`), and no more than a bounded scratch is enough for.
inline int RootBlocks(int tasks, int most, int64_t doubles) {
  constexpr int64_t kMostScratch = (int64_t{4} << 30) / sizeof(double);
  return static_cast<int>(max(int64_t{1}, min(int64_t{min(tasks, most)}, kMostScratch / doubles)));
}

__host__ __device__ inline int RootTasks(int chunks, int fibres) { return kPoleBlocks * chunks * fibres; }

__device__ inline double* SumsAt(const JobView& job, int pole_block, int fibre, int bin) {
  return job.pole_sums +
         ((static_cast<int64_t>(pole_block) * job.fibres + fibre) * job.psf.shape.bins + bin) * kPoleSums;
}

}  // namespace spexd::cuda

#endif  // SPEXD_CUDA_KERNELS_ROOTS_CUH_
