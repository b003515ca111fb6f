// Spectra that stay on the device. The emulator's device memory is the host's, so that tests can read them.
#include "core/extract/device_spectra.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "gtest/gtest.h"
#include "tests/cuda/cuda_fixture.h"
#include "tests/cuda_runtime/fake_cuda.h"
#include "tests/support/scenes/engine_runs.h"

namespace spexd::testing {
namespace {

constexpr WavelengthGrid kGrid = {6005, 0.8, 20};

class DeviceSpectraTest : public CudaTest {
 protected:
  ExtractRequest Request(Engine* engine, FibreRange fibres) {
    ExtractRequest request;
    request.prepared = *engine->Prepare(scene_.psf, kGrid, 2);
    request.image = scene_.image;
    request.fibres = fibres;
    request.float32 = true;
    request.on_device = &kept_;
    return request;
  }
  // Runs the job and keeps its bundles.
  absl::Status Run(Engine* engine, const ExtractRequest& request) {
    return engine
        ->Extract(request,
                  [&](BundleResult bundle) {
                    bundles_[bundle.bundle] = std::move(bundle);
                    return absl::OkStatus();
                  })
        .status();
  }
  // Expects the arrays on the device to equal those of the bundles.
  void ExpectKept(FibreRange asked) {
    ASSERT_NE(kept_, nullptr);
    const DeviceArrays& at = kept_->arrays();
    ASSERT_EQ(at.fibres, asked.count);
    ASSERT_EQ(at.bins, kGrid.count);
    for (const auto& [number, bundle] : bundles_) {
      const int64_t offset = (bundle.fibres.first - asked.first) * at.bins;
      const auto same = [](const auto& host, const auto* device) {
        return std::equal(host.flat().begin(), host.flat().end(), device);
      };
      const Spectra& spectra = bundle.spectra;
      EXPECT_TRUE(same(spectra.flux, at.flux + offset)) << number;
      EXPECT_TRUE(same(spectra.ivar, at.ivar + offset)) << number;
      EXPECT_TRUE(same(spectra.mask, at.mask + offset)) << number;
      EXPECT_TRUE(same(spectra.chi2pix, at.chi2pix + offset)) << number;
      EXPECT_TRUE(same(spectra.resolution, at.resolution + offset * kResolutionDiagonals)) << number;
    }
  }

  const Scene scene_ = MakeScene({.fibres = 5, .rows = 50});
  Bundles bundles_;
  std::shared_ptr<DeviceSpectra> kept_;
};

TEST_F(DeviceSpectraTest, AreThoseOfTheBundlesAlsoWhereTheseAreCut) {
  const auto engine = Load();
  const FibreRange asked = {1, 4};
  ASSERT_EQ(Run(engine.get(), Request(engine.get(), asked)), absl::OkStatus());
  EXPECT_EQ(bundles_.size(), 3u);
  ExpectKept(asked);
}

TEST_F(DeviceSpectraTest, AreThoseOfTheBundlesOfAJobThatRunsInParts) {
  int64_t whole = 0, one_bundle = 0;
  {
    const auto engine = Load();
    const JobEstimate estimate = engine->Estimate({scene_.psf.get(), kGrid, 2, {0, 5}, false, true});
    whole = estimate.device_bytes, one_bundle = estimate.min_bytes;
  }
  const auto engine = Load({.device_memory_bytes = (whole + one_bundle) / 2});
  const ExtractRequest request = Request(engine.get(), {0, 5});
  // A checked build waits for the upload and for each stage of each part; spots are not part of a job.
  const int waits = FakeCuda::Get().calls("cudaStreamSynchronize");
  ASSERT_EQ(Run(engine.get(), request), absl::OkStatus());
  EXPECT_GE(FakeCuda::Get().calls("cudaStreamSynchronize") - waits, 2 * kStageCount);
  ExpectKept({0, 5});
}

TEST_F(DeviceSpectraTest, OutliveTheEngineAndFreeTheirMemory) {
  const int64_t before = FakeCuda::Get().taken_bytes(0);
  auto engine = Load();
  ASSERT_EQ(Run(engine.get(), Request(engine.get(), {0, 2})), absl::OkStatus());
  engine.reset();
  EXPECT_GT(FakeCuda::Get().taken_bytes(0), before);
  ExpectKept({0, 2});
  Array<uint32_t, 2> mask({2, kGrid.count}, 7);
  ASSERT_EQ(kept_->SetMask(mask), absl::OkStatus());
  EXPECT_EQ(kept_->arrays().mask[2 * kGrid.count - 1], 7u);
  kept_.reset();
  EXPECT_EQ(FakeCuda::Get().taken_bytes(0), before);
}

TEST_F(DeviceSpectraTest, AreLeftOutWhereTheDeviceHasNoRoomForThemIfThatIsAllowed) {
  const auto engine = Load();
  ExtractRequest request = Request(engine.get(), {0, 5});
  request.on_device_if_room = true;
  FakeCuda::Get().FailNext("cudaMalloc", cudaErrorMemoryAllocation);
  ASSERT_EQ(Run(engine.get(), request), absl::OkStatus());
  EXPECT_EQ(kept_, nullptr);
  ASSERT_EQ(Run(engine.get(), request), absl::OkStatus());
  ExpectKept({0, 5});
}

TEST_F(DeviceSpectraTest, AreLeftOutOfAJobThatRunsInPartsIfThatIsAllowed) {
  int64_t whole = 0, one_bundle = 0;
  {
    const auto engine = Load();
    const JobEstimate estimate = engine->Estimate({scene_.psf.get(), kGrid, 2, {0, 5}, false, true});
    whole = estimate.device_bytes, one_bundle = estimate.min_bytes;
  }
  const auto engine = Load({.device_memory_bytes = (whole + one_bundle) / 2});
  ExtractRequest request = Request(engine.get(), {0, 5});
  request.on_device_if_room = true;
  ASSERT_EQ(Run(engine.get(), request), absl::OkStatus());
  EXPECT_EQ(kept_, nullptr);
}

TEST_F(DeviceSpectraTest, NeedFloat32) {
  const auto engine = Load();
  ExtractRequest request = Request(engine.get(), {0, 2});
  request.float32 = false;
  EXPECT_EQ(Run(engine.get(), request).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(DeviceSpectraTest, FailTheirJobAloneWhereTheDeviceHasNoRoomForThem) {
  const auto engine = Load();
  const ExtractRequest request = Request(engine.get(), {0, 2});
  FakeCuda::Get().FailNext("cudaMalloc", cudaErrorMemoryAllocation);
  EXPECT_EQ(Run(engine.get(), request).code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(kept_, nullptr);
  ASSERT_EQ(Run(engine.get(), request), absl::OkStatus());
  ExpectKept({0, 2});
}

}  // namespace
}  // namespace spexd::testing
