// The CUDA engine on a fake runtime that fails: jobs, devices, start.
#include <string>
#include <thread>
#include <vector>

#include "cuda/kernels/common/side_streams.h"
#include "cuda/memory/cuda_status.h"
#include "tests/cuda_runtime/engine_fixture.h"
#include "tests/support/matchers.h"

namespace spexd::cuda {
namespace {

using testing::FakeCuda;
using testing::FakePipeline;

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

TEST_F(CudaEngineTest, WaitsForTheDeviceBeforeItFreesAJobThatRanOutOfHostMemory) {
  const auto engine = Make(OneDevice());
  const auto prepared = Prepare(engine.get());
  const int waits = FakeCuda::Get().calls("cudaStreamSynchronize");
  FakePipeline::Get().ThrowNext();
  EXPECT_EQ(Run(engine.get(), Request(prepared)), absl::ResourceExhaustedError("out of memory"));
  // Waits for its stages, for what runs beside them, for its downloads, and for its PSF.
  EXPECT_EQ(FakeCuda::Get().calls("cudaStreamSynchronize"), waits + 3 + SideStreams::kCount);
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
  // Its first need is page-locked memory, which a lost device does not provide.
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
  const absl::Status status = MakeCudaEngine({.devices = {0}, .device_memory_bytes = int64_t{1} << 40, .jobs_per_device = 1}).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(Words(status), AllOf(HasSubstr("1099511627776"), HasSubstr("67108864")));
}

TEST_F(CudaEngineTest, TakesNineTenthsOfWhatIsFree) {
  const auto engine = MakeCudaEngine({.devices = {0}, .jobs_per_device = 1});
  ASSERT_TRUE(engine.ok());
  EXPECT_NEAR(static_cast<double>((*engine)->Devices()[0].memory_bytes), 0.9 * (64 << 20), 1024);
}

TEST_F(CudaEngineTest, RefusesOptionsOutOfRange) {
  EXPECT_THAT(Words(MakeCudaEngine({.jobs_per_device = 0}).status()), HasSubstr("jobs per device: 0"));
  EXPECT_THAT(Words(MakeCudaEngine({.device_memory_bytes = -1}).status()), HasSubstr("device memory: -1"));
  EXPECT_THAT(Words(MakeCudaEngine({.chunk_bins = -4}).status()), HasSubstr("chunk: -4"));
  EXPECT_THAT(Words(MakeCudaEngine({.devices = {5}}).status()), HasSubstr("device 5"));
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
