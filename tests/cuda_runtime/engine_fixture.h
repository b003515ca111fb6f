// An engine on the fake runtime, with a small PSF and image.
#ifndef SPEXD_TESTS_CUDA_RUNTIME_ENGINE_FIXTURE_H_
#define SPEXD_TESTS_CUDA_RUNTIME_ENGINE_FIXTURE_H_

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "cuda/memory/block_allocator.h"
#include "cuda/runtime/cuda_engine.h"
#include "cuda/runtime/pipeline.h"
#include "gtest/gtest.h"
#include "tests/cuda_runtime/fake_cuda.h"
#include "tests/cuda_runtime/fake_pipeline.h"
#include "tests/support/scenes/scene.h"

namespace spexd::cuda {

inline constexpr WavelengthGrid kGrid = {6006, 0.8, 20};
inline constexpr int kBundle = 3;

inline std::string Words(const absl::Status& status) { return std::string(status.message()); }

class CudaEngineTest : public ::testing::Test {
 protected:
  CudaEngineTest() {
    psf_ = testing::MakeScenePsf({.fibres = 8, .rows = 60});
    auto image = std::make_shared<Image>();
    image->pixels.Assign({psf_->rows, psf_->columns}, 0.5f);
    image->ivar.Assign({psf_->rows, psf_->columns}, 1);
    image_ = image;
    testing::FakePipeline::Get().Reset();
    testing::FakeCuda::Get().Reset({{}, {}});
  }

  std::unique_ptr<Engine> Make(CudaEngineOptions options = {}) {
    if (options.device_memory_bytes == 0) options.device_memory_bytes = 32 << 20;
    auto engine = MakeCudaEngine(options);
    EXPECT_TRUE(engine.ok()) << engine.status();
    return *std::move(engine);
  }
  static CudaEngineOptions OneDevice(int jobs = 4, int64_t bytes = 0) {
    return {.devices = {0}, .device_memory_bytes = bytes, .jobs_per_device = jobs};
  }

  std::shared_ptr<const PreparedPsf> Prepare(Engine* engine) {
    auto prepared = engine->Prepare(psf_, kGrid, kBundle);
    EXPECT_TRUE(prepared.ok()) << prepared.status();
    return *std::move(prepared);
  }
  ExtractRequest Request(std::shared_ptr<const PreparedPsf> prepared) {
    ExtractRequest request;
    request.prepared = std::move(prepared);
    request.image = image_;
    request.fibres = {0, psf_->fibres};
    return request;
  }
  absl::Status Run(Engine* engine, const ExtractRequest& request) {
    return engine->Extract(request, [](BundleResult) { return absl::OkStatus(); }).status();
  }
  absl::Status Run(Engine* engine) { return Run(engine, Request(Prepare(engine))); }
  // Returns the device memory for `psfs` PSFs and one job of `bundles` bundles.
  int64_t Room(int psfs, int bundles = 3) {
    const auto probe = Make(OneDevice());
    const auto prepared = Prepare(probe.get());
    const ExtractPlan plan =
        MakeExtractPlan(ShapeOf(*psf_, kGrid, kBundle),
                        std::vector<BundleFacts>(3, BundleFacts{6, 1, 0, psf_->columns}), 1, {});
    JobShape all;
    all.bundles = bundles;
    return psfs * Aligned(prepared->bytes()) + Aligned(WorkspaceBytes(plan, all));
  }

  std::shared_ptr<const Psf> psf_;
  std::shared_ptr<const Image> image_;
};

}  // namespace spexd::cuda

#endif  // SPEXD_TESTS_CUDA_RUNTIME_ENGINE_FIXTURE_H_
