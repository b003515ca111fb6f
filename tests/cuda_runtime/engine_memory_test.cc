// The CUDA engine's use of device memory, on a fake runtime: PSFs that come and go, jobs that exceed the
// memory.
#include <future>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "tests/cuda_runtime/engine_fixture.h"
#include "tests/support/matchers.h"

namespace spexd::cuda {
namespace {

using testing::FakeCuda;
using testing::FakeFlux;
using testing::FakePipeline;

// ---- memory

TEST_F(CudaEngineTest, KeepsAPsfOnTheDevice) {
  const auto engine = Make(OneDevice());
  const ExtractRequest request = Request(Prepare(engine.get()));
  for (int k = 0; k < 3; ++k) ASSERT_TRUE(Run(engine.get(), request).ok());
  EXPECT_EQ(FakePipeline::Get().spots_made(), 1);
  EXPECT_EQ(engine->Devices()[0].resident_bytes, Aligned(request.prepared->bytes()));
  EXPECT_EQ(engine->Devices()[0].workspace_bytes, 0);
}

TEST_F(CudaEngineTest, FreesAPsfThatNobodyHolds) {
  const auto engine = Make(OneDevice());
  ASSERT_TRUE(Run(engine.get()).ok());
  EXPECT_EQ(engine->Devices()[0].resident_bytes, 0);
}

TEST_F(CudaEngineTest, AsksNoDeviceForItsStatus) {
  const auto engine = Make();
  Prepare(engine.get());
  const int calls = FakeCuda::Get().calls();
  EXPECT_TRUE(engine->Health().ok());
  EXPECT_EQ(engine->Info().threads, 8);
  EXPECT_EQ(engine->Devices().size(), 2u);
  EXPECT_EQ(FakeCuda::Get().calls(), calls);
}

TEST_F(CudaEngineTest, TakesTheMemoryOfAPsfOnceTheDeviceNoLongerWritesToIt) {
  const int64_t room = Room(1);
  const auto engine = Make(OneDevice(1, room));
  FakeCuda::Get().HoldHostFunctions(true);  // the device is still writing the PSF
  ASSERT_NE(Prepare(engine.get()), nullptr);
  const int asked = FakeCuda::Get().calls("cudaEventQuery");
  FakeCuda::Get().FailNext("cudaEventQuery", cudaErrorNotReady);
  std::thread device([&] {
    while (FakeCuda::Get().calls("cudaEventQuery") == asked) std::this_thread::yield();
    FakeCuda::Get().HoldHostFunctions(false);
  });
  EXPECT_EQ(Run(engine.get()), absl::OkStatus());
  device.join();
  EXPECT_EQ(FakeCuda::Get().calls("cudaEventQuery"), asked + 2);
  // A job has waited for the PSF, so there is nothing to ask.
  EXPECT_EQ(Run(engine.get()), absl::OkStatus());
  EXPECT_EQ(FakeCuda::Get().calls("cudaEventQuery"), asked + 2);
}

TEST_F(CudaEngineTest, RunsMorePsfsThanItHoldsInFlatMemory) {
  const int64_t room = Room(3);
  const auto engine = Make(OneDevice(1, room));
  std::vector<std::shared_ptr<const PreparedPsf>> psfs;
  for (int k = 0; k < 10; ++k) psfs.push_back(Prepare(engine.get()));
  for (int k = 0; k < 500; ++k) {
    ASSERT_TRUE(Run(engine.get(), Request(psfs[static_cast<size_t>(k * 7 % 10)])).ok());
    const DeviceStatus device = engine->Devices()[0];
    EXPECT_LE(device.resident_bytes, 3 * Aligned(psfs[0]->bytes()));
    EXPECT_EQ(device.workspace_bytes, 0);
  }
  EXPECT_EQ(FakeCuda::Get().calls("cudaMalloc"), 2);  // including the probe's
}

TEST_F(CudaEngineTest, RefusesABundleThatItCouldNeverHoldNamingTheBytes) {
  const int64_t room = Room(1, 1);
  const auto engine = Make(OneDevice(1, room));
  const auto prepared = engine->Prepare(psf_, kGrid, kBundle);
  ASSERT_TRUE(prepared.ok());
  ExtractRequest request = Request(*prepared);
  request.want_model = true;
  const absl::Status status = Run(engine.get(), request);
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Words(status), AllOf(HasSubstr("bundle 0 alone: "), HasSubstr(std::to_string(room + 4096)),
                                   HasSubstr(std::to_string(room))));
  request.want_model = false;
  EXPECT_EQ(Run(engine.get(), request), absl::OkStatus());
}

TEST_F(CudaEngineTest, RefusesAPsfThatLeavesNoRoomToWork) {
  const int64_t psf = Room(1) - Room(0);
  const auto none = Make(OneDevice(1, psf - 256));
  EXPECT_EQ(none->Prepare(psf_, kGrid, kBundle).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(FakePipeline::Get().located(), 2);  // those of the probes
  const auto tight = Make(OneDevice(1, psf + 256));
  EXPECT_EQ(tight->Prepare(psf_, kGrid, kBundle).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(tight->Devices()[0].resident_bytes, 0);
}

// ---- memory on demand

TEST_F(CudaEngineTest, TakesOnDemandWhatItsJobsNeedAndKeepsIt) {
  const int64_t room = Room(1);
  const auto engine = MakeCudaEngine({.devices = {0}, .jobs_per_device = 1, .on_demand = true});
  ASSERT_TRUE(engine.ok()) << engine.status();
  EXPECT_EQ(FakeCuda::Get().taken_bytes(0), 0);
  const auto prepared = Prepare(engine->get());
  for (int k = 0; k < 3; ++k) ASSERT_EQ(Run(engine->get(), Request(prepared)), absl::OkStatus());
  EXPECT_EQ(FakeCuda::Get().taken_bytes(0), room);
  EXPECT_EQ(FakeCuda::Get().calls("cudaMalloc"), 1 + 2);  // one for the probe; two for a PSF and a workspace
}

TEST_F(CudaEngineTest, LetsSeveralEnginesShareADeviceOnDemand) {
  const CudaEngineOptions options = {.devices = {0}, .jobs_per_device = 1, .on_demand = true};
  std::vector<std::unique_ptr<Engine>> engines;
  for (int k = 0; k < 4; ++k) engines.push_back(*MakeCudaEngine(options));
  std::vector<std::thread> threads;
  for (const auto& engine : engines)
    threads.emplace_back([&] { EXPECT_EQ(Run(engine.get()), absl::OkStatus()); });
  for (std::thread& thread : threads) thread.join();
  engines.clear();
  EXPECT_EQ(FakeCuda::Get().taken_bytes(0), 0);
}

TEST_F(CudaEngineTest, NamesTheBytesThatOthersLeaveTooFewOf) {
  const auto engine = MakeCudaEngine({.devices = {0}, .jobs_per_device = 1, .on_demand = true});
  const auto prepared = Prepare(engine->get());
  const auto rest = MakeCudaEngine({.devices = {0}, .device_memory_bytes = int64_t{62} << 20, .jobs_per_device = 1});  // another process
  ASSERT_TRUE(rest.ok()) << rest.status();
  auto large = std::make_shared<Psf>(*testing::MakeScenePsf({.fibres = 8, .rows = 60}));
  // Little memory is left: one PSF more than fits.
  std::vector<std::shared_ptr<const PreparedPsf>> held;
  absl::Status status;
  for (int k = 0; k < 4 && status.ok(); ++k) {
    auto more = (*engine)->Prepare(large, kGrid, kBundle);
    status = more.status();
    if (more.ok()) held.push_back(*more);
  }
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Words(status), AllOf(HasSubstr("cuda device 0 (Fake H200)"),
                                   HasSubstr("bytes of memory needed"), HasSubstr("are free")));
  EXPECT_TRUE((*engine)->Health().ok());
}

TEST_F(CudaEngineTest, EstimatesTheMemoryThatAJobThenTakes) {
  const auto engine = Make(OneDevice());
  JobOutline outline;
  outline.psf = psf_.get();
  outline.grid = kGrid;
  outline.bundle_size = kBundle;
  outline.fibres = {0, psf_->fibres};
  const int calls = FakeCuda::Get().calls();
  const JobEstimate estimate = engine->Estimate(outline);
  EXPECT_EQ(FakeCuda::Get().calls(), calls);
  EXPECT_EQ(estimate.device_bytes, Room(1));
  EXPECT_EQ(estimate.min_bytes, Room(1, 1));
  EXPECT_GT(estimate.host_bytes, 0);
  EXPECT_GT(estimate.seconds, 0);
}

// ---- jobs larger than the device

TEST_F(CudaEngineTest, RunsAJobInPartsThatTheDeviceHolds) {
  for (const int bundles : {3, 2, 1}) {
    const int parts = bundles == 3 ? 1 : bundles == 2 ? 2 : 3;
    const int64_t room = Room(1, bundles);
    const auto engine = Make(OneDevice(1, room));
    ExtractRequest request = Request(Prepare(engine.get()));
    request.fibres = {1, 6};
    const int copies = FakeCuda::Get().calls("cudaMemcpyAsync"), made = FakePipeline::Get().spots_made();
    std::vector<FibreRange> fibres;
    const auto times = engine->Extract(request, [&](BundleResult bundle) {
      EXPECT_EQ(bundle.bundle, static_cast<int>(fibres.size()));
      fibres.push_back(bundle.fibres);
      for (int i = 0; i < bundle.fibres.count; ++i)
        EXPECT_EQ(bundle.flux(i, 7), FakeFlux(bundle.fibres.first + i, 7, 0.5f));
      return absl::OkStatus();
    });
    ASSERT_TRUE(times.ok()) << times.status();
    EXPECT_THAT(fibres, ElementsAre(FibreRange{1, 2}, FibreRange{3, 3}, FibreRange{6, 1}));
    EXPECT_EQ(FakeCuda::Get().calls("cudaMemcpyAsync"), copies + parts + 3);
    EXPECT_EQ(FakePipeline::Get().spots_made(), made);
    // The fake clock counts events: a stage takes one tick in each part.
    EXPECT_DOUBLE_EQ((*times)[Stage::kSolve], parts * 1e-3);
    EXPECT_EQ(engine->Devices()[0].workspace_bytes, 0);
  }
}

TEST_F(CudaEngineTest, CountsNegativeIvarOfACodedImageOnceWhateverTheNumberOfParts) {
  auto coded = std::make_shared<CodedImage>();
  coded->rows = psf_->rows;
  coded->columns = psf_->columns;
  coded->planes.resize(2);
  coded->coded.resize(2 * static_cast<size_t>(coded->rows));
  for (const int bundles : {3, 1}) {
    const int64_t room = Room(1, bundles);
    const auto engine = Make(OneDevice(1, room));
    ExtractRequest request = Request(Prepare(engine.get()));
    request.coded = coded;
    int64_t negative = -1;
    request.negative_ivar = &negative;
    ASSERT_TRUE(Run(engine.get(), request).ok());
    EXPECT_EQ(negative, testing::kFakeNegativeIvar);
  }
}

TEST_F(CudaEngineTest, LetsOtherJobsRunBetweenParts) {
  const int64_t room = Room(1, 1);
  const auto engine = Make(OneDevice(1, room));
  const auto prepared = Prepare(engine.get());
  int delivered = 0;
  const auto times = engine->Extract(Request(prepared), [&](BundleResult) {
    ++delivered;
    return Run(engine.get(), Request(prepared));
  });
  EXPECT_TRUE(times.ok()) << times.status();
  EXPECT_EQ(delivered, 3);
}

TEST_F(CudaEngineTest, RunsNoFurtherPartsOfAJobThatEnded) {
  const int64_t room = Room(1, 1);
  const auto engine = Make(OneDevice(1, room));
  ExtractRequest request = Request(Prepare(engine.get()));
  const int copies = FakeCuda::Get().calls("cudaMemcpyAsync");
  auto times = engine->Extract(request, [](BundleResult) { return absl::DataLossError("the disk is full"); });
  EXPECT_EQ(times.status(), absl::DataLossError("the disk is full"));
  EXPECT_EQ(FakeCuda::Get().calls("cudaMemcpyAsync"), copies + 2);
  std::stop_source stop;
  request.stop = stop.get_token();
  int delivered = 0;
  times = engine->Extract(request, [&](BundleResult) {
    ++delivered;
    stop.request_stop();
    return absl::OkStatus();
  });
  EXPECT_EQ(times.status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(delivered, 1);
  EXPECT_EQ(FakeCuda::Get().calls("cudaMemcpyAsync"), copies + 4);
}

TEST_F(CudaEngineTest, RunsThePartsThatAreLeftOnAnotherDeviceWhereTheirsIsLost) {
  const int64_t room = Room(1, 1);
  CudaEngineOptions two = OneDevice(1, room);
  two.devices = {0, 1};
  const auto engine = Make(two);
  int delivered = 0;
  const auto times = engine->Extract(Request(Prepare(engine.get())), [&](BundleResult bundle) {
    EXPECT_EQ(bundle.bundle, delivered);
    // The next part may run on either device.
    if (++delivered == 1) FakePipeline::Get().LoseDeviceIn(Stage::kSolve, 0);
    return absl::OkStatus();
  });
  ASSERT_TRUE(times.ok()) << times.status();
  EXPECT_EQ(delivered, 3);
  EXPECT_FALSE(engine->Devices()[0].health.ok());
}

TEST_F(CudaEngineTest, RunsAPartAgainOnAnotherDeviceAndDeliversWhatIsLeftOfIt) {
  constexpr char kWait[] = "cudaEventSynchronize";
  const auto engine = Make({.devices = {0, 1}, .jobs_per_device = 1});
  const auto prepared = Prepare(engine.get());
  ASSERT_TRUE(Run(engine.get(), Request(prepared)).ok());
  const int before = FakeCuda::Get().calls(kWait);
  ASSERT_TRUE(Run(engine.get(), Request(prepared)).ok());
  const int waits = FakeCuda::Get().calls(kWait) - before;

  std::vector<int> delivered;
  std::promise<void> two_are_there;
  FakeCuda::Get().OnCall(kWait, FakeCuda::Get().calls(kWait) + waits, [&] {  // waits for the last download
    two_are_there.get_future().wait();
    FakeCuda::Get().Lose(FakeCuda::CurrentDevice(), cudaErrorIllegalAddress);
  });
  const auto times = engine->Extract(Request(prepared), [&](BundleResult bundle) {
    delivered.push_back(bundle.bundle);
    if (delivered.size() == 2) two_are_there.set_value();
    return absl::OkStatus();
  });
  ASSERT_TRUE(times.ok()) << times.status();
  EXPECT_THAT(delivered, ElementsAre(0, 1, 2));
}

TEST_F(CudaEngineTest, NamesThePartThatFailed) {
  const int64_t room = Room(1, 1);
  const auto engine = Make(OneDevice(1, room));
  const auto times = engine->Extract(Request(Prepare(engine.get())), [&](BundleResult bundle) {
    if (bundle.bundle == 1) FakePipeline::Get().LoseDeviceIn(Stage::kSolve, 0);
    return absl::OkStatus();
  });
  EXPECT_EQ(times.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(Words(times.status()), HasSubstr("job 1, part 3 of 3, stage solve"));
}

}  // namespace
}  // namespace spexd::cuda
