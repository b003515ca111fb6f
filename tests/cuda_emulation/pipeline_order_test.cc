// The stages of whole jobs, with the real kernels: of two operations that streams and events leave unordered,
// neither writes what the other uses. The kernels' accesses are observed, not declared (watched_memory.cc),
// so the test covers the kernels as they are.
//
// A test sees only what its job does: there is one for each way in which stages run at the same time.
#include <cstddef>
#include <cstdio>
#include <memory>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "cuda/plan/extract_plan.h"
#include "cuda/plan/psf_shape.h"
#include "cuda/runtime/job_slot.h"
#include "cuda/runtime/pipeline.h"
#include "tests/cuda_runtime/fake_cuda.h"
#include "tests/cuda_runtime/stream_order.h"
#include "tests/support/matchers.h"
#include "tests/support/scenes/engine_runs.h"

namespace spexd::cuda {
namespace {

using testing::StreamOrder;

// Allocates blocks of memory as a device does.
class Memory {
 public:
  explicit Memory(int64_t bytes) : bytes_(static_cast<size_t>(bytes)) {
    EXPECT_EQ(cudaMalloc(&data_, bytes_), cudaSuccess);
  }
  ~Memory() { cudaFree(data_); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  std::byte* data() const { return static_cast<std::byte*>(data_); }
  size_t bytes() const { return bytes_; }

 private:
  void* data_ = nullptr;
  const size_t bytes_;
};

struct Job {
  std::string name;
  testing::SceneOptions scene;
  WavelengthGrid grid;
  int bundle_size = 25;
  int chunk_bins = 0;
  bool hole = false;
  // Uses so little shared memory that everything that can go to device memory does.
  bool little_shared = false;
};
std::ostream& operator<<(std::ostream& out, const Job& job) { return out << job.name; }

class Pipeline : public ::testing::TestWithParam<Job> {
 protected:
  Pipeline() {
    testing::FakeCuda::Device device;
    device.free_bytes = size_t{4} << 30;
    testing::FakeCuda::Get().Reset({device});
    EXPECT_EQ(ConfigureKernels(kMaxShared), cudaSuccess);
    EXPECT_EQ(slot_.Make(0), cudaSuccess);
  }

  static testing::Scene SceneOf(const Job& job) {
    testing::Scene scene = testing::MakeScene(job.scene);
    if (!job.hole) return scene;
    testing::MaskPixels(40, 22, 8, 18, scene.image.get());
    testing::MaskPixels(0, job.scene.rows, 27, 1, scene.image.get());
    return scene;
  }

  // Returns a prepared PSF in device memory.
  std::unique_ptr<Memory> MakeResident(const Psf& psf, const Job& job, ExtractPlan* plan) {
    cudaStream_t const stream = slot_.stream.get();
    const PsfShape shape = ShapeOf(psf, job.grid, job.bundle_size);
    auto resident = std::make_unique<Memory>(ResidentBytes(shape));
    PackPsf(psf, shape, resident->data());
    std::vector<BundleFacts> facts(static_cast<size_t>(shape.bundles()));
    EXPECT_EQ(EnqueueLocate(shape, resident->data(), facts.data(), stream), cudaSuccess);
    const int block_fibres = BlockFibres(psf, shape, facts);
    *plan = MakeExtractPlan(shape, std::move(facts), block_fibres, {.chunk_bins = job.chunk_bins});
    EXPECT_EQ(EnqueueSpots(*plan, resident->data(), stream), cudaSuccess);
    if (job.little_shared) plan->shared_bytes = 1024;
    return resident;
  }

  JobSlot slot_;
};

TEST_P(Pipeline, OrdersWhatSharesMemory) {
  const testing::Scene scene = SceneOf(GetParam());
  ExtractPlan plan;
  const std::unique_ptr<Memory> resident = MakeResident(*scene.psf, GetParam(), &plan);
  JobShape job;
  job.bundles = plan.shape.bundles();
  job.psferr = 0.01;
  job.want_model = true;
  const Memory workspace(WorkspaceBytes(plan, job));

  cudaStream_t const stream = slot_.stream.get();
  const StreamOrder order(workspace.data(), workspace.bytes());
  ASSERT_EQ(cudaMemsetAsync(workspace.data(), 0xFF, workspace.bytes(), stream), cudaSuccess);
  const size_t pixels = static_cast<size_t>(ImageBytes(plan.shape.ccd_rows, plan.shape.ccd_columns) / 2);
  ASSERT_EQ(cudaMemcpyAsync(workspace.data(), scene.image->pixels.data(), pixels, cudaMemcpyDefault, stream),
            cudaSuccess);
  ASSERT_EQ(
      cudaMemcpyAsync(workspace.data() + pixels, scene.image->ivar.data(), pixels, cudaMemcpyDefault, stream),
      cudaSuccess);
  ASSERT_EQ(EnqueueExtract(plan, job, resident->data(), workspace.data(), slot_.streams(),
                           [](Stage) { return cudaSuccess; }),
            cudaSuccess);
  const BundleResult bundle = UnpackBundle(plan, job, workspace.data() + OutputOffset(plan, job), 0);
  EXPECT_LT(bundle.residual, 1e-6);

  EXPECT_THAT(order.races(), IsEmpty());
  std::printf("  %d operations, %d pairs not in order\n", order.operations(), order.unordered());
  EXPECT_GT(order.operations(), 100);
  EXPECT_GT(order.unordered(), 100);
}

INSTANTIATE_TEST_SUITE_P(
    Jobs, Pipeline,
    ::testing::Values(Job{.name = "InChunks",
                          .scene = {.fibres = 3, .rows = 90},
                          .grid = {6003, 0.8, 54},
                          .chunk_bins = 16,
                          .hole = true},
                      Job{.name = "TwoBundlesAndATail",
                          .scene = {.fibres = 9, .rows = 50, .bundle_size = 6, .tail = true},
                          .grid = {6004, 0.8, 24},
                          .bundle_size = 6},
                      Job{.name = "LittleSharedMemory",
                          .scene = {.fibres = 3, .rows = 90},
                          .grid = {6003, 0.8, 54},
                          .hole = true,
                          .little_shared = true},
                      Job{.name = "BlocksOfSeveralFibres",
                          .scene = {.fibres = 5, .rows = 60, .widen = 2},
                          .grid = {6006, 0.8, 24}},
                      Job{.name = "FineBins", .scene = {.fibres = 2, .rows = 56}, .grid = {6008, 0.4, 40}},
                      Job{.name = "FineBinsAndLittleSharedMemory",
                          .scene = {.fibres = 2, .rows = 56},
                          .grid = {6008, 0.4, 40},
                          .little_shared = true}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace spexd::cuda
