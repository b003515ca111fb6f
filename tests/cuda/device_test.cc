// The engine's information about its devices, and options that it refuses.
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "tests/cuda/cuda_fixture.h"
#include "tests/support/matchers.h"
#include "tests/support/scenes/engine_runs.h"

namespace spexd::testing {
namespace {

constexpr WavelengthGrid kDeviceGrid = {6006, 0.8, 40};

class CudaDevices : public CudaTest {
 protected:
  static ExtractRequest Request(Engine* engine, const Scene& scene) {
    ExtractRequest request;
    auto prepared = engine->Prepare(scene.psf, kDeviceGrid, scene.psf->fibres);
    EXPECT_TRUE(prepared.ok()) << prepared.status();
    if (prepared.ok()) request.prepared = *std::move(prepared);
    request.image = scene.image;
    request.fibres = {0, scene.psf->fibres};
    return request;
  }
  static void ExpectRefused(const CudaEngineOptions& options, absl::StatusCode code,
                            const std::string& words) {
    const absl::Status status = TryLoad(options).status();
    EXPECT_EQ(status.code(), code) << status;
    EXPECT_THAT(std::string(status.message()), HasSubstr(words));
  }
};

TEST_F(CudaDevices, AreNamedWithTheirMemory) {
  const auto engine = Load();
  ASSERT_NE(engine, nullptr);
  EXPECT_EQ(engine->Info().kind, "cuda");
  ASSERT_EQ(engine->Devices().size(), 1u);
  const DeviceStatus device = engine->Devices()[0];
  EXPECT_EQ(device.index, 0);
  EXPECT_FALSE(device.name.empty());
  EXPECT_THAT(engine->Info().device, HasSubstr(device.name));
  EXPECT_EQ(device.memory_bytes, kSceneMemory);
  EXPECT_EQ(device.resident_bytes, 0);
  EXPECT_TRUE(device.health.ok()) << device.health;
}

TEST_F(CudaDevices, TellWhatAPsfHoldsAndForgetItWithItsOwner) {
  const auto engine = Load();
  ASSERT_NE(engine, nullptr);
  ExtractRequest request = Request(engine.get(), MakeScene({.fibres = 3, .rows = 70}));
  ASSERT_NE(request.prepared, nullptr);
  const auto ignore = [](BundleResult) { return absl::OkStatus(); };
  EXPECT_TRUE(engine->Extract(request, ignore).ok());
  EXPECT_GE(engine->Devices()[0].resident_bytes, request.prepared->bytes());
  EXPECT_EQ(engine->Devices()[0].workspace_bytes, 0);
  request.prepared.reset();
  EXPECT_EQ(engine->Devices()[0].resident_bytes, 0);
}

TEST_F(CudaDevices, TimeEveryStage) {
  const auto engine = Load();
  ASSERT_NE(engine, nullptr);
  const Scene scene = MakeScene({.fibres = 3, .rows = 70});
  const ExtractRequest request = Request(engine.get(), scene);
  ASSERT_NE(request.prepared, nullptr);
  const auto ignore = [](BundleResult) { return absl::OkStatus(); };
  const auto first = engine->Extract(request, ignore), second = engine->Extract(request, ignore);
  ASSERT_TRUE(first.ok() && second.ok()) << first.status() << second.status();
  for (Stage stage : kAllStages) {
    SCOPED_TRACE(StageName(stage));
    EXPECT_GT((*first)[stage], 0);
    EXPECT_LT((*first)[stage], 10);
    // The spots exist already.
    if (stage == Stage::kSpots) {
      EXPECT_EQ((*second)[stage], 0);
    } else {
      EXPECT_GT((*second)[stage], 0);
    }
  }
}

TEST_F(CudaDevices, RefuseAPsfPreparedByAnotherEngine) {
  const auto engine = Load(), other = Load();
  ASSERT_TRUE(engine != nullptr && other != nullptr);
  const ExtractRequest request = Request(other.get(), MakeScene({.fibres = 2, .rows = 60}));
  const absl::Status status =
      engine->Extract(request, [](BundleResult) { return absl::OkStatus(); }).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << status;
}

// The sink of one job waits for another job to end, but holds neither device nor memory.
TEST_F(CudaDevices, AreNotHeldUpByASlowSink) {
  const auto engine = Load({.device_memory_bytes = kSceneMemory, .jobs_per_device = 1});
  ASSERT_NE(engine, nullptr);
  const Scene scene = MakeScene({.fibres = 2, .rows = 60});
  const ExtractRequest request = Request(engine.get(), scene);
  ASSERT_NE(request.prepared, nullptr);
  const auto times = engine->Extract(request, [&](BundleResult) {
    absl::Status inner;
    std::thread other(
        [&] { inner = engine->Extract(request, [](BundleResult) { return absl::OkStatus(); }).status(); });
    other.join();
    return inner;
  });
  EXPECT_TRUE(times.ok()) << times.status();
}

TEST_F(CudaDevices, AreRefusedWhereTheyAreNotThere) {
  ExpectRefused({.devices = {0, 200}}, absl::StatusCode::kFailedPrecondition, "200");
}

TEST_F(CudaDevices, AreRefusedMoreMemoryThanTheyHave) {
  ExpectRefused({.device_memory_bytes = int64_t{1} << 50}, absl::StatusCode::kResourceExhausted,
                std::to_string(int64_t{1} << 50));
}

TEST_F(CudaDevices, AreRefusedWithoutJobs) {
  ExpectRefused({.jobs_per_device = 0}, absl::StatusCode::kInvalidArgument, "jobs per device: 0");
}

}  // namespace
}  // namespace spexd::testing
