// Products of several frames at once: the processors' work for one frame does not wait for the device, which
// another frame uses.
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "cuda/analysis/analyser/cuda_analyser.h"
#include "cuda/analysis/analysis_device.h"
#include "cuda/analysis/frame_on_device.h"
#include "cuda/analysis/lines/line_finder.h"
#include "tests/analysis/made_up_frame.h"
#include "tests/cuda_emulation/products/emulated_frame.h"

namespace spexd::cuda {
namespace {

using testing::FakeCuda;
using testing::Rows;

constexpr int kFibres = 8, kSkyFibres = 5;

class OverlapTest : public EmulatedFrame {
 protected:
  OverlapTest() : EmulatedFrame(1, kFibres, 20261126) {}
  // Returns the scene on its own grid, with `bins` fewer bins.
  Frame SceneWithout(int bins) const {
    Frame frame = frame_;
    const int64_t left = frame.grid.count - bins;
    const auto cut = [&](auto* array) {
      auto shorter = *array;
      shorter.Reshape({kFibres, left});
      for (int i = 0; i < kFibres; ++i) std::copy_n(&(*array)(i, 0), left, &shorter(i, 0));
      *array = shorter;
    };
    cut(&frame.spectra.flux);
    cut(&frame.spectra.ivar);
    cut(&frame.spectra.mask);
    Array<float, 3> resolution({kFibres, kResolutionDiagonals, left});
    for (int i = 0; i < kFibres; ++i) {
      for (int d = 0; d < kResolutionDiagonals; ++d)
        std::copy_n(&frame.spectra.resolution(i, d, 0), left, &resolution(i, d, 0));
    }
    frame.spectra.resolution = resolution;
    frame.grid.count = static_cast<int>(left);
    return frame;
  }

  const std::unique_ptr<AnalysisDevice> device_ = AnalysisDevice::Make(0, 0).value();
  LineFinder lines_{device_.get()};
};

TEST_F(OverlapTest, TablesArePlannedAndSpectraStagedWhileAnotherHasTheDevice) {
  FrameOnDevice there(device_.get(), spectra_, nullptr);
  const int copies = FakeCuda::Get().calls("cudaMemcpyAsync");
  const MutexLock lock(&device_->mutex);
  std::thread([&] {
    EXPECT_TRUE(lines_.GridOf(spectra_.wave, {}).ok());
    EXPECT_EQ(there.Stage(spectra_, {.threads = 2}), absl::OkStatus());
  }).join();
  EXPECT_EQ(FakeCuda::Get().calls("cudaMemcpyAsync"), copies);
}

TEST_F(OverlapTest, TablesOfAGridAreMadeOnceForAllWhoAskForThemAtOnce) {
  constexpr int kThreads = 6;
  std::vector<std::shared_ptr<LineGrid>> found(kThreads);
  {
    std::vector<std::jthread> threads;
    for (int k = 0; k < kThreads; ++k) {
      // Every second one has other options, and therefore another grid.
      threads.emplace_back(
          [&, k] { found[k] = lines_.GridOf(spectra_.wave, {.sigma = 60.0 + k % 2}).value(); });
    }
  }
  for (int k = 2; k < kThreads; ++k) EXPECT_EQ(found[k], found[k - 2]);
  EXPECT_NE(found[0], found[1]);
}

TEST_F(OverlapTest, OptionsThatAreWrongFailEachTimeAndKeepNoPlaceOfOthers) {
  const auto kept = lines_.GridOf(spectra_.wave, {}).value();
  for (int k = 0; k < 10; ++k) {
    const double step = -(k / 2);
    EXPECT_TRUE(absl::IsInvalidArgument(lines_.GridOf(spectra_.wave, {.step = step}).status())) << step;
  }
  EXPECT_EQ(lines_.GridOf(spectra_.wave, {}).value(), kept);
}

TEST_F(OverlapTest, SpectraAreStagedAnewIfTheirSecondBufferCouldNotBeHad) {
  FrameOnDevice there(device_.get(), spectra_, nullptr);
  FakeCuda& fake = FakeCuda::Get();
  fake.OnCall("cudaHostRegister", fake.calls("cudaHostRegister") + 2,
              [&] { fake.FailNext("cudaHostRegister", cudaErrorMemoryAllocation); });
  EXPECT_TRUE(absl::IsResourceExhausted(there.Stage(spectra_, {})));
  EXPECT_EQ(there.Stage(spectra_, {}), absl::OkStatus());
  const MutexLock lock(&device_->mutex);
  const SpectraArrays arrays = there.Arrays(spectra_).value();
  for (int64_t k = 0; k < spectra_.flux.size(); ++k) {
    ASSERT_EQ(arrays.flux[k], static_cast<float>(spectra_.flux.flat()[k])) << k;
    ASSERT_EQ(arrays.ivar[k], static_cast<float>(spectra_.ivar.flat()[k])) << k;
  }
  for (int64_t k = 0; k < spectra_.resolution->size(); ++k)
    ASSERT_EQ(arrays.resolution[k], spectra_.resolution->flat()[k]) << k;
}

TEST_F(OverlapTest, FramesOnSeveralGridsAtOnceHaveTheBitsOfThoseAlone) {
  constexpr int kGrids = 5;  // more than are kept
  std::vector<Frame> frames;
  for (int k = 0; k < kGrids; ++k) frames.push_back(SceneWithout(10 * k));
  std::vector<testing::SkyAndLines> alone, at_once(kGrids);
  const auto make = [](Analyser* analyser, const Frame& frame) {
    const auto analysis = analyser->Begin(MakeUsable(frame).value(), nullptr).value();
    return testing::MakeSkyAndLines(analysis.get(), Rows(0, kSkyFibres), Rows(kSkyFibres, kFibres));
  };
  for (const Frame& frame : frames) alone.push_back(make(MakeCudaAnalyser({}).value().get(), frame));
  const auto analyser = MakeCudaAnalyser({}).value();
  {
    std::vector<std::jthread> threads;
    for (int k = 0; k < kGrids; ++k)
      threads.emplace_back([&, k] { at_once[k] = make(analyser.get(), frames[k]); });
  }
  for (int k = 0; k < kGrids; ++k) {
    SCOPED_TRACE(k);
    EXPECT_TRUE(at_once[k].sky.flux == alone[k].sky.flux);
    EXPECT_TRUE(at_once[k].sky.model_variance == alone[k].sky.model_variance);
    ASSERT_EQ(at_once[k].lines.size(), alone[k].lines.size());
    for (size_t row = 0; row < alone[k].lines.size(); ++row) {
      EXPECT_EQ(at_once[k].lines[row].z, alone[k].lines[row].z);
      EXPECT_EQ(at_once[k].lines[row].dchi2, alone[k].lines[row].dchi2);
    }
  }
}

}  // namespace
}  // namespace spexd::cuda
