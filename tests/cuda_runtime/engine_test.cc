// The CUDA engine around its stages, on a fake runtime: jobs, slots, devices.
#include <atomic>
#include <memory>
#include <stop_token>
#include <thread>
#include <vector>

#include "tests/cuda_runtime/engine_fixture.h"
#include "tests/support/matchers.h"

namespace spexd::cuda {
namespace {

using testing::FakeCuda;
using testing::FakeFlux;
using testing::FakePipeline;

// ---- jobs

TEST_F(CudaEngineTest, DeliversTheFibresAskedForInOrder) {
  const auto engine = Make(OneDevice());
  ExtractRequest request = Request(Prepare(engine.get()));
  request.fibres = {2, 5};
  std::vector<FibreRange> fibres;
  const auto times = engine->Extract(request, [&](BundleResult bundle) {
    EXPECT_EQ(bundle.bundle, static_cast<int>(fibres.size()));
    fibres.push_back(bundle.fibres);
    EXPECT_EQ(bundle.flux.shape(), (Array<double, 2>::Shape{bundle.fibres.count, kGrid.count}));
    for (int i = 0; i < bundle.fibres.count; ++i)
      EXPECT_EQ(bundle.flux(i, 7), FakeFlux(bundle.fibres.first + i, 7, 0.5f));
    return absl::OkStatus();
  });
  ASSERT_TRUE(times.ok()) << times.status();
  EXPECT_THAT(fibres, ElementsAre(FibreRange{2, 1}, FibreRange{3, 3}, FibreRange{6, 1}));
}

TEST_F(CudaEngineTest, DeliversFloat32WhereItIsAskedFor) {
  const auto engine = Make(OneDevice());
  ExtractRequest request = Request(Prepare(engine.get()));
  request.fibres = {4, 4};
  request.float32 = true;
  int bundles = 0;
  ASSERT_TRUE(engine
                  ->Extract(request,
                            [&](BundleResult bundle) {
                              ++bundles;
                              EXPECT_TRUE(bundle.flux.empty());
                              EXPECT_EQ(bundle.spectra.flux.shape(0), bundle.fibres.count);
                              EXPECT_EQ(bundle.spectra.flux(0, 1),
                                        static_cast<float>(FakeFlux(bundle.fibres.first, 1, 0.5f)));
                              return absl::OkStatus();
                            })
                  .ok());
  EXPECT_EQ(bundles, 2);
}

TEST_F(CudaEngineTest, TellsTheTimeOfSpotsOnce) {
  const auto engine = Make(OneDevice());
  const ExtractRequest request = Request(Prepare(engine.get()));
  const auto sink = [](BundleResult) { return absl::OkStatus(); };
  const auto first = engine->Extract(request, sink), second = engine->Extract(request, sink);
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_GT((*first)[Stage::kSpots], 0);
  EXPECT_EQ((*second)[Stage::kSpots], 0);
  for (Stage stage : kAllStages) {
    if (stage == Stage::kSpots) continue;
    EXPECT_GT((*second)[stage], 0) << StageName(stage);
  }
}

TEST_F(CudaEngineTest, TakesNoMemoryForAJobWhoseSizesItHasSeen) {
  const auto engine = Make(OneDevice());
  ASSERT_TRUE(Run(engine.get()).ok());
  const int locked = FakeCuda::Get().calls("cudaHostRegister");
  for (int k = 0; k < 20; ++k) ASSERT_TRUE(Run(engine.get()).ok());
  EXPECT_EQ(FakeCuda::Get().calls("cudaHostRegister"), locked);
  EXPECT_EQ(FakeCuda::Get().calls("cudaMalloc"), 1);
}

TEST_F(CudaEngineTest, CopiesEachJobUpOnceAndDownByBundles) {
  const auto engine = Make(OneDevice());
  const ExtractRequest request = Request(Prepare(engine.get()));
  const int before = FakeCuda::Get().calls("cudaMemcpyAsync");
  ASSERT_TRUE(Run(engine.get(), request).ok());
  EXPECT_EQ(FakeCuda::Get().calls("cudaMemcpyAsync"), before + 1 + 3);
}

TEST_F(CudaEngineTest, RefusesAPsfOfAnotherEngine) {
  const auto engine = Make(OneDevice()), other = Make(OneDevice());
  const absl::Status status = Run(engine.get(), Request(Prepare(other.get())));
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(Words(status), HasSubstr("not made by this engine"));
}

TEST_F(CudaEngineTest, ChecksRequestsWithTheWordsOfEveryEngine) {
  const auto engine = Make(OneDevice());
  ExtractRequest request = Request(Prepare(engine.get()));
  request.psferr = -1;
  EXPECT_THAT(Words(Run(engine.get(), request)), HasSubstr("psferr: -1"));
  EXPECT_THAT(Words(engine->Prepare(psf_, {9000, 0.8, 20}, 2).status()), HasSubstr("9000"));
  EXPECT_THAT(Words(engine->Prepare(psf_, kGrid, 0).status()), HasSubstr("bundle size: 0"));
}

TEST_F(CudaEngineTest, EndsWithTheSinksError) {
  const auto engine = Make(OneDevice());
  int calls = 0;
  const auto times = engine->Extract(Request(Prepare(engine.get())), [&](BundleResult) {
    ++calls;
    return absl::DataLossError("the disk is full");
  });
  EXPECT_EQ(times.status(), absl::DataLossError("the disk is full"));
  EXPECT_EQ(calls, 1);
}

TEST_F(CudaEngineTest, StopsBetweenBundlesWhenCancelled) {
  const auto engine = Make(OneDevice());
  ExtractRequest request = Request(Prepare(engine.get()));
  std::stop_source stop;
  request.stop = stop.get_token();
  int delivered = 0;
  const auto times = engine->Extract(request, [&](BundleResult) {
    ++delivered;
    stop.request_stop();
    return absl::OkStatus();
  });
  EXPECT_EQ(times.status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(delivered, 1);
}

TEST_F(CudaEngineTest, EnqueuesNothingOfAJobThatIsCancelledWhenItGetsASlot) {
  const auto engine = Make(OneDevice());
  ExtractRequest request = Request(Prepare(engine.get()));
  ASSERT_EQ(Run(engine.get(), request), absl::OkStatus());  // it has its page-locked memory from then on
  const int copies = FakeCuda::Get().calls("cudaMemcpyAsync");
  std::stop_source stop;
  request.stop = stop.get_token();
  // The job has a slot on the device by then.
  FakeCuda::Get().OnNext("cudaSetDevice", [&] {
    EXPECT_EQ(engine->Devices()[0].running_jobs, 1);
    stop.request_stop();
  });
  EXPECT_EQ(Run(engine.get(), request).code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(FakeCuda::Get().calls("cudaMemcpyAsync"), copies);
  EXPECT_EQ(engine->Devices()[0].running_jobs, 0);
  EXPECT_EQ(engine->Devices()[0].workspace_bytes, 0);
  request.stop = {};
  EXPECT_EQ(Run(engine.get(), request), absl::OkStatus());
}

TEST_F(CudaEngineTest, DeliversABundleWhileLaterOnesComeDown) {
  const auto engine = Make(OneDevice());
  const ExtractRequest request = Request(Prepare(engine.get()));
  ASSERT_EQ(Run(engine.get(), request), absl::OkStatus());
  // The second download's event is waited for after the first bundle was delivered.
  std::atomic<bool> first = false;
  constexpr int kEventsBefore = 2 + kStageCount - 1 + 1;  // upload, PSF, stages, first download
  FakeCuda::Get().OnCall("cudaEventSynchronize",
                         FakeCuda::Get().calls("cudaEventSynchronize") + kEventsBefore + 1,
                         [&] { first.wait(false); });
  int delivered = 0;
  const auto times = engine->Extract(request, [&](BundleResult) {
    ++delivered;
    first = true;
    first.notify_all();
    return absl::OkStatus();
  });
  EXPECT_TRUE(times.ok()) << times.status();
  EXPECT_EQ(delivered, 3);
}

// ---- slots

TEST_F(CudaEngineTest, DoesNotHoldTheDeviceForASlowSink) {
  const auto engine = Make(OneDevice(1));
  const auto prepared = Prepare(engine.get());
  int inner = 0;
  const auto times = engine->Extract(Request(prepared), [&](BundleResult) {
    // The only slot is free again, otherwise this would never end.
    return inner++ == 0 ? Run(engine.get(), Request(prepared)) : absl::OkStatus();
  });
  EXPECT_TRUE(times.ok());
}

TEST_F(CudaEngineTest, RunsAsManyJobsAtOnceAsThereAreSlots) {
  const auto engine = Make(OneDevice(2));
  const auto prepared = Prepare(engine.get());
  FakePipeline::Get().CloseGate(true);
  std::vector<std::thread> threads;
  for (int k = 0; k < 4; ++k)
    threads.emplace_back([&] { EXPECT_EQ(Run(engine.get(), Request(prepared)), absl::OkStatus()); });
  FakePipeline::Get().WaitUntilAtGate(2);
  EXPECT_EQ(engine->Devices()[0].running_jobs, 2);
  ExtractRequest cancelled = Request(prepared);
  std::stop_source stop;
  cancelled.stop = stop.get_token();
  std::thread stopper([&] { stop.request_stop(); });
  EXPECT_EQ(Run(engine.get(), cancelled).code(), absl::StatusCode::kCancelled);
  stopper.join();
  FakePipeline::Get().CloseGate(false);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(engine->Devices()[0].running_jobs, 0);
}

// ---- several devices

TEST_F(CudaEngineTest, SpreadsJobsOverItsDevices) {
  const auto engine = Make({.jobs_per_device = 1});
  EXPECT_EQ(engine->Info().kind, "cuda");
  EXPECT_EQ(engine->Info().device, "2 x Fake H200");
  EXPECT_EQ(engine->Info().threads, 2);
  const auto prepared = Prepare(engine.get());
  FakePipeline::Get().CloseGate(true);
  std::vector<std::thread> threads;
  for (int k = 0; k < 2; ++k)
    threads.emplace_back([&] { EXPECT_EQ(Run(engine.get(), Request(prepared)), absl::OkStatus()); });
  FakePipeline::Get().WaitUntilAtGate(2);
  for (const DeviceStatus& device : engine->Devices()) EXPECT_EQ(device.running_jobs, 1);
  FakePipeline::Get().CloseGate(false);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(FakePipeline::Get().spots_made(), 2);  // each device makes its own
}

TEST_F(CudaEngineTest, LeavesSpotsToTheJobWhereItMayGoToAnotherDevice) {
  const auto engine = Make({.jobs_per_device = 1});
  const auto busy = Prepare(engine.get());
  FakePipeline::Get().CloseGate(true);
  std::vector<std::thread> threads;
  for (int k = 0; k < 2; ++k)
    threads.emplace_back([&] { EXPECT_TRUE(Run(engine.get(), Request(busy)).ok()); });
  FakePipeline::Get().WaitUntilAtGate(2);
  const int made = FakePipeline::Get().spots_made();
  const auto prepared = Prepare(engine.get());
  EXPECT_EQ(FakePipeline::Get().spots_made(), made);
  FakePipeline::Get().CloseGate(false);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(Run(engine.get(), Request(prepared)), absl::OkStatus());
  EXPECT_EQ(FakePipeline::Get().spots_made(), made + 1);
}

TEST_F(CudaEngineTest, TouchesNoDeviceThatItWasNotGiven) {
  FakeCuda::Get().Reset({{}, {}, {}});
  {
    const auto engine = Make({.devices = {1}, .jobs_per_device = 2});
    EXPECT_EQ(engine->Devices()[0].index, 1);
    std::vector<std::thread> threads;
    for (int k = 0; k < 3; ++k) threads.emplace_back([&] { EXPECT_EQ(Run(engine.get()), absl::OkStatus()); });
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_THAT(FakeCuda::Get().used(), ElementsAre(1));
}

TEST_F(CudaEngineTest, GivesTheSameWhateverRunsBeside) {
  const int64_t room = Room(2);
  const auto engine = Make({.device_memory_bytes = room, .jobs_per_device = 3});
  std::vector<std::shared_ptr<const PreparedPsf>> psfs;
  for (int k = 0; k < 4; ++k) psfs.push_back(Prepare(engine.get()));
  std::vector<std::thread> threads;
  for (int t = 0; t < 6; ++t) {
    threads.emplace_back([&, t] {
      for (int k = 0; k < 20; ++k) {
        ExtractRequest request = Request(k % 5 == 0 ? Prepare(engine.get()) : psfs[(t + k) % 4]);
        request.fibres = {k % 4, 4};
        int fibres = 0;
        const auto times = engine->Extract(request, [&](BundleResult bundle) {
          fibres += bundle.fibres.count;
          EXPECT_EQ(bundle.flux(0, 3), FakeFlux(bundle.fibres.first, 3, 0.5f));
          return absl::OkStatus();
        });
        EXPECT_TRUE(times.ok()) << times.status();
        EXPECT_EQ(fibres, 4);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const DeviceStatus& device : engine->Devices()) EXPECT_EQ(device.workspace_bytes, 0);
}

}  // namespace
}  // namespace spexd::cuda
