// The use of a block's shared memory by fits of stars.
#include <gtest/gtest.h>

#include <cmath>

#include "core/analysis/velocity/velocity.h"
#include "cuda/analysis/analyser/cuda_analyser.h"
#include "cuda/analysis/velocity/fit.h"
#include "tests/analysis/made_up_frame.h"
#include "tests/analysis/made_up_stars.h"
#include "tests/cuda_runtime/fake_cuda.h"

namespace spexd::cuda {
namespace {

constexpr int kMax = 211 << 10;               // for a block's plan on an H200
constexpr double kBin = 0.8 / 5760;           // of ln wavelength
constexpr double kSample = 10 / kLightSpeed;  // in ln wavelength

TEST(FitPlan, LeavesRoomForTwoBlocksWithUsualTemplates) {
  const FitPlan plan = PlanFit(3, kBin / (0.7 * kSample), 0.7 * kSample, kMax);
  EXPECT_EQ(plan.warps, 12);
  constexpr int kStatic = 6 << 10, kReserved = 1 << 10, kMultiprocessor = 228 << 10;
  EXPECT_LE(2 * (plan.shared_bytes + kStatic + kReserved), kMultiprocessor);
}

TEST(FitPlan, HasFewerWarpsWithFinerTemplatesAndFailsWithTheFinest) {
  EXPECT_EQ(PlanFit(3, 10 * kBin / kSample, kSample / 10, kMax).warps, 3);
  const FitPlan one = PlanFit(3, 30 * kBin / kSample, kSample / 30, kMax);
  EXPECT_EQ(one.warps, 1);
  EXPECT_LE(one.shared_bytes, kMax);
  EXPECT_GT(PlanFit(3, 40 * kBin / kSample, kSample / 40, kMax).shared_bytes, kMax);
}

TEST(FitPlan, ServesADeviceWithLittleSharedMemory) {
  Frame frame = testing::DarkFrame(1, 1);
  testing::AddLight(testing::StarLight(47.3, 0.55, 20), 0, &frame);
  const UsableSpectra spectra = MakeUsable(frame).value();
  const TemplateLibrary library = testing::StarTemplates().Make().value();
  const StarVelocity expected = FitVelocities(spectra, {0}, library, {}).value()[0];
  for (const size_t bytes : {size_t{227} << 10, size_t{32} << 10, size_t{24} << 10}) {
    SCOPED_TRACE(bytes);
    testing::FakeCuda::Device device;
    device.free_bytes = size_t{1} << 30;
    device.shared_bytes = bytes;
    testing::FakeCuda::Get().Reset({device});
    const auto analyser = MakeCudaAnalyser({}).value();
    TemplateLibrary own = library;
    own.prepared = nullptr;
    const auto stars = analyser->Begin(spectra, nullptr).value()->FitVelocities({0}, own, {});
    ASSERT_TRUE(stars.ok()) << stars.status();
    EXPECT_NEAR((*stars)[0].v, expected.v, 0.05 * expected.error);
    EXPECT_NEAR((*stars)[0].chi2, expected.chi2, 0.01);
    EXPECT_NEAR((*stars)[0].error, expected.error, 0.02 * expected.error);
  }
}

}  // namespace
}  // namespace spexd::cuda
