// A job of one bundle on the emulated device, in memory that a test can access between its stages.
#ifndef SPEXD_TESTS_CUDA_EMULATION_JOB_IN_MEMORY_H_
#define SPEXD_TESTS_CUDA_EMULATION_JOB_IN_MEMORY_H_

#include <algorithm>
#include <cstddef>
#include <vector>

#include "cuda/kernels/factor/factor.h"
#include "cuda/plan/extract_plan.h"
#include "cuda/plan/job_arrays.h"
#include "cuda/plan/psf_shape.h"
#include "cuda/plan/tile.h"
#include "cuda/runtime/job_slot.h"
#include "cuda/runtime/pipeline.h"
#include "gtest/gtest.h"
#include "tests/cuda_runtime/fake_cuda.h"
#include "tests/support/scenes/engine_runs.h"

namespace spexd::cuda {

class JobInMemory {
 public:
  // All fibres of the scene are in one bundle.
  JobInMemory(const testing::Scene& scene, const WavelengthGrid& grid) : scene_(scene) {
    testing::FakeCuda::Device device;
    device.free_bytes = size_t{1} << 30;
    testing::FakeCuda::Get().Reset({device});
    EXPECT_EQ(ConfigureKernels(kMaxShared), cudaSuccess);
    EXPECT_EQ(slot_.Make(0), cudaSuccess);
    const PsfShape shape = ShapeOf(*scene.psf, grid, 25);
    EXPECT_EQ(shape.bundles(), 1);
    psf_.resize(ResidentBytes(shape) / sizeof(double) + 1);
    PackPsf(*scene.psf, shape, psf());
    std::vector<BundleFacts> facts(1);
    EXPECT_EQ(EnqueueLocate(shape, psf(), facts.data(), slot_.stream.get()), cudaSuccess);
    plan = MakeExtractPlan(shape, facts, BlockFibres(*scene.psf, shape, facts), {});
    EXPECT_EQ(EnqueueSpots(plan, psf(), slot_.stream.get()), cudaSuccess);
    job_.bundles = 1;
  }

  ExtractPlan plan;

  // Runs the job, or its stages up to the one after which `enqueued` returns an error. `at` has the arrays
  // until the next run.
  template <typename Enqueued>
  cudaError_t Run(const Enqueued& enqueued) {
    workspace_.assign(WorkspaceBytes(plan, job_) / sizeof(double) + 1, 0);
    const size_t pixels = static_cast<size_t>(scene_.image->pixels.size());
    float* const image = reinterpret_cast<float*>(workspace());
    std::copy_n(scene_.image->pixels.data(), pixels, image);
    std::copy_n(scene_.image->ivar.data(), pixels, image + pixels);
    // Arrays behind the factors' scratch do not depend on the scratch of other stages.
    const int tiles = TilesOf(plan.max_width) + 1;
    at = LayOutJob(plan, job_, {.factor = FactorScratch(tiles, TilesOf(plan.shape.bins), kMaxShared)},
                   workspace());
    return EnqueueExtract(plan, job_, psf(), workspace(), slot_.streams(), enqueued);
  }
  BundleResult Result() { return UnpackBundle(plan, job_, workspace() + OutputOffset(plan, job_), 0); }

  JobArrays at = {};

 private:
  std::byte* psf() { return reinterpret_cast<std::byte*>(psf_.data()); }
  std::byte* workspace() { return reinterpret_cast<std::byte*>(workspace_.data()); }

  const testing::Scene scene_;
  JobSlot slot_;
  std::vector<double> psf_, workspace_;
  JobShape job_;
};

}  // namespace spexd::cuda

#endif  // SPEXD_TESTS_CUDA_EMULATION_JOB_IN_MEMORY_H_
