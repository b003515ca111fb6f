// The CUDA engine around its stages, on a fake runtime: residency, admission, delivery, failures.
#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "cuda/runtime/block_allocator.h"
#include "cuda/runtime/cuda_engine.h"
#include "cuda/runtime/cuda_status.h"
#include "cuda/runtime/pipeline.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cuda_runtime/fake_cuda.h"
#include "tests/cuda_runtime/fake_pipeline.h"
#include "tests/support/scene.h"

namespace spexd::cuda {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using testing::FakeCuda;
using testing::FakeFlux;
using testing::FakePipeline;
using ::testing::HasSubstr;

constexpr WavelengthGrid kGrid = {6006, 0.8, 20};
constexpr int kBundle = 3;

std::string Words(const absl::Status& status) { return std::string(status.message()); }

class CudaEngineTest : public ::testing::Test {
 protected:
  CudaEngineTest() {
    psf_ = testing::MakeScenePsf({.fibres = 8, .rows = 60});
    auto image = std::make_shared<Image>();
    image->pixels.Assign({psf_->rows, psf_->columns}, 0.5f);
    image->ivar.Assign({psf_->rows, psf_->columns}, 1);
    image_ = image;
    FakePipeline::Get().Reset();
    FakeCuda::Get().Reset({{}, {}});
  }

  std::unique_ptr<Engine> Make(CudaEngineOptions options = {}) {
    if (options.device_memory_bytes == 0) options.device_memory_bytes = 32 << 20;
    auto engine = MakeCudaEngine(options);
    EXPECT_TRUE(engine.ok()) << engine.status();
    return *std::move(engine);
  }
  static CudaEngineOptions OneDevice(int jobs = 4, int64_t bytes = 0) { return {{0}, bytes, jobs, 0}; }

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
  // Memory of a device that holds so many PSFs and one job.
  int64_t Room(int psfs) {
    const auto probe = Make(OneDevice());
    const auto prepared = Prepare(probe.get());
    const ExtractPlan plan = MakeExtractPlan(
        ShapeOf(*psf_, kGrid, kBundle), std::vector<BundleFacts>(3, BundleFacts{6, 1, 0, psf_->columns}), {});
    JobShape all;
    all.bundles = 3;
    return psfs * Aligned(prepared->bytes()) + Aligned(WorkspaceBytes(plan, all));
  }

  std::shared_ptr<const Psf> psf_;
  std::shared_ptr<const Image> image_;
};

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
  const int locked = FakeCuda::Get().calls("cudaHostAlloc");
  for (int k = 0; k < 20; ++k) ASSERT_TRUE(Run(engine.get()).ok());
  EXPECT_EQ(FakeCuda::Get().calls("cudaHostAlloc"), locked);
  EXPECT_EQ(FakeCuda::Get().calls("cudaMalloc"), 1);
}

TEST_F(CudaEngineTest, CopiesEachJobUpAndDownOnce) {
  const auto engine = Make(OneDevice());
  const ExtractRequest request = Request(Prepare(engine.get()));
  const int before = FakeCuda::Get().calls("cudaMemcpyAsync");
  ASSERT_TRUE(Run(engine.get(), request).ok());
  EXPECT_EQ(FakeCuda::Get().calls("cudaMemcpyAsync"), before + 2);
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
  std::atomic<int> delivered = 0;
  request.cancelled = [&] { return delivered > 0; };
  const auto times = engine->Extract(request, [&](BundleResult) {
    ++delivered;
    return absl::OkStatus();
  });
  EXPECT_EQ(times.status().code(), absl::StatusCode::kCancelled);
  EXPECT_EQ(delivered, 1);
}

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
  ASSERT_NE(Prepare(engine.get()), nullptr);
  const int asked = FakeCuda::Get().calls("cudaEventQuery");
  FakeCuda::Get().FailNext("cudaEventQuery", cudaErrorNotReady);
  EXPECT_EQ(Run(engine.get()), absl::OkStatus());
  EXPECT_EQ(FakeCuda::Get().calls("cudaEventQuery"), asked + 2);
  // A job has waited for this one: there is nothing to ask.
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
  EXPECT_EQ(FakeCuda::Get().calls("cudaMalloc"), 2);  // with the probe's
}

TEST_F(CudaEngineTest, RefusesWhatItCouldNeverHold) {
  const int64_t room = Room(1);
  const auto engine = Make(OneDevice(1, room - 256));
  const auto prepared = engine->Prepare(psf_, kGrid, kBundle);
  ASSERT_TRUE(prepared.ok());
  const absl::Status status = Run(engine.get(), Request(*prepared));
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Words(status), AllOf(HasSubstr(std::to_string(room)), HasSubstr(std::to_string(room - 256))));
  ExtractRequest smaller = Request(*prepared);
  smaller.fibres = {0, 3};
  EXPECT_TRUE(Run(engine.get(), smaller).ok());
}

TEST_F(CudaEngineTest, RefusesAPsfThatLeavesNoRoomToWork) {
  const int64_t psf = Room(1) - Room(0);
  const auto none = Make(OneDevice(1, psf - 256));
  EXPECT_EQ(none->Prepare(psf_, kGrid, kBundle).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(FakePipeline::Get().located(), 2);  // the probes'
  const auto tight = Make(OneDevice(1, psf + 256));
  EXPECT_EQ(tight->Prepare(psf_, kGrid, kBundle).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(tight->Devices()[0].resident_bytes, 0);
}

TEST_F(CudaEngineTest, DoesNotHoldTheDeviceForASlowSink) {
  const auto engine = Make(OneDevice(1));
  const auto prepared = Prepare(engine.get());
  int inner = 0;
  const auto times = engine->Extract(Request(prepared), [&](BundleResult) {
    // The only slot is free again, or this would never end.
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
  std::atomic<int> asked = 0;
  cancelled.cancelled = [&] { return ++asked > 3; };
  EXPECT_EQ(Run(engine.get(), cancelled).code(), absl::StatusCode::kCancelled);
  FakePipeline::Get().CloseGate(false);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(engine->Devices()[0].running_jobs, 0);
}

// ---- several devices

TEST_F(CudaEngineTest, SpreadsJobsOverItsDevices) {
  const auto engine = Make({{}, 0, 1, 0});
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
  EXPECT_EQ(FakePipeline::Get().spots_made(), 2);  // each device its own
}

TEST_F(CudaEngineTest, LeavesSpotsToTheJobWhereItMayGoToAnotherDevice) {
  const auto engine = Make({{}, 0, 1, 0});
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
    const auto engine = Make({{1}, 0, 2, 0});
    EXPECT_EQ(engine->Devices()[0].index, 1);
    std::vector<std::thread> threads;
    for (int k = 0; k < 3; ++k) threads.emplace_back([&] { EXPECT_EQ(Run(engine.get()), absl::OkStatus()); });
    for (std::thread& thread : threads) thread.join();
  }
  EXPECT_THAT(FakeCuda::Get().used(), ElementsAre(1));
}

TEST_F(CudaEngineTest, GivesTheSameWhateverRunsBeside) {
  const int64_t room = Room(2);
  const auto engine = Make({{}, room, 3, 0});
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

// ---- failures

TEST_F(CudaEngineTest, NamesDeviceJobAndStageOfAnErrorAndGoesOn) {
  const auto engine = Make(OneDevice());
  const auto prepared = Prepare(engine.get());
  FakeCuda::Get().FailNext("cudaMemcpyAsync", cudaErrorInvalidValue);
  const absl::Status status = Run(engine.get(), Request(prepared));
  EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
  EXPECT_EQ(Words(status), "cuda device 0 (Fake H200): job 1, upload: a fake error");
  EXPECT_TRUE(engine->Health().ok());
  EXPECT_EQ(engine->Devices()[0].workspace_bytes, 0);
  EXPECT_EQ(Run(engine.get(), Request(prepared)), absl::OkStatus());
}

TEST_F(CudaEngineTest, MakesAPsfAgainWhoseSpotsFailed) {
  const auto engine = Make(OneDevice());
  FakeCuda::Get().FailNext("EnqueueSpots", cudaErrorInvalidValue);
  const absl::Status status = engine->Prepare(psf_, kGrid, kBundle).status();
  EXPECT_THAT(Words(status), HasSubstr("stage spots"));
  EXPECT_EQ(engine->Devices()[0].resident_bytes, 0);
  EXPECT_EQ(Run(engine.get()), absl::OkStatus());
}

TEST_F(CudaEngineTest, LosesADeviceForGoodAndGoesOnWithTheOthers) {
  const auto engine = Make();
  const auto prepared = Prepare(engine.get());
  FakePipeline::Get().LoseDeviceIn(Stage::kSolve, 0);
  const absl::Status status = Run(engine.get(), Request(prepared));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(Words(status),
              AllOf(HasSubstr("cuda device 0 (Fake H200): job 1, stage solve: an illegal memory access"),
                    HasSubstr("may be tried again")));
  EXPECT_TRUE(engine->Health().ok());
  EXPECT_THAT(Words(engine->Devices()[0].health), HasSubstr("illegal memory access"));
  EXPECT_TRUE(engine->Devices()[1].health.ok());
  for (int k = 0; k < 8; ++k) EXPECT_EQ(Run(engine.get(), Request(prepared)), absl::OkStatus());
  EXPECT_EQ(Run(engine.get()), absl::OkStatus());
  EXPECT_EQ(engine->Devices()[0].running_jobs, 0);
}

TEST_F(CudaEngineTest, IsUnwellOnceItsLastDeviceIsLost) {
  const auto engine = Make(OneDevice());
  const auto prepared = Prepare(engine.get());
  FakePipeline::Get().LoseDeviceIn(Stage::kModel, 0);
  EXPECT_EQ(Run(engine.get(), Request(prepared)).code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(Words(engine->Health()), HasSubstr("stage model"));
  EXPECT_EQ(Run(engine.get(), Request(prepared)).code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(engine->Prepare(psf_, kGrid, kBundle).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(CudaEngineTest, FailsAllJobsOfALostDevice) {
  const auto engine = Make(OneDevice(2));
  const auto prepared = Prepare(engine.get());
  FakePipeline::Get().CloseGate(true);
  FakePipeline::Get().LoseDeviceIn(Stage::kNormal, 0);
  std::vector<std::thread> threads;
  for (int k = 0; k < 4; ++k) {
    threads.emplace_back(
        [&] { EXPECT_EQ(Run(engine.get(), Request(prepared)).code(), absl::StatusCode::kUnavailable); });
  }
  FakePipeline::Get().WaitUntilAtGate(2);
  FakePipeline::Get().CloseGate(false);
  for (std::thread& thread : threads) thread.join();
}

TEST_F(CudaEngineTest, LetsAJobBeTriedAgainThatFindsTheDeviceLostBeforeTheEngineDoes) {
  const auto engine = Make(OneDevice());
  const auto prepared = Prepare(engine.get());
  FakeCuda::Get().Lose(0, cudaErrorIllegalAddress);
  // Its first need is page-locked memory, which a lost device does not give.
  const absl::Status status = Run(engine.get(), Request(prepared));
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(Words(status), AllOf(HasSubstr("page-locked host memory"), HasSubstr("may be tried again")));
}

TEST_F(CudaEngineTest, FindsALostContextBehindAnErrorThatDoesNotSaySo) {
  const auto engine = Make(OneDevice());
  const auto prepared = Prepare(engine.get());
  FakeCuda::Get().FailNext("cudaMemcpyAsync", cudaErrorInvalidValue);
  FakeCuda::Get().FailNext("cudaStreamQuery", cudaErrorLaunchFailure);
  EXPECT_EQ(Run(engine.get(), Request(prepared)).code(), absl::StatusCode::kUnavailable);
  EXPECT_FALSE(engine->Health().ok());
}

// ---- starting

TEST_F(CudaEngineTest, SaysWhatIsMissingToStart) {
  FakeCuda::Get().FailDeviceCount(cudaErrorInsufficientDriver, 0);
  absl::Status status = MakeCudaEngine({}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Words(status), HasSubstr("no NVIDIA driver is installed"));
  FakeCuda::Get().FailDeviceCount(cudaErrorInsufficientDriver, 11080);
  EXPECT_THAT(Words(MakeCudaEngine({}).status()), HasSubstr("the NVIDIA driver is for CUDA 11.8"));
  FakeCuda::Get().FailDeviceCount(cudaErrorNoDevice, 13000);
  EXPECT_THAT(Words(MakeCudaEngine({}).status()), HasSubstr("CUDA_VISIBLE_DEVICES"));
  FakeCuda::Get().Reset({});
  EXPECT_THAT(Words(MakeCudaEngine({}).status()), HasSubstr("the driver sees no GPU"));
}

TEST_F(CudaEngineTest, RefusesMoreMemoryThanIsFree) {
  const absl::Status status = MakeCudaEngine({{0}, int64_t{1} << 40, 1, 0}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Words(status), AllOf(HasSubstr("1099511627776"), HasSubstr("67108864")));
}

TEST_F(CudaEngineTest, TakesNineTenthsOfWhatIsFree) {
  const auto engine = MakeCudaEngine({{0}, 0, 1, 0});
  ASSERT_TRUE(engine.ok());
  EXPECT_NEAR(static_cast<double>((*engine)->Devices()[0].memory_bytes), 0.9 * (64 << 20), 1024);
}

TEST_F(CudaEngineTest, RefusesOptionsOutOfRange) {
  EXPECT_THAT(Words(MakeCudaEngine({{}, 0, 0, 0}).status()), HasSubstr("jobs per device: 0"));
  EXPECT_THAT(Words(MakeCudaEngine({{}, -1, 1, 0}).status()), HasSubstr("device memory: -1"));
  EXPECT_THAT(Words(MakeCudaEngine({{}, 0, 1, -4}).status()), HasSubstr("chunk: -4"));
  EXPECT_THAT(Words(MakeCudaEngine({{5}, 0, 1, 0}).status()), HasSubstr("device 5"));
}

// ---- errors

TEST(CudaStatus, TellsDeviceAndWhatWasDone) {
  const absl::Status status = ToStatus(cudaErrorIllegalAddress, {3, "H200"}, "stage solve");
  EXPECT_EQ(status, absl::UnavailableError(
                        "cuda device 3 (H200): stage solve: an illegal memory access was encountered"));
  EXPECT_EQ(ToStatus(cudaErrorMemoryAllocation, {0, "H200"}, "x").code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(ToStatus(cudaErrorInvalidValue, {0, "H200"}, "x").code(), absl::StatusCode::kInternal);
  EXPECT_TRUE(ToStatus(cudaSuccess, {0, "H200"}, "x").ok());
}

TEST(CudaStatus, KnowsWhichErrorsLoseTheContext) {
  for (cudaError_t error : {cudaErrorIllegalAddress, cudaErrorLaunchFailure, cudaErrorAssert,
                            cudaErrorECCUncorrectable, cudaErrorMisalignedAddress, cudaErrorLaunchTimeout}) {
    EXPECT_TRUE(IsSticky(error)) << error;
  }
  for (cudaError_t error : {cudaSuccess, cudaErrorNotReady, cudaErrorInvalidValue, cudaErrorMemoryAllocation,
                            cudaErrorInvalidConfiguration, cudaErrorLaunchOutOfResources}) {
    EXPECT_FALSE(IsSticky(error)) << error;
  }
}

}  // namespace
}  // namespace spexd::cuda
