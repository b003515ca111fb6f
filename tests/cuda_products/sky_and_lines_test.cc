// Compares sky and redshifts of emission lines by kernels with those by processors.
#include "tests/cuda_products/sky_and_lines.h"

#include <gtest/gtest.h>

#include <cmath>
#include <thread>
#include <vector>

#include "tests/cuda_products/analyser_under_test.h"

namespace spexd::testing {
namespace {

using CudaSkyAndLines = CudaProductsTest;

void ExpectSameBits(const SkyAndLines& found, const SkyAndLines& expected) {
  for (const auto image : {&Sky::model, &Sky::model_variance, &Sky::statistical_ivar, &Sky::flux, &Sky::ivar})
    EXPECT_TRUE(found.sky.*image == expected.sky.*image);
  EXPECT_EQ(found.sky.deconvolved, expected.sky.deconvolved);
  EXPECT_EQ(found.sky.throughput, expected.sky.throughput);
  for (size_t k = 0; k < found.lines.size(); ++k) {
    EXPECT_EQ(found.lines[k].z, expected.lines[k].z);
    EXPECT_EQ(found.lines[k].dchi2, expected.lines[k].dchi2);
    EXPECT_EQ(found.lines[k].gap, expected.lines[k].gap);
  }
}

TEST_F(CudaSkyAndLines, SmallAreThoseOfProcessors) {
  const Frame frame = MakeScene(14, 20261123);
  const UsableSpectra spectra = MakeUsable(frame).value();
  ExpectThoseOfProcessors(Begin(spectra).get(), spectra, 8);
}

TEST_F(CudaSkyAndLines, HaveTheSameBitsWhateverTheLoad) {
  constexpr int kThreads = 3;
  const Frame frame = MakeScene(12, 20261123);
  const UsableSpectra spectra = MakeUsable(frame).value();
  const SkyAndLines alone = MakeSkyAndLines(Begin(spectra).get(), Rows(0, 8), Rows(8, 12));
  std::vector<SkyAndLines> others(kThreads);
  std::vector<std::thread> threads;
  for (SkyAndLines& products : others) {
    threads.emplace_back([&] { products = MakeSkyAndLines(Begin(spectra).get(), Rows(0, 8), Rows(8, 12)); });
  }
  for (std::thread& thread : threads) thread.join();
  for (const SkyAndLines& products : others) ExpectSameBits(products, alone);
}

TEST_F(CudaSkyAndLines, WithoutSkyFibresAreAnErrorThatLeavesTheSpectra) {
  const Frame frame = MakeScene(9, 3);
  const UsableSpectra spectra = MakeUsable(frame).value();
  const auto there = Begin(spectra);
  EXPECT_EQ(there->FitSky({5}, {}).status().code(), absl::StatusCode::kFailedPrecondition)
      << "it has no data";
  EXPECT_EQ(there->FindLineRedshifts({1}, {.step = 0}).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(there->spectra().flux == spectra.flux);
  FrameAnalysis here(spectra);
  ExpectSameLines(there->FindLineRedshifts({1, 4}, {}).value(), here.FindLineRedshifts({1, 4}, {}).value(),
                  1e-4, 0.01);
}

}  // namespace
}  // namespace spexd::testing
