// A result has the same bits whatever else runs, on any device.
#include <cstdio>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "core/frame/bundle_spectra.h"
#include "gtest/gtest.h"
#include "tests/cuda/cuda_fixture.h"
#include "tests/support/scenes/engine_runs.h"
#include "tests/support/scenes/simulated_scene.h"

namespace spexd::testing {
namespace {

// A bundle from the middle of the grid, with the simulator's hole.
constexpr WavelengthGrid kFrameGrid = {6500, 0.8, 700};

class CudaSameBits : public CudaTest {
 protected:
  void SetUp() override {
    CudaTest::SetUp();
    if (IsSkipped() || HasFatalFailure()) return;
    static const Scene scene = SimulateScene({.fibres = 50, .seed = 4});
    scene_ = scene;
  }

  Scene scene_;
  RunOptions options_ = {.grid = kFrameGrid, .bundle_size = 25, .want_model = true};
};

TEST_F(CudaSameBits, WhenAJobRunsAgain) {
  const auto engine = Load();
  ASSERT_NE(engine, nullptr);
  const Bundles first = RunJob(engine.get(), scene_, options_);
  ExpectSame(first, RunJob(engine.get(), scene_, options_));
  const auto another = Load();
  ASSERT_NE(another, nullptr);
  ExpectSame(first, RunJob(another.get(), scene_, options_));
}

TEST_F(CudaSameBits, AmongSixteenOtherJobs) {
  const auto engine = Load({.device_memory_bytes = 4 * kSceneMemory});
  ASSERT_NE(engine, nullptr);
  const Bundles wide = RunJob(engine.get(), scene_, options_);
  options_.float32 = true;
  const Bundles narrow = RunJob(engine.get(), scene_, options_);
  options_.float32 = false;
  std::vector<std::thread> threads;
  for (int k = 0; k < 16; ++k) {
    threads.emplace_back([&, k] {
      if (k % 4 == 3) {  // jobs of another kind in between
        const Scene other = MakeScene({.fibres = 3 + k, .rows = 90, .bundle_size = 7, .seed = uint64_t(k)});
        RunJob(engine.get(), other, {.grid = {6006, 0.5 + 0.02 * k, 60}, .bundle_size = 7});
        return;
      }
      RunOptions options = options_;
      options.float32 = k % 2 == 1;
      ExpectSame(RunJob(engine.get(), scene_, options), options.float32 ? narrow : wide);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(CudaSameBits, WhateverFibresAreAskedFor) {
  const auto engine = Load();
  ASSERT_NE(engine, nullptr);
  const Bundles all = RunJob(engine.get(), scene_, options_);
  options_.fibres = {25, 25};
  const Bundles one = RunJob(engine.get(), scene_, options_);
  ASSERT_EQ(one.size(), 1u);
  ASSERT_EQ(all.count(1), 1u);
  ExpectSame(one.at(1), all.at(1));
}

TEST_F(CudaSameBits, RoundedToFloat32OnTheDeviceAsOnTheHost) {
  const auto engine = Load();
  ASSERT_NE(engine, nullptr);
  const Bundles wide = RunJob(engine.get(), scene_, options_);
  options_.float32 = true;
  const Bundles narrow = RunJob(engine.get(), scene_, options_);
  ASSERT_EQ(wide.size(), narrow.size());
  for (const auto& [number, bundle] : narrow) {
    EXPECT_TRUE(bundle.spectra == ToBundleSpectra(wide.at(number)).spectra) << number;
    EXPECT_TRUE(bundle.model.pixels == wide.at(number).model.pixels) << number;
  }
}

TEST_F(CudaSameBits, OnEveryDevice) {
  std::vector<DeviceStatus> devices;
  {
    const auto engine = LoadOnAll({.device_memory_bytes = kSceneMemory});
    ASSERT_NE(engine, nullptr);
    devices = engine->Devices();
  }
  ASSERT_FALSE(devices.empty());
  Bundles first;
  for (const DeviceStatus& device : devices) {
    SCOPED_TRACE(device.index);
    const auto engine = Load({.devices = {device.index}, .device_memory_bytes = kSceneMemory});
    ASSERT_NE(engine, nullptr);
    ASSERT_EQ(engine->Devices().size(), 1u);
    EXPECT_EQ(engine->Devices()[0].index, device.index);
    Bundles bundles = RunJob(engine.get(), scene_, options_);
    if (first.empty()) {
      first = std::move(bundles);
    } else if (device.name == devices[0].name) {
      ExpectSame(bundles, first);
    }
  }
  std::printf("  %d devices\n", static_cast<int>(devices.size()));
}

// Runs jobs of one engine on all devices.
TEST_F(CudaSameBits, WhicheverDeviceTakesTheJob) {
  const auto engine = LoadOnAll({.device_memory_bytes = 2 * kSceneMemory});
  ASSERT_NE(engine, nullptr);
  const Bundles expected = RunJob(engine.get(), scene_, options_);
  std::vector<std::thread> threads;
  for (int k = 0; k < 16; ++k)
    threads.emplace_back([&] { ExpectSame(RunJob(engine.get(), scene_, options_), expected); });
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace spexd::testing
